//! lego: the real version 4 with its two hook flags. Version 5 follows its contract in `lego_script.rs`.

use std::fs;

use crate::harness::{Lineage, Sandbox, edgecert, request_lines, sandbox};

use super::{Client, ClientOutput, Pebble, certificates, served_record};

/// lego 4 with its own directory, and the CA that issues to it.
struct Lego {
    client: Client,
    ca: Pebble,
}

impl Lego {
    fn deploying_to(service: &Sandbox) -> Self {
        let ca = Pebble::start();
        let client = Client::with_space_in_path("lego", "lego").env("LEGO_CA_CERTIFICATES", ca.ca_file());
        fs::create_dir(client.path("web")).unwrap();
        Self { client: client.deploying_to(service), ca }
    }

    fn with_service_down(self) -> Self {
        Self { client: self.client.with_service_down(), ca: self.ca }
    }

    /// Runs lego with a relative `--path`, so that the hook receives relative paths too.
    fn run(&self, arguments: &[&str]) -> ClientOutput {
        let (directory, hook) = (self.ca.directory(), self.client.hook());
        let mut all =
            vec!["--server", &directory, "--accept-tos", "--email", "ops@a.example", "--path", "lego"];
        all.extend([
            "--http",
            "--http.webroot",
            "web",
            "--domains",
            "a.example",
            "--domains",
            "www.a.example",
        ]);
        all.extend(arguments);
        all.push(&hook);
        self.client.run(all)
    }

    fn obtain(&self) -> ClientOutput {
        self.run(&["run", "--run-hook"])
    }

    /// Renews certificates that expire within this many days.
    fn renew(&self, days: &str) -> ClientOutput {
        self.run(&["renew", "--days", days, "--no-random-sleep", "--renew-hook"])
    }

    fn chain(&self) -> Vec<String> {
        certificates(&self.client.read("lego/certificates/a.example.crt"))
    }
}

/// A number of days that no certificate exceeds.
const ANY_EXPIRY: &str = "9999";

#[test]
fn lego_deploys_and_renews_one_record() {
    let service = sandbox(&["a.example", "www.a.example"]);
    let lego = Lego::deploying_to(&service);

    let output = lego.obtain().succeeds();
    assert!(output.stdout.contains("(created), bound to "), "{}", output.stdout);
    let first = served_record(&service, &["a.example", "www.a.example"]);
    assert_eq!(first.chain, lego.chain());

    let output = lego.renew(ANY_EXPIRY).succeeds();
    assert!(output.stdout.contains("(replaced), bound to "), "{}", output.stdout);
    let renewed = served_record(&service, &["a.example", "www.a.example"]);
    assert_eq!((renewed.id, &renewed.chain), (first.id, &lego.chain()));
    assert_ne!(renewed.chain, first.chain);
}

#[test]
fn lego_fails_once_with_the_hook() {
    let service = sandbox(&["a.example"]);
    let lego = Lego::deploying_to(&service).with_service_down();
    lego.obtain().exits_with(75);
    let output = lego.renew("30").succeeds();
    assert!(output.stderr.contains("no renewal"), "{}", output.stderr);
    assert_eq!(request_lines(&service), Vec::<String>::new());
    for directory in ["lego", "lego/certificates"] {
        let check = edgecert().args(["check", "--json", "--allow-untrusted", "--lineage"]);
        let report = check.args([lego.client.path(directory)]).succeeds().json();
        assert_eq!(report["source"]["client"], "lego", "{directory}");
    }
}

#[test]
fn lego_5_staging_directory_is_refused() {
    let service = sandbox(&["b.example"]);
    let files = Lineage::issued_for(&["b.example"]);
    let hook = edgecert().against(&service).env("LEGO_HOOK_CERT_PATH", files.file("fullchain.pem"));
    hook.env("LEGO_HOOK_CERT_KEY_PATH", files.file("privkey.pem"))
        .env("LEGO_HOOK_ACCOUNT_SERVER", "https://acme-staging-v02.api.letsencrypt.org/directory")
        .exits_with(65);
    assert_eq!(service.requests().len(), 0);
}
