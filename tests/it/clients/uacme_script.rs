//! uacme as `hooks/uacme/edgecert-uacme` runs it from cron, with RSA and EC keys, under dash and bash.

use std::fs;
use std::path::Path;

use crate::harness::{Sandbox, request_lines, require, require_tracer, sandbox};

use super::{
    Client, ClientCertificate, ClientOutput, Pebble, assert_sequence, certificates, cron_command,
    served_record,
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hooks/uacme/edgecert-uacme");
const DOMAINS: [&str; 2] = ["a.example", "www.a.example"];

/// A host whose cron job runs the script in this shell, and the CA that issues to it.
struct Host {
    shell: Client,
    ca: Pebble,
}

impl Host {
    /// uacme has no option for trusted CAs, so proot replaces the system's trust store.
    fn deploying_to(service: &Sandbox, shell: &str) -> Self {
        require("uacme", "uacme");
        require_tracer("proot");
        let (shell, ca) = (Client::new(shell, shell).deploying_to(service), Pebble::start());
        let trusted = format!("'{}':/etc/ssl/certs/ca-certificates.crt", ca.ca_file().display());
        shell.script("bin/uacme", &format!("exec proot -b {trusted} /usr/bin/uacme \"$@\"\n"));
        let program = shell.hook();
        Self { shell: shell.env("EDGECERT_BIN", program), ca }
    }

    /// A line of the shell in which `uacme` trusts the CA.
    fn line(&self, command: &str) -> ClientOutput {
        self.shell.run(["-c", &format!("PATH=bin:$PATH; set -e; {command}; echo the next command")])
    }

    /// A certificate with its own directory of configuration.
    fn certificate(&self, directory: &'static str, key_type: &'static str) -> ClientCertificate<'_> {
        let url = self.ca.directory();
        self.line(&format!("uacme --yes --confdir {directory} --acme-url {url} new")).succeeds();
        // The cron line. `true` accepts every challenge.
        let run = move |options: &str| {
            let (shell, url) = (self.shell.program_text(), self.ca.directory());
            self.line(&format!(
                "{shell} {SCRIPT} --acme-url {url} --confdir {directory} --type {key_type} --no-ocsp \
                 --hook /bin/true {options} issue {}",
                DOMAINS.join(" ")
            ))
        };
        let path = self.shell.path(directory);
        ClientCertificate {
            client: &self.shell,
            files: ["a.example/cert.pem", "private/a.example/key.pem"].map(|name| path.join(name)),
            issue: Box::new(move || run("")),
            renew: Box::new(move || {
                remove_earlier_certificates(&path.join("a.example"));
                run("--force")
            }),
        }
    }
}

/// uacme keeps the earlier certificate under the second of the renewal, and fails if that name exists: two renewals
/// within a second need one of them out of the way.
fn remove_earlier_certificates(directory: &Path) {
    for file in fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().starts_with("cert-") {
            fs::remove_file(path).unwrap();
        }
    }
}

#[test]
fn uacme_script_survives_failed_renewal() {
    let service = sandbox(&DOMAINS);
    let host = Host::deploying_to(&service, "bash");
    let certificate = host.certificate("uacme", "EC");
    let failed = assert_sequence(&service, &certificate, &DOMAINS, "P-256", 75);
    assert!(!failed.stdout.contains("the next command"), "set -e notices the failure: {}", failed.stdout);

    let requests = request_lines(&service).len();
    let current = certificate.issue().succeeds();
    assert_eq!((current.stdout.as_str(), current.stderr.as_str()), ("the next command\n", ""));
    assert_eq!(request_lines(&service).len(), requests, "a certificate that is not due is no failure");

    // Pebble does not know this account.
    host.shell.write("uacme/private/key.pem", "no key");
    certificate.renew().exits_with(2);
}

/// The line as written at the head of the script, with the hook for challenges of uacme's package.
#[test]
fn cron_line_of_uacme_script_deploys() {
    let domains = ["example.com", "www.example.com"];
    let service = sandbox(&domains);
    let mut host = Host::deploying_to(&service, "dash");
    host.shell.write("web/empty", "");
    let web = host.shell.path("web");
    host.shell = host.shell.env("UACME_CHALLENGE_PATH", web);
    // The account and the certificate are in the same directory.
    host.certificate("uacme", "EC");
    let program = format!("{SCRIPT} --acme-url {} --confdir uacme --no-ocsp", host.ca.directory());
    host.line(&cron_command("uacme/edgecert-uacme", &program)).succeeds();
    let chain = certificates(&host.shell.read("uacme/example.com/cert.pem"));
    assert_eq!(served_record(&service, &domains).chain, chain);
}

#[test]
fn uacme_script_finds_directory_of_certificate() {
    for shell in ["dash", "bash"] {
        let client = Client::new(shell, shell);
        client.script("bin/uacme", "echo uacme \"$@\"\nexit ${CODE:-0}\n");
        let hook = client.script("bin/hook", "echo \"$@\"\n");
        let run = |arguments: &str| {
            let line =
                format!("PATH=bin:$PATH EDGECERT_BIN={hook} CODE=${{CODE:-0}} {shell} {SCRIPT} {arguments}");
            client.run(["-c", &line])
        };
        for (arguments, lineage) in [
            ("issue a.example b.example", "/etc/ssl/uacme/a.example"),
            ("-t EC issue '*.a.example' a.example", "/etc/ssl/uacme/a.example"),
            ("-c dir issue a.example", "dir/a.example"),
            ("--confdir dir --type EC issue a.example", "dir/a.example"),
            ("--confdir=dir issue a.example", "dir/a.example"),
        ] {
            let words = arguments.replace('\'', "");
            assert_eq!(run(arguments).succeeds().stdout, format!("uacme {words}\n--lineage {lineage}\n"));
        }
        for arguments in ["", "issue", "--type EC", "update"] {
            let output = run(arguments).exits_with(2);
            assert!(output.stderr.starts_with("usage: "), "{arguments}: {}", output.stderr);
            assert_eq!(output.stdout, "", "uacme does not run");
        }
    }
}
