//! dehydrated with edgecert as `HOOK`, set by the command of the README, and RSA and EC keys.

use std::path::PathBuf;

use crate::harness::{Sandbox, sandbox, upload_count};
use crate::readme::{README, attach_command};

use super::{Client, ClientCertificate, ClientOutput, Pebble, assert_later_wins, assert_sequence};

const DOMAINS: [&str; 2] = ["a.example", "www.a.example"];

/// A host with edgecert as `HOOK`, and the CA that issues to it.
struct Host {
    client: Client,
    _ca: Pebble,
}

impl Host {
    fn deploying_to(service: &Sandbox) -> Self {
        let ca = Pebble::start();
        let client = Client::new("dehydrated", "dehydrated").env("CURL_CA_BUNDLE", ca.ca_file());
        let client = client.deploying_to(service);
        client.write("web/empty", "");
        let (directory, base) = (ca.directory(), client.path_text("."));
        client.write(
            "config",
            &format!(
                "CA={directory}\nBASEDIR={base}\nWELLKNOWN={base}/web\n\
                 KEYSIZE=2048\nACCOUNT_KEYSIZE=2048\n"
            ),
        );
        let command = attach_command(README, "dehydrated").replace("/etc/dehydrated/config", "config");
        let client = client.with_hook_in_path();
        client.run_in_shell(&command).succeeds();
        // The path is stored: dehydrated's cron job may have another PATH.
        let client = client.env("PATH", "/usr/bin:/bin");
        client.run(["--config", "config", "--register", "--accept-terms"]).succeeds();
        Self { client, _ca: ca }
    }

    fn certificate(&self, alias: &'static str, algorithm: &'static str) -> Certificate<'_> {
        Certificate { host: self, alias, algorithm }
    }
}

/// A certificate with its own alias, which names its directory.
struct Certificate<'a> {
    host: &'a Host,
    alias: &'static str,
    algorithm: &'static str,
}

impl Certificate<'_> {
    fn cron(&self, options: &[&str]) -> ClientOutput {
        let domains = DOMAINS.join(" ");
        let arguments = ["--config", "config", "--cron", "--domain", &domains, "--alias", self.alias];
        self.host.client.run([&arguments, &["--algo", self.algorithm][..], options].concat())
    }
}

impl ClientCertificate for Certificate<'_> {
    fn client(&self) -> &Client {
        &self.host.client
    }

    fn files(&self) -> [PathBuf; 2] {
        let directory = self.host.client.path("certs").join(self.alias);
        ["fullchain.pem", "privkey.pem"].map(|name| directory.join(name))
    }

    fn issue(&self) -> ClientOutput {
        self.cron(&[])
    }

    fn renew(&self) -> ClientOutput {
        self.cron(&["--force"])
    }
}

#[test]
fn dehydrated_survives_failed_renewal() {
    for (algorithm, key_type) in [("rsa", "RSA-2048"), ("secp384r1", "P-384")] {
        let service = sandbox(&DOMAINS);
        let host = Host::deploying_to(&service);
        let certificate = host.certificate("a.example", algorithm);
        let failed = assert_sequence(&service, &certificate, &DOMAINS, key_type, 1);
        let message = "deploy_cert hook returned with non-zero exit code";
        assert!(failed.stderr.contains(message), "{}", failed.stderr);
    }
}

#[test]
fn dehydrated_keys_of_both_types_share_site() {
    let service = sandbox(&DOMAINS);
    let host = Host::deploying_to(&service);
    let certificates = [host.certificate("rsa", "rsa"), host.certificate("ec", "prime256v1")];
    assert_later_wins(&service, [&certificates[0], &certificates[1]], &DOMAINS);

    let uploads = upload_count(&service);
    for certificate in &certificates {
        // `unchanged_cert` of either.
        certificate.cron(&[]).succeeds();
    }
    assert_eq!(upload_count(&service), uploads, "unchanged_cert leaves the earlier certificate alone");
}
