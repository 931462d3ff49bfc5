//! lego as `hooks/lego/edgecert-lego` runs it from cron, with RSA and EC keys, under dash and bash: the real version 4,
//! and version 5 by its contract.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::Value;

use crate::harness::{Sandbox, require, sandbox, state_files, sync};

use super::{
    Client, ClientCertificate, ClientOutput, Pebble, assert_sequence, certificates, client_of, cron_command,
    served_record,
};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/hooks/lego/edgecert-lego");
const DOMAINS: [&str; 2] = ["a.example", "www.a.example"];

/// lego 5 as far as the script uses it: lego 4 orders the certificate, the rest follows the contract of version 5.
const LEGO_5: &str = r#"
if [ "$1 ${2:-}" = "run --help" ]; then echo "   --deploy-hook string  Hook"; exit; fi
if [ "$1" != run ]; then echo "No help topic for '$1'" >&2; exit 3; fi
shift
count=$# force='' hook=''
while [ "$count" -gt 0 ]; do
    word=$1 count=$((count - 1))
    shift
    case $word in
        --deploy-hook) hook=$1 count=$((count - 1)); shift ;;
        --renew-force) force=yes ;;
        --no-random-sleep) ;;
        *) set -- "$@" "$word" ;;
    esac
done
files=$LEGO_PATH/certificates/a.example
if [ ! -e "$files.crt" ]; then /usr/bin/lego "$@" run || exit 1
elif [ "$force" ]; then /usr/bin/lego "$@" renew --days 9999 --no-random-sleep || exit 1
else echo "Skip renewal" >&2; exit 0
fi
openssl pkcs8 -topk8 -nocrypt -in "$files.key" -out "$files.pkcs8" && mv "$files.pkcs8" "$files.key" || exit 1
export LEGO_HOOK_ACCOUNT_EMAIL=ops@a.example LEGO_HOOK_ACCOUNT_SERVER=https://acme.example/directory
export LEGO_HOOK_CERT_NAME=a.example LEGO_HOOK_CERT_DOMAINS=a.example,www.a.example
export LEGO_HOOK_CERT_PATH="$files.crt" LEGO_HOOK_CERT_KEY_PATH="$files.key"
export LEGO_HOOK_ISSUER_CERT_PATH="$files.issuer.crt"
$hook || exit 1
"#;

/// A host whose cron job runs the script in this shell, and the CA that issues to it.
struct Host {
    shell: Client,
    ca: Pebble,
    /// The options that renew a certificate that is not due.
    renew_options: &'static str,
}

impl Host {
    fn deploying_to(service: &Sandbox, shell: &str) -> Self {
        require("lego", "lego");
        let ca = Pebble::start();
        let shell = Client::new(shell, shell).env("LEGO_CA_CERTIFICATES", ca.ca_file()).deploying_to(service);
        let program = shell.hook();
        shell.write("web/empty", "");
        let shell = shell.env("EDGECERT_BIN", program);
        Self { shell, ca, renew_options: "--days 9999 --no-random-sleep" }
    }

    /// The host with lego 5 instead of lego 4.
    fn with_lego_5(self) -> Self {
        self.shell.script("bin/lego", LEGO_5);
        Self { renew_options: "--renew-force --no-random-sleep", ..self }
    }

    /// The cron line, with these variables before it.
    fn cron(&self, variables: &str, domain: &str, options: &str) -> ClientOutput {
        let (shell, server) = (self.shell.program_text(), self.ca.directory());
        let line = format!(
            "PATH=bin:$PATH {variables} {shell} {SCRIPT} '{domain}' {options} --accept-tos --email ops@a.example \
             --server {server}"
        );
        self.shell.run(["-c", &line])
    }

    /// A certificate with its own `LEGO_PATH`.
    fn certificate(&self, directory: &'static str, key_type: &'static str) -> ClientCertificate<'_> {
        let run = move |renew_options: &str| {
            let path = self.shell.path_text(directory);
            let variables = format!("LEGO_PATH={path} LEGO_RENEW_OPTIONS='{renew_options}'");
            let options = format!("--domains {} --key-type {key_type} --http --http.webroot web", DOMAINS[1]);
            self.cron(&variables, DOMAINS[0], &options)
        };
        let directory = self.shell.path(directory).join("certificates");
        ClientCertificate {
            client: &self.shell,
            files: ["a.example.crt", "a.example.key"].map(|name| directory.join(name)),
            issue: Box::new(move || run("")),
            renew: Box::new(move || run(self.renew_options)),
        }
    }
}

