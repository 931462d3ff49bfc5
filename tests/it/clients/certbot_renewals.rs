//! Both versions of certbot with both types of keys: first issuance, renewal, a renewal that the service rejects, and
//! `sync`; and certificates of both types for one name.

use crate::harness::{Sandbox, at_once, edgecert, sandbox, upload_count};

use super::certbot::{Certbot, VERSIONS};
use super::{ClientCertificate, ClientOutput, assert_later_wins, assert_sequence, served_record};

const SITES: [&str; 2] = ["a.example", "x.b.example"];
const NAMES: [&str; 2] = ["*.b.example", "a.example"];

/// A lineage with a type of key of its own.
fn lineage<'a>(certbot: &'a Certbot, name: &'static str, key_type: &'static str) -> ClientCertificate<'a> {
    let live = certbot.client.path("config/live").join(name);
    ClientCertificate {
        client: &certbot.client,
        files: ["fullchain.pem", "privkey.pem"].map(|file| live.join(file)),
        issue: Box::new(move || certbot.certonly(&["--cert-name", name, "--key-type", key_type], &NAMES)),
        renew: Box::new(move || certbot.renew(&["--cert-name", name])),
    }
}

/// Runs in parallel, because certbot waits a lot.
#[test]
fn sync_finishes_what_certbot_does_not_repeat() {
    let run = |version: fn(&Sandbox) -> Certbot, key_type, shown| {
        let service = sandbox(&SITES);
        let certbot = version(&service);
        let output = assert_sequence(&service, &lineage(&certbot, "shop", key_type), &SITES, shown, 0);
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
        let [rsa, ecdsa] = [("x-rsa", "rsa"), ("x-ecdsa", "ecdsa")];
        let [rsa, ecdsa] = [rsa, ecdsa].map(|(name, key_type)| lineage(&certbot, name, key_type));
        assert_later_wins(&service, [&rsa, &ecdsa], &SITES);
        let status = edgecert().against(&service).with_state(certbot.client.path("state"));
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
