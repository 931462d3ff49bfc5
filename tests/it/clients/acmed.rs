//! acmed: passes files as configured arguments, redirects the hook's streams to `/dev/null`, and overwrites files
//! without truncating them, so that the tail of an older, longer certificate remains.

use std::process::Stdio;

use crate::harness::{Hook, Lineage, Sandbox, edgecert, sandbox, test_ca};

use super::{certificates, served_record};

const CERT: &str = "t_ecdsa-p256.crt.pem";
const KEY: &str = "t_ecdsa-p256.pk.pem";

/// Calls the hook as acmed does.
fn called_by_acmed(files: &Lineage, service: &Sandbox) -> Hook {
    let hook = edgecert().against(service).args(["--cert"]).args([files.file(CERT)]);
    hook.args(["--key"]).args([files.file(KEY)])
}

/// A lineage whose certificate file holds the chain up to the root, followed by `tail`.
fn lineage_with_tail(tail: &str) -> Lineage {
    let files = Lineage::issued_for(&["a.example"]);
    files.write(CERT, &(files.read("fullchain.pem") + test_ca().root() + tail));
    files.rename("privkey.pem", KEY);
    assert!(files.read(KEY).starts_with("-----BEGIN PRIVATE KEY-----"), "the label that acmed writes");
    files
}

#[test]
fn tail_of_older_certificate_is_ignored() {
    let older = test_ca().issue(&["a.example"]).unwrap().cert;
    let heading = "-----BEGIN CERTIFICATE-----".len();
    // Cuts within the BEGIN line, the base64 and the last line.
    for cut in [4, heading - 1, heading, older.len() / 2, older.len() - 4] {
        let files = lineage_with_tail(&older[cut..]);
        let service = sandbox(&["a.example"]);
        called_by_acmed(&files, &service).succeeds();
        let chain = served_record(&service, &["a.example"]).chain;
        assert_eq!(chain[..2], certificates(&files.read("fullchain.pem")), "cut at {cut}");
        let sent = service.certs()[0]["cert_pem"].as_str().unwrap().to_owned();
        assert_eq!(sent.matches("-----END").count(), chain.len(), "clean blocks only: {sent}");
    }
}

#[test]
fn hook_works_without_streams() {
    let files = lineage_with_tail("");
    let service = sandbox(&["a.example"]);
    let mut hook = called_by_acmed(&files, &service);
    let status = hook.command().stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(0));
    served_record(&service, &["a.example"]);
}

/// acmed overwrites the key before the order completes, so after a failed order the files do not match.
#[test]
fn key_of_failed_order_is_refused() {
    let files = lineage_with_tail("");
    files.write(KEY, &test_ca().issue(&["a.example"]).unwrap().key);
    let service = sandbox(&["a.example"]);
    let stderr = called_by_acmed(&files, &service).exits_with(65).stderr;
    assert!(stderr.contains(KEY), "{stderr}");
    assert_eq!(service.requests().len(), 0);
}
