//! Runs the public path validation suites x509-limbo and bettertls through the checks of `edgecert check`.
//!
//! Their data is not part of the repository: `EDGECERT_LIMBO` names its folder, by default `../shared/x509-limbo`
//! beside the checkout. Without it the tests are skipped, or fail under `CI=true`. A case that must fail never
//! passes; unscored cases may differ from the suite for one of the reasons in [`EXPLAINED`].

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use edgecert::bundle::{Bundle, Files};
use edgecert::check::{self, CheckContext, PathRule, Status};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::datetime;

use crate::harness::{cannot_run, env_var, in_parallel};

/// The time of cases that give none.
const NOW: OffsetDateTime = datetime!(2026-06-01 00:00 UTC);

/// Text in the suite's note on a case, and why edgecert's verdict differs there.
const EXPLAINED: [(&str, &str); 9] = [
    ("only a CRL", "CRLs are not consulted: the CA has just issued the certificate"),
    ("only a depth limit", "the verifier's own depth limit is the only one"),
    ("webpki does not enforce", "rustls-webpki omits profile rules that TLS clients do not enforce either"),
    ("webpki does not", "rustls-webpki omits what TLS clients do not need; reported and intended upstream"),
    ("webpki accepts", "rustls-webpki accepts common deviations from the rule"),
    ("webpki intentionally rejects", "rustls-webpki rejects a CA certificate as the leaf"),
    ("rustls-webpki answers the opposite (measured)", "TLS clients ignore this key usage on the leaf"),
    (
        "the web-PKI name rule",
        "which names a CA may sign is up to the CA; the service accepts the certificate",
    ),
    ("the peer name is the IP address", "a certificate without a DNS name covers no site"),
];

const NO_DATA: &str = "no x509-limbo data; EDGECERT_LIMBO names its folder, by default ../shared/x509-limbo";

struct Case {
    id: String,
    scored: bool,
    must_pass: bool,
    /// At least one of these checks must fail; empty if any check may.
    fail_check: Vec<String>,
    note: String,
    json: Value,
}

/// The folder of the suites, or `None` where the tests are to be skipped.
fn data() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/x509-limbo");
    let folder = env_var("EDGECERT_LIMBO").map_or_else(beside, PathBuf::from);
    let required = env_var("CI").is_some_and(|ci| ci == "true");
    let missing = format!("no x509-limbo data in {}; EDGECERT_LIMBO names its folder", folder.display());
    assert!(folder.is_dir() || !required, "{missing}");
    folder.is_dir().then_some(folder)
}

fn cases(file: &Path) -> Vec<Case> {
    assert!(file.is_file(), "{} is missing from the test data", file.display());
    let xz = Command::new("xz").arg("-dc").arg(file).stdout(Stdio::piped()).spawn();
    let mut xz = xz.expect("cannot run here: xz is not installed (Debian package xz-utils)");
    let mut text = String::new();
    xz.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(xz.wait().unwrap().success(), "xz cannot read {}", file.display());
    text.lines().map(|line| case(serde_json::from_str(line).unwrap())).collect()
}

fn case(json: Value) -> Case {
    let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
    let fail_check = match &json["fail_check"] {
        Value::Array(names) => names.iter().map(|name| name.as_str().unwrap().to_owned()).collect(),
        Value::String(name) => vec![name.clone()],
        _ => Vec::new(),
    };
    let (id, note) = (text("id"), text("note"));
    let (scored, must_pass) = (text("category") == "scored", text("expect") == "ok");
    Case { id, scored, must_pass, fail_check, note, json }
}

/// Runs the checks on a case: `None` if it passes, else the names of the checks that failed.
fn failed_checks(case: &Case) -> Option<Vec<String>> {
    let text = |name: &str| case.json[name].as_str();
    let domains = case.json["domains"].as_array().into_iter().flatten();
    let domains: Vec<_> = domains.map(|domain| domain.as_str().unwrap().parse().unwrap()).collect();
    let mut anchors = RootCertStore::empty();
    for root in CertificateDer::pem_slice_iter(text("roots").unwrap().as_bytes()) {
        anchors.add(root.unwrap()).unwrap();
    }
    let files = Files { cert: "cert.pem".into(), issuers: None, key: None };
    let bundle = Bundle::from_bytes(&files, text("cert").unwrap().as_bytes(), None, None);
    let findings = check::run(
        &bundle,
        &CheckContext {
            domains: &domains,
            at: text("at").map_or(NOW, |at| OffsetDateTime::parse(at, &Rfc3339).unwrap()),
            untrusted: Status::Warn,
            path: Some(PathRule { anchors: &anchors, no_path: Status::Fail }),
            directory: None,
        },
    );
    let failed = findings.iter().filter(|finding| finding.status == Status::Fail);
    let failed: Vec<String> = failed.map(|finding| finding.check.to_string()).collect();
    (!failed.is_empty()).then_some(failed)
}

/// Runs every case of a suite that has this many scored ones, or skips it where there is no data.
fn run(suite: &str, scored: usize) {
    let Some(data) = data() else { cannot_run(NO_DATA) };
    let cases = cases(&data.join(format!("{suite}.jsonl.xz")));
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let mismatches = in_parallel(threads, &cases, |case| mismatch(case, failed_checks(case)));
    let mismatches: Vec<String> = mismatches.into_iter().flatten().collect();
    assert_eq!(cases.iter().filter(|case| case.scored).count(), scored, "number of scored cases");
    let (number, all) = (mismatches.len(), cases.len());
    assert_eq!(number, 0, "{number} of {all} cases:\n{}", mismatches.join("\n"));
}

/// How a result differs from the suite without being allowed to: a scored case must match, an unscored one may
/// differ if its note is in [`EXPLAINED`].
fn mismatch(case: &Case, failed: Option<Vec<String>>) -> Option<String> {
    let matches = failed.is_none() == case.must_pass;
    match (case.scored, matches, failed) {
        (true, true, Some(failed)) if !case.fail_check.is_empty() => {
            let expected = failed.iter().any(|check| case.fail_check.contains(check));
            (!expected)
                .then(|| format!("{}: {failed:?} failed, expected one of {:?}", case.id, case.fail_check))
        }
        (true, false, failed) => {
            Some(format!("{}: must pass: {}, failed: {failed:?}", case.id, case.must_pass))
        }
        (false, false, _) if !EXPLAINED.iter().any(|(note, _)| case.note.contains(note)) => {
            Some(format!("{}: differs without an explanation: {}", case.id, case.note))
        }
        _ => None,
    }
}

#[test]
fn scored_x509_limbo_cases_match() {
    run("limbo", 137);
}

#[test]
fn scored_bettertls_cases_match() {
    run("bettertls", 9034);
}
