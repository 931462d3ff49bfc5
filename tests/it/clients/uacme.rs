//! uacme, which has no deploy hook: the hook stands behind it in a cron line.

use crate::harness::{Sandbox, request_lines, sandbox};

use super::{Client, Pebble, Ran, certificates, served_record};

/// The shell that cron starts, and the CA that uacme renews from.
struct Uacme {
    shell: Client,
    ca: Pebble,
}

impl Uacme {
    fn deploying_to(service: &Sandbox) -> Self {
        let uacme = Self { shell: Client::new("sh", "dash").deploying_to(service), ca: Pebble::start() };
        uacme.line("new", "").succeeds();
        uacme
    }

    /// `uacme … COMMAND` and what follows, as one line of shell. uacme cannot be told whom to trust, so that proot
    /// shows it another trust store.
    fn line(&self, command: &str, then: &str) -> Ran {
        let (directory, trusted) = (self.ca.directory(), self.ca.ca_file());
        let proot = format!("proot -b '{}':/etc/ssl/certs/ca-certificates.crt", trusted.display());
        let uacme = format!("uacme --yes --confdir uacme --type EC --acme-url {directory}");
        let ran = self.shell.run(["-c", &format!("{proot} {uacme} {command} {then}")]);
        let is_there = ran.code != 127 && !ran.stderr.contains("'uacme' not found");
        assert!(
            is_there,
            "cannot run uacme, or proot, which are in Debian's uacme and proot: {}",
            ran.stderr
        );
        ran
    }

    /// The pattern of uacme's own documentation. `true` accepts every challenge.
    fn cron(&self, options: &str) -> Ran {
        let hook = "./edgecert --cert uacme/a.example/cert.pem --key uacme/private/a.example/key.pem";
        self.line(&format!("--no-ocsp --hook /bin/true {options} issue a.example"), &format!("&& {hook}"))
    }

    fn chain(&self) -> Vec<String> {
        certificates(&self.shell.read("uacme/a.example/cert.pem"))
    }
}

#[test]
fn uacme_and_the_hook_in_one_line_deploy_each_new_certificate_under_one_id() {
    let service = sandbox(&["a.example"]);
    let uacme = Uacme::deploying_to(&service);

    let ran = uacme.cron("").succeeds();
    assert!(ran.stdout.contains("created: true"), "{}", ran.stdout);
    let first = served_record(&service, &["a.example"]);
    assert_eq!(first.chain, uacme.chain());

    let requests = request_lines(&service).len();
    uacme.cron("").exits_with(1);
    assert_eq!(
        request_lines(&service).len(),
        requests,
        "uacme exits 1 for a current certificate, so the hook is not called"
    );

    let ran = uacme.cron("--force").succeeds();
    assert!(ran.stdout.contains("created: false"), "{}", ran.stdout);
    let renewed = served_record(&service, &["a.example"]);
    assert_eq!((renewed.id, &renewed.chain), (first.id, &uacme.chain()));
    assert_ne!(renewed.chain, first.chain, "a new certificate for the old key");
}
