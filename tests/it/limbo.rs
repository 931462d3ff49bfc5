//! The public path validation suites x509-limbo and bettertls, run through `edgecert check`.
//!
//! The data lies beside the checkout, in `../shared/x509-limbo` (`EDGECERT_LIMBO` names another place), and is not ours
//! to publish. No case that must fail may pass; what differs from the suite without being scored is explained below.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::edgecert;

/// Why edgecert's verdict differs from the suite's, by the words of the suite's own note.
const EXPLAINED: [(&str, &str); 9] = [
    (
        "only a CRL",
        "no revocation list is taken: the CA that has just issued a certificate has not revoked it",
    ),
    ("only a depth limit", "no limit of depth is taken beside the verifier's own"),
    (
        "webpki does not enforce",
        "rustls-webpki is lenient about profile rules that clients do not enforce either",
    ),
    ("webpki does not", "rustls-webpki leaves out what TLS clients do not need; reported and intended there"),
    ("webpki accepts", "rustls-webpki accepts what is in use in spite of the rule"),
    ("webpki intentionally rejects", "a CA certificate is never taken for a server's"),
    ("rustls-webpki answers the opposite (measured)", "a key usage that clients do not look at for the leaf"),
    (
        "the web-PKI name rule",
        "which names a CA may sign for is the CA's business; the service takes the certificate",
    ),
    (
        "the peer name is the IP address",
        "a certificate without a DNS name covers no site, whatever its chain is worth",
    ),
];

struct Case {
    id: String,
    scored: bool,
    must_pass: bool,
    /// The checks of which one has to fail; empty: any.
    fail_check: Vec<String>,
    note: String,
    json: Value,
}

fn data() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/x509-limbo");
    crate::harness::variable("EDGECERT_LIMBO").map_or_else(beside, PathBuf::from)
}

fn cases(suite: &str) -> Vec<Case> {
    let file = data().join(format!("{suite}.jsonl.xz"));
    assert!(file.is_file(), "the test data of x509-limbo is needed as {}", file.display());
    let xz = Command::new("xz").arg("-dc").arg(&file).stdout(Stdio::piped()).spawn();
    let mut xz = xz.expect("xz must be installed (Debian package xz-utils)");
    let mut text = String::new();
    xz.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(xz.wait().unwrap().success());
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
    Case {
        id,
        scored: text("category") == "scored",
        must_pass: text("expect") == "ok",
        fail_check,
        note,
        json,
    }
}

/// What edgecert says: `None` where it passes, else the checks that failed.
fn verdict(case: &Case, directory: &Path, number: usize) -> Option<Vec<String>> {
    let [cert, roots] = ["cert", "roots"].map(|name| {
        let path = directory.join(format!("{number}.{name}"));
        std::fs::write(&path, case.json[name].as_str().unwrap()).unwrap();
        path
    });
    let mut hook =
        edgecert().args(["check", "--json", "--cert"]).args([&cert]).args(["--trust-anchors"]).args([&roots]);
    if let Some(at) = case.json["at"].as_str() {
        hook = hook.args(["--at", at]);
    }
    for domain in case.json["domains"].as_array().into_iter().flatten() {
        hook = hook.args(["--domain", domain.as_str().unwrap()]);
    }
    let outcome = hook.run();
    for path in [cert, roots] {
        std::fs::remove_file(path).unwrap();
    }
    match outcome.code {
        0 => None,
        65 => {
            let checks = outcome.json()["checks"].as_array().unwrap().clone();
            let failed = checks.iter().filter(|finding| finding["status"] == "fail");
            Some(failed.map(|finding| finding["check"].as_str().unwrap().to_owned()).collect())
        }
        other => panic!("{}: exit {other}\n{}", case.id, outcome.stderr),
    }
}

fn run(suite: &str, scored: usize) {
    let cases = cases(suite);
    let directory = TempDir::new().unwrap();
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some((number, case)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|n| Some((n, cases.get(n)?)))
                {
                    if let Some(complaint) = judge(case, verdict(case, directory.path(), number)) {
                        wrong.lock().unwrap().push(complaint);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert_eq!(cases.iter().filter(|case| case.scored).count(), scored, "the suite has changed");
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// What is wrong about a verdict; a scored case has to be right, another one explained.
fn judge(case: &Case, failed: Option<Vec<String>>) -> Option<String> {
    let right = failed.is_none() == case.must_pass;
    match (case.scored, right, failed) {
        (true, true, Some(failed)) if !case.fail_check.is_empty() => {
            let hit = failed.iter().any(|check| case.fail_check.contains(check));
            (!hit).then(|| format!("{}: {failed:?} failed, not one of {:?}", case.id, case.fail_check))
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
fn every_scored_case_of_x509_limbo_is_right() {
    run("limbo", 137);
}

#[test]
fn every_scored_case_of_bettertls_is_right() {
    run("bettertls", 9034);
}
