//! lego: version 4 for real with its two hook flags, and the variables and files of version 5.

use std::fs;

use crate::harness::{Lineage, Sandbox, edgecert, openssl, request_lines, sandbox, test_ca};

use super::{Client, Pebble, Ran, certificates, only_record, served_record};

/// lego 4 with a path of its own, and the CA that it renews from.
struct Lego {
    client: Client,
    ca: Pebble,
}

impl Lego {
    fn deploying_to(service: &Sandbox) -> Self {
        let ca = Pebble::start();
        let client = Client::new("lego", "lego").env("LEGO_CA_CERTIFICATES", ca.ca_file());
        fs::create_dir(client.path("web")).unwrap();
        Self { client: client.deploying_to(service), ca }
    }

    fn with_the_service_down(self) -> Self {
        Self { client: self.client.with_the_service_down(), ca: self.ca }
    }

    /// A relative `--path`, so that the hook is given relative paths too.
    fn run(&self, arguments: &[&str]) -> Ran {
        let (directory, hook) = (self.ca.directory(), self.client.named("edgecert"));
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

    fn obtain(&self) -> Ran {
        self.run(&["run", "--run-hook"])
    }

    /// Renews whatever is due within so many days.
    fn renew(&self, days: &str) -> Ran {
        self.run(&["renew", "--days", days, "--no-random-sleep", "--renew-hook"])
    }

    fn chain(&self) -> Vec<String> {
        certificates(&self.client.read("lego/certificates/a.example.crt"))
    }
}

/// More than any certificate has left.
const ALWAYS: &str = "9999";

#[test]
fn lego_brings_its_first_certificate_and_its_renewal_under_one_id() {
    let service = sandbox(&["a.example", "www.a.example"]);
    let lego = Lego::deploying_to(&service);

    let ran = lego.obtain().succeeds();
    assert!(ran.stdout.contains("created: true"), "{}", ran.stdout);
    let first = served_record(&service, &["a.example", "www.a.example"]);
    assert_eq!(first.chain, lego.chain());

    let ran = lego.renew(ALWAYS).succeeds();
    assert!(ran.stdout.contains("created: false"), "{}", ran.stdout);
    let renewed = served_record(&service, &["a.example", "www.a.example"]);
    assert_eq!((renewed.id, &renewed.chain), (first.id, &lego.chain()));
    assert_ne!(renewed.chain, first.chain);
}

#[test]
fn lego_fails_with_the_hook_and_does_not_call_it_again() {
    let service = sandbox(&["a.example"]);
    let lego = Lego::deploying_to(&service).with_the_service_down();
    lego.obtain().exits_with(75);
    let ran = lego.renew("30").succeeds();
    assert!(ran.stderr.contains("no renewal"), "{}", ran.stderr);
    assert_eq!(request_lines(&service), Vec::<String>::new());
}

#[test]
fn the_directory_that_lego_keeps_is_a_lineage() {
    let service = sandbox(&["a.example", "www.a.example"]);
    let lego = Lego::deploying_to(&service).with_the_service_down();
    lego.obtain().exits_with(75);
    for directory in ["lego", "lego/certificates"] {
        let hook = edgecert().against(&service).args(["--json", "--allow-untrusted", "--lineage"]);
        let output = hook.args([lego.client.path(directory)]).succeeds();
        assert_eq!(output.json()["source"]["client"], "lego", "{directory}");
        assert_eq!(served_record(&service, &["a.example", "www.a.example"]).chain, lego.chain());
    }
}

/// The files of one certificate as lego names them.
fn keep(directory: &Lineage, stem: &str, names: &[&str]) {
    let issued = test_ca().issue(names).unwrap();
    directory.write(&format!("{stem}.crt"), &issued.fullchain());
    directory.write(&format!("{stem}.issuer.crt"), &issued.chain);
    directory.write(&format!("{stem}.key"), &issued.key);
    directory.write(&format!("{stem}.json"), "{}");
}

/// An empty directory.
fn directory() -> Lineage {
    let lineage = Lineage::issued_for(&["unused.example"]);
    for name in ["cert.pem", "chain.pem", "fullchain.pem", "privkey.pem"] {
        fs::remove_file(lineage.file(name)).unwrap();
    }
    lineage
}

#[test]
fn lego_5_is_recognised_by_its_own_variables_and_keys() {
    let service = sandbox(&["x.b.example", "b.example"]);
    let files = directory();
    keep(&files, "_.b.example", &["*.b.example", "b.example"]);
    assert!(files.read("_.b.example.key").starts_with("-----BEGIN PRIVATE KEY-----"));
    let mut hook = edgecert().against(&service).args(["--json"]);
    // As lego gives them after `--path .`
    hook.command().current_dir(files.path());
    let output = hook
        .env("LEGO_HOOK_ACCOUNT_EMAIL", "ops@b.example")
        .env("LEGO_HOOK_ACCOUNT_SERVER", "https://acme.example/directory")
        .env("LEGO_HOOK_CERT_NAME", "*.b.example")
        .env("LEGO_HOOK_CERT_DOMAINS", "*.b.example,b.example")
        .env("LEGO_HOOK_CERT_PATH", "_.b.example.crt")
        .env("LEGO_HOOK_CERT_KEY_PATH", "_.b.example.key")
        .env("LEGO_HOOK_ISSUER_CERT_PATH", "_.b.example.issuer.crt")
        .env("LEGO_HOOK_CERT_PEM_PATH", "_.b.example.pem")
        .succeeds();
    assert_eq!(output.json()["source"]["client"], "lego");
    let chain = served_record(&service, &["x.b.example", "b.example"]).chain;
    assert_eq!(chain, certificates(&files.read("_.b.example.crt")));
}

#[test]
fn a_chain_that_lego_5_did_not_bundle_is_completed_from_the_issuers_file() {
    let service = sandbox(&["b.example"]);
    let files = directory();
    keep(&files, "b.example", &["b.example"]);
    openssl(files.path(), &["x509", "-in", "b.example.crt", "-out", "b.example.crt"]);
    edgecert()
        .against(&service)
        .env("LEGO_HOOK_CERT_PATH", files.file("b.example.crt"))
        .env("LEGO_HOOK_CERT_KEY_PATH", files.file("b.example.key"))
        .env("LEGO_HOOK_ISSUER_CERT_PATH", files.file("b.example.issuer.crt"))
        .succeeds();
    let bundle = files.read("b.example.crt") + &files.read("b.example.issuer.crt");
    assert_eq!(only_record(&service).chain, certificates(&bundle));
}

#[test]
fn a_staging_directory_of_lego_5_is_refused() {
    let service = sandbox(&["b.example"]);
    let files = directory();
    keep(&files, "b.example", &["b.example"]);
    let hook = edgecert().against(&service).env("LEGO_HOOK_CERT_PATH", files.file("b.example.crt"));
    hook.env("LEGO_HOOK_CERT_KEY_PATH", files.file("b.example.key"))
        .env("LEGO_HOOK_ACCOUNT_SERVER", "https://acme-staging-v02.api.letsencrypt.org/directory")
        .exits_with(65);
    assert_eq!(service.requests().len(), 0);
}

#[test]
fn a_directory_with_two_lineages_is_no_lineage_and_both_are_named() {
    let service = sandbox(&["a.example", "b.example"]);
    let files = directory();
    keep(&files, "a.example", &["a.example"]);
    keep(&files, "b.example", &["b.example"]);
    let hook = edgecert().against(&service).args(["--lineage"]).args([files.path()]);
    let stderr = hook.exits_with(66).stderr;
    assert!(stderr.contains("a.example") && stderr.contains("b.example"), "{stderr}");
    assert_eq!(service.requests().len(), 0);
}
