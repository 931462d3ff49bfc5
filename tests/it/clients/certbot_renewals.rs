//! Both versions of certbot with both types of keys: first issuance, renewal, a renewal that the service rejects, and
//! `sync`; and certificates of both types for one name.

use std::path::PathBuf;

use crate::harness::{Sandbox, at_once, edgecert, sandbox, upload_count};

use super::certbot::{Certbot, VERSIONS};
use super::{Client, ClientCertificate, ClientOutput, assert_later_wins, assert_sequence, served_record};

const SITES: [&str; 2] = ["a.example", "x.b.example"];
const NAMES: [&str; 2] = ["*.b.example", "a.example"];

/// A lineage with a type of key of its own.
struct OneType<'a> {
    certbot: &'a Certbot,
    name: &'static str,
    key_type: &'static str,
}

impl ClientCertificate for OneType<'_> {
    fn client(&self) -> &Client {
        &self.certbot.client
    }

    fn files(&self) -> [PathBuf; 2] {
        let live = self.client().path("config/live").join(self.name);
        ["fullchain.pem", "privkey.pem"].map(|file| live.join(file))
    }

    fn issue(&self) -> ClientOutput {
        self.certbot.certonly(&["--cert-name", self.name, "--key-type", self.key_type], &NAMES)
    }

    fn renew(&self) -> ClientOutput {
        self.certbot.renew(&["--cert-name", self.name])
    }
}

/// Runs in parallel, because certbot waits a lot.
#[test]
fn sync_finishes_what_certbot_does_not_repeat() {
    let run = |version: fn(&Sandbox) -> Certbot, key_type, shown| {
        let service = sandbox(&SITES);
        let certbot = version(&service);
        let certificate = OneType { certbot: &certbot, name: "shop", key_type };
        let output = assert_sequence(&service, &certificate, &SITES, shown, 0);
        for text in ["Hook 'deploy-hook' reported error code 75", "edgecert: error: "] {
            assert!(output.stderr.contains(text), "{}", output.stderr);
        }
        assert!(output.stdout.contains("Congratulations, all renewals succeeded"), "{}", output.stdout);
    };
    let types = [("ecdsa", "P-256"), ("rsa", "RSA-2048")];
    at_once(VERSIONS.into_iter().zip(types), |(version, (key_type, shown))| run(version, key_type, shown));
}

/// certbot has a lineage for each type of key. The edge serves the one issued last.
#[test]
fn later_of_two_key_types_is_served() {
    for version in VERSIONS {
        let service = sandbox(&SITES);
        let certbot = version(&service);
        let [rsa, ecdsa] = [("x-rsa", "rsa"), ("x-ecdsa", "ecdsa")].map(|(name, key_type)| OneType {
            certbot: &certbot,
            name,
            key_type,
        });
        assert_later_wins(&service, [&rsa, &ecdsa], &SITES);
        let status = edgecert().against(&service).env("EDGECERT_STATE_DIR", certbot.client.path("state"));
        let status = status.args(["status"]).succeeds().stdout;
        let line = status.lines().find(|line| line.contains("superseded")).expect(&status);
        assert!(line.contains("x-ecdsa"), "{status}");
    }
}

/// The hook then gets the lineage as it is.
#[test]
fn rehearsed_renewal_uploads_nothing() {
    let service = sandbox(&SITES);
    let certbot = Certbot::newest(&service);
    certbot.certonly(&[], &NAMES).succeeds();
    let (record, uploads) = (served_record(&service, &SITES), upload_count(&service));
    let directory = certbot.directory();
    let output = certbot.run(
        &["renew", "--dry-run", "--run-deploy-hooks", "--no-random-sleep-on-renew", "--server", &directory],
        &[],
    );
    let ClientOutput { stdout, stderr, .. } = output.succeeds();
    let text = stdout + &stderr;
    assert!(text.contains("nothing to do"), "{text}");
    assert_eq!((served_record(&service, &SITES), upload_count(&service)), (record, uploads));
}
