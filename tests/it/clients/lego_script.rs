//! lego 4 as `hooks/lego/edgecert-lego` runs it from cron, with RSA and EC keys, under dash and bash.

use std::path::{Path, PathBuf};

use crate::harness::{Sandbox, require, sandbox};

use super::{Client, ClientCertificate, ClientOutput, Pebble, assert_later_wins, assert_sequence};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hooks/lego/edgecert-lego");
const DOMAINS: [&str; 2] = ["a.example", "www.a.example"];

/// A host whose cron job runs the script in this shell, and the CA that issues to it.
struct Host {
    shell: Client,
    ca: Pebble,
}

impl Host {
    fn deploying_to(service: &Sandbox, shell: &str) -> Self {
        require("lego", "lego");
        let ca = Pebble::start();
        let shell = Client::new(shell, shell).env("LEGO_CA_CERTIFICATES", ca.ca_file()).deploying_to(service);
        let program = shell.path("edgecert");
        shell.write("web/empty", "");
        Self { shell: shell.env("EDGECERT_BIN", program), ca }
    }

    /// The cron line, with these variables before it.
    fn cron(&self, variables: &str, domain: &str, options: &str) -> ClientOutput {
        let (shell, server) = (self.shell.program_text(), self.ca.directory());
        let line = format!(
            "{variables} {shell} {SCRIPT} '{domain}' {options} --accept-tos --email ops@a.example \
             --server {server}"
        );
        self.shell.run(["-c", &line])
    }

    fn certificate(&self, directory: &'static str, key_type: &'static str) -> Certificate<'_> {
        Certificate { host: self, directory, key_type }
    }
}

/// A certificate with its own `LEGO_PATH`.
struct Certificate<'a> {
    host: &'a Host,
    directory: &'static str,
    key_type: &'static str,
}

impl Certificate<'_> {
    fn run(&self, renew_options: &str) -> ClientOutput {
        let path = self.host.shell.path_text(self.directory);
        let variables = format!("LEGO_PATH={path} LEGO_RENEW_OPTIONS='{renew_options}'");
        let options =
            format!("--domains {} --key-type {} --http --http.webroot web", DOMAINS[1], self.key_type);
        self.host.cron(&variables, DOMAINS[0], &options)
    }
}

impl ClientCertificate for Certificate<'_> {
    fn client(&self) -> &Client {
        &self.host.shell
    }

    fn files(&self) -> [PathBuf; 2] {
        let directory = self.host.shell.path(self.directory).join("certificates");
        ["a.example.crt", "a.example.key"].map(|name| directory.join(name))
    }

    fn issue(&self) -> ClientOutput {
        self.run("")
    }

    fn renew(&self) -> ClientOutput {
        self.run("--days 9999 --no-random-sleep")
    }
}

#[test]
fn lego_script_survives_failed_renewal() {
    for (shell, lego_type, key_type) in [("dash", "rsa2048", "RSA-2048"), ("bash", "ec256", "P-256")] {
        let service = sandbox(&DOMAINS);
        let host = Host::deploying_to(&service, shell);
        let certificate = host.certificate("lego", lego_type);
        assert_sequence(&service, &certificate, &DOMAINS, key_type, 75);
        let output = certificate.run("").succeeds();
        assert!(output.stderr.contains("no renewal"), "{}", output.stderr);
    }
}

#[test]
fn lego_keys_of_both_types_share_site() {
    let service = sandbox(&DOMAINS);
    let host = Host::deploying_to(&service, "dash");
    let certificates = [host.certificate("lego-rsa", "rsa2048"), host.certificate("lego-ec", "ec256")];
    assert_later_wins(&service, [&certificates[0], &certificates[1]], &DOMAINS);
}

/// The file of a wildcard has another name than the domain. If the script missed it, it would order a certificate in every
/// run.
#[test]
fn lego_script_finds_wildcard_certificate() {
    for shell in ["dash", "bash"] {
        let client = Client::new(shell, shell);
        client.script("bin/lego", "echo \"$@\"\n");
        let command = |domain: &str| {
            let line = format!("PATH=bin:$PATH LEGO_PATH=lego {shell} {SCRIPT} '{domain}' --http");
            client.run(["-c", &line]).succeeds().stdout
        };
        let hook = "-hook /usr/local/bin/edgecert\n";
        for (domain, file) in [("*.a.example", "_.a.example.crt"), ("a.example", "a.example.crt")] {
            assert_eq!(command(domain), format!("--domains {domain} --http run --run{hook}"));
            client.write(&format!("lego/certificates/{file}"), "");
            assert_eq!(command(domain), format!("--domains {domain} --http renew --renew{hook}"));
        }
    }
}

#[test]
fn lego_script_refuses_unknown_files() {
    for shell in ["dash", "bash"] {
        let service = sandbox(&[]);
        let host = Host::deploying_to(&service, shell);
        for (domain, options) in [
            ("", ""),
            ("--domains", "a.example"),
            ("b\u{fc}cher.example", ""),
            ("A.example", ""),
            ("../a.example", ""),
            ("a.example", "--path lego"),
            ("a.example", "--path=lego"),
            ("a.example", "-path lego"),
            ("a.example", "--filename a"),
            ("a.example", "--csr a.csr"),
        ] {
            let output = host.cron("LEGO_PATH=lego", domain, options).exits_with(2);
            assert!(output.stderr.contains("edgecert-lego"), "{domain} {options}: {}", output.stderr);
        }
        assert!(!Path::new(&host.shell.path("lego")).exists());
    }
}
