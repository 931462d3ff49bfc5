//! lego: the real version 4 with its two hook flags, and an emulation of version 5's variables and files.

use std::fs;

use crate::harness::{Lineage, Sandbox, edgecert, openssl, request_lines, sandbox, test_ca};

use super::{Client, ClientOutput, Pebble, certificates, only_record, served_record};

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
}

#[test]
fn lego_directory_is_a_lineage() {
    let service = sandbox(&["a.example", "www.a.example"]);
    let lego = Lego::deploying_to(&service).with_service_down();
    lego.obtain().exits_with(75);
    for directory in ["lego", "lego/certificates"] {
        let hook = edgecert().against(&service).args(["--json", "--allow-untrusted", "--lineage"]);
        let output = hook.args([lego.client.path(directory)]).succeeds();
        assert_eq!(output.json()["source"]["client"], "lego", "{directory}");
        assert_eq!(served_record(&service, &["a.example", "www.a.example"]).chain, lego.chain());
    }
}

/// Issues a certificate and writes its files as lego names them.
fn write_certificate(directory: &Lineage, stem: &str, names: &[&str]) {
    let issued = test_ca().issue(names).unwrap();
    directory.write(&format!("{stem}.crt"), &issued.fullchain());
    directory.write(&format!("{stem}.issuer.crt"), &issued.chain);
    directory.write(&format!("{stem}.key"), &issued.key);
    directory.write(&format!("{stem}.json"), "{}");
}

/// A lineage directory without files.
fn empty_directory() -> Lineage {
    let lineage = Lineage::issued_for(&["unused.example"]);
    for name in ["cert.pem", "chain.pem", "fullchain.pem", "privkey.pem"] {
        fs::remove_file(lineage.file(name)).unwrap();
    }
    lineage
}

#[test]
fn lego_5_is_recognised_by_its_variables() {
    let service = sandbox(&["x.b.example", "b.example"]);
    let files = empty_directory();
    write_certificate(&files, "_.b.example", &["*.b.example", "b.example"]);
    assert!(files.read("_.b.example.key").starts_with("-----BEGIN PRIVATE KEY-----"));
    let mut hook = edgecert().against(&service).args(["--json"]);
    // lego passes relative paths after `--path .`
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
fn lego_5_issuer_file_completes_chain() {
    let service = sandbox(&["b.example"]);
    let files = empty_directory();
    write_certificate(&files, "b.example", &["b.example"]);
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
fn lego_5_staging_directory_is_refused() {
    let service = sandbox(&["b.example"]);
    let files = empty_directory();
    write_certificate(&files, "b.example", &["b.example"]);
    let hook = edgecert().against(&service).env("LEGO_HOOK_CERT_PATH", files.file("b.example.crt"));
    hook.env("LEGO_HOOK_CERT_KEY_PATH", files.file("b.example.key"))
        .env("LEGO_HOOK_ACCOUNT_SERVER", "https://acme-staging-v02.api.letsencrypt.org/directory")
        .exits_with(65);
    assert_eq!(service.requests().len(), 0);
}

#[test]
fn two_lineages_in_one_directory_are_refused() {
    let service = sandbox(&["a.example", "b.example"]);
    let files = empty_directory();
    write_certificate(&files, "a.example", &["a.example"]);
    write_certificate(&files, "b.example", &["b.example"]);
    let hook = edgecert().against(&service).args(["--lineage"]).args([files.path()]);
    let stderr = hook.exits_with(66).stderr;
    assert!(stderr.contains("a.example") && stderr.contains("b.example"), "{stderr}");
    assert_eq!(service.requests().len(), 0);
}
