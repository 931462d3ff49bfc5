//! What every client goes through with its hook: first issuance, renewal, a renewal that the service rejects, and `sync`;
//! and two certificates for the same name, one for each type of key.

use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use crate::harness::{Fault, Hook, Sandbox, edgecert, sync, upload_count};

use super::record::Record;
use super::{Client, ClientOutput, certificates, served_record};

/// A certificate that a client issues and renews, and for which it runs the hook.
pub(super) struct ClientCertificate<'a> {
    /// The client, in whose home the hook keeps its state.
    pub(super) client: &'a Client,
    /// The full chain and the key.
    pub(super) files: [PathBuf; 2],
    pub(super) issue: Box<Call<'a>>,
    pub(super) renew: Box<Call<'a>>,
}

/// A call of the client.
type Call<'a> = dyn Fn() -> ClientOutput + Sync + 'a;

impl ClientCertificate<'_> {
    /// Orders the first certificate, or calls the client again for one that is not due.
    pub(super) fn issue(&self) -> ClientOutput {
        (self.issue)()
    }

    /// Renews the certificate, which is not due, as the client's timer would.
    pub(super) fn renew(&self) -> ClientOutput {
        (self.renew)()
    }

    /// The certificates on disk.
    pub(super) fn chain(&self) -> Vec<String> {
        certificates(&fs::read_to_string(&self.files[0]).unwrap())
    }
}

/// Issues, renews, renews while the service is unavailable, and syncs. Returns the client's output of the failure, for
/// which it exits with this code.
#[track_caller]
pub(super) fn assert_sequence(
    service: &Sandbox,
    certificate: &ClientCertificate<'_>,
    domains: &[&str],
    key_type: &str,
    failure: i32,
) -> ClientOutput {
    certificate.issue().succeeds();
    assert_eq!(type_of_key(certificate), key_type);
    let first = served(service, certificate, domains);

    certificate.renew().succeeds();
    assert_eq!(type_of_key(certificate), key_type, "renewed");
    let renewed = served(service, certificate, domains);
    assert_eq!(renewed.id, first.id, "the record is replaced in place");
    assert_ne!(renewed.chain, first.chain);

    fail_uploads(service);
    let output = certificate.renew().exits_with(failure);
    assert_ne!(certificate.chain(), renewed.chain, "the client renewed in spite of the failure");
    assert_eq!(served_record(service, domains), renewed);
    service.clear_faults();

    synced(service, certificate).succeeds();
    let synced_record = served(service, certificate, domains);
    assert_eq!(synced_record.id, first.id, "sync replaces the record in place");
    assert_sync_sends_nothing(service, certificate);
    output
}

/// Issues two certificates for the same names with different keys: the later one is served, each time.
#[track_caller]
pub(super) fn assert_later_wins(
    service: &Sandbox,
    [first, second]: [&ClientCertificate<'_>; 2],
    domains: &[&str],
) {
    first.issue().succeeds();
    let record = served(service, first, domains);
    assert_sync_sends_nothing(service, first);
    for (later, earlier) in [(second, first), (first, second)] {
        wait_for_later_date();
        if later.files[0].exists() { later.renew() } else { later.issue() }.succeeds();
        assert_ne!(type_of_key(later), type_of_key(earlier));
        assert_eq!(served(service, later, domains).id, record.id, "nothing is duplicated");

        synced(service, later).succeeds();
        assert_sync_sends_nothing(service, later);
        let id = served(service, later, domains).id;
        assert_eq!(id, record.id, "sync leaves the earlier certificate alone");
        let counts = synced(service, later).args(["--json"]).succeeds().json()["counts"].clone();
        assert_eq!((&counts["total"], &counts["superseded"]), (&2.into(), &1.into()), "{counts}");
    }
}

/// The only record, after asserting that it holds this certificate and is served.
#[track_caller]
fn served(service: &Sandbox, certificate: &ClientCertificate<'_>, domains: &[&str]) -> Record {
    let record = served_record(service, domains);
    assert_eq!(record.chain, certificate.chain());
    record
}

/// Lets uploads fail, until the faults are cleared, and ask for a longer pause than any run makes.
pub(super) fn fail_uploads(service: &Sandbox) {
    service.add_fault(Fault::status("POST /api/certs/upload", 503).header("Retry-After", "3600").times(99));
}

/// The `sync` of the host on which the client runs.
fn synced(service: &Sandbox, certificate: &ClientCertificate<'_>) -> Hook {
    sync(service, &certificate.client.path("state")).env("EDGECERT_ALLOW_UNTRUSTED", "true")
}

#[track_caller]
fn assert_sync_sends_nothing(service: &Sandbox, certificate: &ClientCertificate<'_>) {
    let uploads = upload_count(service);
    synced(service, certificate).succeeds();
    assert_eq!(upload_count(service), uploads, "sync has nothing to send");
}

fn type_of_key(certificate: &ClientCertificate<'_>) -> String {
    let [cert, key] = &certificate.files;
    let check = edgecert().args(["check", "--json", "--allow-untrusted", "--cert"]).args([cert]);
    let report = check.args(["--key"]).args([key]).succeeds().json();
    report["certificate"]["key_type"].as_str().unwrap().to_owned()
}

/// Waits until a certificate issued now is later than those issued before: their dates are in whole seconds.
fn wait_for_later_date() {
    sleep(Duration::from_secs(1));
}
