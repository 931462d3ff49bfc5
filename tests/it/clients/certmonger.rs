//! certmonger with its own CA, and the post-save command of `hooks/certmonger`, RSA and EC.

use std::path::PathBuf;

use crate::harness::{Sandbox, require, sandbox};

use super::recipe_file::{commands, recipe};
use super::{Client, ClientCertificate, ClientOutput, assert_sequence};

const SCRIPT: &str = "certmonger/edgecert-certmonger";
const DOMAINS: [&str; 1] = ["example.com"];

/// The arguments of `unshare` before a command for the daemon: it has a message bus of its own, which starts it, and ends
/// with the command. Its requests are kept in the home.
const SESSION: [&str; 9] =
    ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "dbus-run-session", "--", "sh", "-c"];

struct Certificate<'a> {
    namespaces: &'a Client,
    /// The directory of its files.
    directory: &'static str,
    /// Options of `getcert request` for the key.
    key: &'static str,
    /// What runs the script.
    shell: &'static str,
}

/// A host with edgecert's configuration, because certmonger passes no variables to its command.
fn host(service: &Sandbox) -> Client {
    require("certmonger", "certmonger");
    require("dbus-run-session", "dbus-daemon");
    let namespaces = Client::new("unshare", "util-linux").deploying_to(service);
    let ready = service.endpoints();
    let configuration = format!(
        "base_url = '{}'\nedge_address = '{}'\nallow_untrusted = true\napi_key_file = 'key'\nstate_dir = '{}'\n",
        ready.api,
        ready.edge,
        namespaces.path_text("state"),
    );
    namespaces.write(".config/edgecert/config.toml", &configuration);
    namespaces.write(".config/edgecert/key", &ready.api_key);
    namespaces
}

impl Certificate<'_> {
    /// Runs `getcert`, which waits until certmonger has run the post-save command.
    fn getcert(&self, arguments: &str) -> ClientOutput {
        self.namespaces.run(SESSION.into_iter().chain([format!("getcert {arguments}").as_str()]))
    }
}

impl ClientCertificate for Certificate<'_> {
    fn client(&self) -> &Client {
        self.namespaces
    }

    fn files(&self) -> [PathBuf; 2] {
        ["fullchain.pem", "privkey.pem"].map(|file| self.namespaces.path(self.directory).join(file))
    }

    /// Runs the command at the head of the recipe.
    fn issue(&self) -> ClientOutput {
        require(self.shell, self.shell);
        self.namespaces.write(&format!("{}/empty", self.directory), "");
        let command = commands(SCRIPT).join("\n");
        let command = command.strip_prefix("getcert request -c CA ").unwrap();
        let command = command.replace("/etc/ssl/example.com", &self.namespaces.path_text(self.directory));
        // certmonger passes no variables on.
        let program = format!("/usr/bin/env EDGECERT_BIN={}", self.namespaces.hook());
        let script = format!("{program} {} {}", self.shell, recipe(SCRIPT).display());
        let command = command.replace("/usr/local/bin/edgecert-certmonger", &script);
        self.getcert(&format!("request -s -w -v -c local {} {command}", self.key))
    }

    fn renew(&self) -> ClientOutput {
        let file = format!("{}/cert.pem", self.directory);
        self.getcert(&format!("resubmit -s -w -v -f {}", self.namespaces.path_text(&file)))
    }
}

const ECDSA: &str = "-G EC -g 256";

#[test]
fn certmonger_ignores_failed_deployment() {
    let service = sandbox(&DOMAINS);
    let namespaces = host(&service);
    let certificate = Certificate { namespaces: &namespaces, directory: "tls", key: ECDSA, shell: "bash" };
    assert_sequence(&service, &certificate, &DOMAINS, "P-256", 0);
    assert_eq!(certificate.chain().len(), 2, "the certificate and its issuer");
}