#[test]
fn lego_script_survives_failed_renewal() {
    let rows = [
        ("dash", false, "rsa2048", "RSA-2048", 75, "no renewal"),
        ("bash", true, "ec256", "P-256", 1, "Skip renewal"),
    ];
    for (shell, is_lego_5, lego_type, key_type, failure, message) in rows {
        let service = sandbox(&DOMAINS);
        let host = Host::deploying_to(&service, shell);
        let host = if is_lego_5 { host.with_lego_5() } else { host };
        let certificate = host.certificate("lego", lego_type);
        assert_sequence(&service, &certificate, &DOMAINS, key_type, failure);
        let output = certificate.issue().succeeds();
        assert!(output.stderr.contains(message), "{}", output.stderr);
        for directory in ["lego", "lego/certificates"] {
            assert_eq!(client_of(&host.shell, directory), "lego", "{directory}");
        }
    }
}

/// The line as written at the head of the script, but for the webroot.
#[test]
fn cron_line_of_lego_script_deploys() {
    for with_lego_5 in [false, true] {
        let domains = ["example.com", "www.example.com"];
        let service = sandbox(&domains);
        let mut host = Host::deploying_to(&service, "dash");
        if with_lego_5 {
            host.shell.script("bin/lego", &LEGO_5.replace("a.example", "example.com"));
        }
        let (path, server) = (host.shell.path("lego"), host.ca.directory());
        host.shell = host.shell.env("LEGO_PATH", path);
        let line = cron_command("lego/edgecert-lego", SCRIPT).replace("/var/www/html", "web");
        let line = format!("PATH=bin:$PATH {line} --server {server}");
        host.shell.run(["-c", &line]).succeeds();
        let chain = certificates(&host.shell.read("lego/certificates/example.com.crt"));
        assert_eq!(served_record(&service, &domains).chain, chain, "lego 5: {with_lego_5}");
    }
}

/// The hook of the real lego 4 gets the signal that lego sends after 2 minutes.
#[test]
fn sync_finishes_deployment_killed_by_lego() {
    let service = sandbox(&DOMAINS);
    let mut host = Host::deploying_to(&service, "dash");
    let pipe = host.shell.path("stderr");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let hook = host.shell.script("hook", "exec 2>stderr\necho $$ >&2\nexec ./edgecert -v\n");
    host.shell = host.shell.env("EDGECERT_BIN", hook);
    let certificate = host.certificate("lego", "ec256");
    service.hold_pushes(true);
    let output = thread::scope(|scope| {
        let run = scope.spawn(|| certificate.issue());
        let mut lines = BufReader::new(File::open(&pipe).unwrap()).lines().map(Result::unwrap);
        let process = lines.next().unwrap();
        let waiting = lines.find(|line| line.contains("waiting for the edge"));
        assert!(waiting.is_some(), "the hook waits until it is killed");
        assert!(Command::new("kill").args(["-KILL", &process]).status().unwrap().success());
        run.join().unwrap()
    });
    assert!(output.exits_with(255).stderr.contains("signal: killed"));
    service.hold_pushes(false);

    let again = certificate.issue().succeeds();
    assert!(again.stderr.contains("no renewal"), "lego does not repeat the hook: {}", again.stderr);
    let state = host.shell.path("state");
    let pending = || {
        let file = fs::read(&state_files(&state)[0]).unwrap();
        serde_json::from_slice::<Value>(&file).unwrap()["pending_since"].is_string()
    };
    assert!(pending(), "the deployment was killed");
    sync(&service, &state).env("EDGECERT_ALLOW_UNTRUSTED", "true").succeeds();
    assert!(!pending());
    assert_eq!(served_record(&service, &DOMAINS).chain, certificate.chain());
}

/// The file of a wildcard has another name than the domain. If the script missed it, it would order a certificate in every
/// run.
#[test]
fn lego_script_finds_wildcard_certificate() {
    for shell in ["dash", "bash"] {
        let client = Client::new(shell, shell);
        client.script("bin/lego", "if [ \"$*\" != \"run --help\" ]; then echo \"$@\"; fi\n");
        let program = client.hook();
        let command = |domain: &str| {
            let line = format!(
                "PATH=bin:$PATH LEGO_PATH=lego EDGECERT_BIN={program} {shell} {SCRIPT} '{domain}' --http"
            );
            client.run(["-c", &line]).succeeds().stdout
        };
        let hook = format!("-hook {program}\n");
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
