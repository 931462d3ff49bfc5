//! All local checks of one bundle, as often as asked: `rounds TIMES CERT KEY`. The figures run it under callgrind.
//!
//! Reads the files once and prints nothing, so that what one round more costs is the checks and nothing else.

#![allow(
    dead_code,
    unused_imports,
    reason = "the hook is a program, not a library; not all of it is needed here"
)]

#[path = "../../src/cert.rs"]
mod cert;
#[path = "../../src/check/mod.rs"]
mod check;
#[path = "../../src/file.rs"]
mod file;
#[path = "../../src/key.rs"]
mod key;
#[path = "../../src/material/mod.rs"]
mod material;
#[path = "../../src/names.rs"]
mod names;
#[path = "../../src/pem.rs"]
mod pem;
#[path = "../../src/secret.rs"]
mod secret;
#[path = "../../src/text.rs"]
mod text;

use std::hint::black_box;
use std::process::ExitCode;

use time::OffsetDateTime;

use crate::check::{Question, Status};
use crate::material::{Files, Material};
use crate::names::Domain;

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
    let at = Material::from_bytes(&files, &cert, None, None).chain.ok()?.leaf.not_before;
    for _ in 0..times.parse().ok()? {
        round(&files, black_box(&cert), black_box(&key), &domains, at)?;
    }
    Some(())
}

/// What `deploy` does between reading the files and asking the service.
fn round(files: &Files, cert: &[u8], key: &[u8], domains: &[Domain], at: OffsetDateTime) -> Option<()> {
    let material = Material::from_bytes(files, cert, None, Some(key));
    let question = Question { domains, at, untrusted: Status::Fail, anchors: None, directory: None };
    let findings = check::run(&material, &question);
    check::vet(&material, &findings).is_ok().then_some(())
}
