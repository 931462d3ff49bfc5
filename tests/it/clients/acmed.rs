//! acmed: the hook's arguments are whatever its configuration names, its streams are `/dev/null`, and a certificate
//! file keeps the tail of an older, longer one, because acmed writes over it without cutting it off.

use std::process::Stdio;

use crate::harness::{Hook, Lineage, Sandbox, edgecert, sandbox, test_ca};

use super::{certificates, served_record};

const CERT: &str = "t_ecdsa-p256.crt.pem";
const KEY: &str = "t_ecdsa-p256.pk.pem";

/// A call as acmed makes it.
fn called_by_acmed(files: &Lineage, service: &Sandbox) -> Hook {
    let hook = edgecert().against(service).args(["--cert"]).args([files.file(CERT)]);
    hook.args(["--key"]).args([files.file(KEY)])
}

/// A certificate with its chain up to the root, and `tail` behind it.
fn followed_by(tail: &str) -> Lineage {
    let files = Lineage::issued_for(&["a.example"]);
    files.write(CERT, &(files.read("fullchain.pem") + test_ca().root() + tail));
    files.rename("privkey.pem", KEY);
    assert!(files.read(KEY).starts_with("-----BEGIN PRIVATE KEY-----"), "the label that acmed writes");
    files
}

#[test]
fn the_tail_of_an_older_certificate_is_left_out() {
    let older = test_ca().issue(&["a.example"]).unwrap().cert;
    let heading = "-----BEGIN CERTIFICATE-----".len();
    // In the middle of the heading, of the base64, and of the last line.
    for cut in [4, heading - 1, heading, older.len() / 2, older.len() - 4] {
        let files = followed_by(&older[cut..]);
        let service = sandbox(&["a.example"]);
        called_by_acmed(&files, &service).succeeds();
        let chain = served_record(&service, &["a.example"]).chain;
        assert_eq!(chain[..2], certificates(&files.read("fullchain.pem")), "cut at {cut}");
        let sent = service.certs()[0]["cert_pem"].as_str().unwrap().to_owned();
        assert_eq!(sent.matches("-----END").count(), chain.len(), "clean blocks only: {sent}");
    }
}

#[test]
fn the_hook_works_without_streams() {
    let files = followed_by("");
    let service = sandbox(&["a.example"]);
    let mut hook = called_by_acmed(&files, &service);
    let status = hook.command().stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(0));
    served_record(&service, &["a.example"]);
}

/// acmed overwrites the key before the order is final, so that after a failed order the files are no pair.
#[test]
fn the_key_of_an_order_that_failed_is_refused() {
    let files = followed_by("");
    files.write(KEY, &test_ca().issue(&["a.example"]).unwrap().key);
    let service = sandbox(&["a.example"]);
    let stderr = called_by_acmed(&files, &service).exits_with(65).stderr;
    assert!(stderr.contains(KEY), "{stderr}");
    assert_eq!(service.requests().len(), 0);
}
