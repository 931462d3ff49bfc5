//! uacme, which has no deploy hook: a cron line runs the hook after it.

use std::fs;

use crate::harness::der::{self, OCTET_STRING};
use crate::harness::{Sandbox, openssl, request_lines, require, require_tracer, sandbox};

use super::{Client, ClientOutput, Pebble, certificates, served_record};

/// The shell that runs the cron line, and the CA that issues to uacme.
struct Uacme {
    shell: Client,
    ca: Pebble,
}

impl Uacme {
    fn deploying_to(service: &Sandbox) -> Self {
        require("uacme", "uacme");
        require_tracer("proot");
        let uacme = Self { shell: Client::new("sh", "dash").deploying_to(service), ca: Pebble::start() };
        uacme.line("new", "").succeeds();
        uacme
    }

    /// Runs `uacme … COMMAND SUFFIX` in the shell. uacme has no option for trusted CAs, so proot replaces the system's
    /// trust store.
    fn line(&self, command: &str, suffix: &str) -> ClientOutput {
        let (directory, trusted) = (self.ca.directory(), self.ca.ca_file());
        let proot = format!("proot -b '{}':/etc/ssl/certs/ca-certificates.crt", trusted.display());
        let uacme = format!("uacme --yes --confdir uacme --type EC --acme-url {directory}");
        self.shell.run(["-c", &format!("{proot} {uacme} {command} {suffix}")])
    }

    /// Runs the cron line of uacme's documentation. `true` accepts every challenge.
    fn cron(&self, options: &str) -> ClientOutput {
        let hook = "./edgecert --cert uacme/a.example/cert.pem --key uacme/private/a.example/key.pem";
        self.line(&format!("--no-ocsp --hook /bin/true {options} issue a.example"), &format!("&& {hook}"))
    }

    fn chain(&self) -> Vec<String> {
        certificates(&self.shell.read("uacme/a.example/cert.pem"))
    }
}

#[test]
fn uacme_deploys_and_renews_one_record() {
    let service = sandbox(&["a.example"]);
    let uacme = Uacme::deploying_to(&service);

    let output = uacme.cron("").succeeds();
    assert!(output.stdout.contains("(created), bound to "), "{}", output.stdout);
    let first = served_record(&service, &["a.example"]);
    assert_eq!(first.chain, uacme.chain());

    let requests = request_lines(&service).len();
    uacme.cron("").exits_with(1);
    assert_eq!(
        request_lines(&service).len(),
        requests,
        "uacme exits 1 for a current certificate, so the hook must not run"
    );

    let output = uacme.cron("--force").succeeds();
    assert!(output.stdout.contains("(replaced), bound to "), "{}", output.stdout);
    let renewed = served_record(&service, &["a.example"]);
    assert_eq!((renewed.id, &renewed.chain), (first.id, &uacme.chain()));
    assert_ne!(renewed.chain, first.chain, "uacme issues a new certificate for the same key");
}

/// A P-256 key whose private number begins with a zero, written without it, as uacme may write it.
fn shortened_key(client: &Client) -> String {
    let fields = [&[2, 1, 1, 4, 32, 0], [0x5a; 31].as_slice(), &[0xa0, 10], &der::oid("1.2.840.10045.3.1.7")];
    client.write("number.pem", &der::pem("EC PRIVATE KEY", &der::tlv(der::SEQUENCE, &fields.concat())));
    openssl(&client.path("."), &["ec", "-in", "number.pem", "-outform", "DER", "-out", "key.der"]);
    let key = fs::read(client.path("key.der")).unwrap();
    let mut fields: Vec<Vec<u8>> = der::elements(&key).into_iter().map(<[u8]>::to_vec).collect();
    fields[1] = der::tlv(OCTET_STRING, &der::content(&fields[1])[1..]);
    der::pem("EC PRIVATE KEY", &der::sequence(&fields))
}

#[test]
fn uacme_key_without_zeros_deploys() {
    let service = sandbox(&["a.example"]);
    let uacme = Uacme::deploying_to(&service);
    let key = shortened_key(&uacme.shell);
    uacme.shell.write("uacme/private/a.example/key.pem", &key);
    let output = uacme.cron("").succeeds();
    assert_eq!(uacme.shell.read("uacme/private/a.example/key.pem"), key, "uacme must have used this key");
    let repair = "key.pem: wrote the private number in 32 bytes instead of 31, as RFC 5915 requires";
    assert!(output.stderr.contains(repair), "{}", output.stderr);
    assert_eq!(served_record(&service, &["a.example"]).chain, uacme.chain());
}
