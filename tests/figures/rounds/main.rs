//! Repeats all local checks on one bundle: `edgecert-rounds TIMES CERT KEY`. The benchmarks run it under callgrind.
//!
//! Reads the files once and prints nothing, so that the cost of one more round is that of the checks alone.

use std::hint::black_box;
use std::process::ExitCode;

use time::OffsetDateTime;

use edgecert::bundle::{Bundle, Files};
use edgecert::check::{self, CheckContext, Status};
use edgecert::names::Domain;

fn main() -> ExitCode {
    if run().is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// `None` where the arguments are wrong, a file cannot be read, or the checks refuse the bundle.
fn run() -> Option<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [times, cert, key] = arguments.as_slice() else { return None };
    let files = Files { cert: cert.into(), issuers: None, key: Some(key.into()) };
    let (cert, key) = (std::fs::read(cert).ok()?, std::fs::read(key).ok()?);
    let domains: Vec<Domain> = vec!["a.example".parse().ok()?];
    let at = Bundle::from_bytes(&files, &cert, None, None).chain.ok()?.leaf.not_before;
    for _ in 0..times.parse().ok()? {
        round(&files, black_box(&cert), black_box(&key), &domains, at)?;
    }
    Some(())
}

/// What `deploy` does between reading the files and asking the service.
fn round(files: &Files, cert: &[u8], key: &[u8], domains: &[Domain], at: OffsetDateTime) -> Option<()> {
    let bundle = Bundle::from_bytes(files, cert, None, Some(key));
    let context = CheckContext { domains, at, untrusted: Status::Fail, path: None, directory: None };
    let findings = check::run(&bundle, &context);
    check::vet(&bundle, &findings).is_ok().then_some(())
}
