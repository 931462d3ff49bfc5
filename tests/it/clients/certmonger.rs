//! certmonger with its own CA, and the post-save command of `hooks/certmonger`.

use crate::harness::{Sandbox, require, sandbox};

use super::recipe_file::{commands, recipe};
use super::{Client, ClientCertificate, assert_sequence};

const SCRIPT: &str = "certmonger/edgecert-certmonger";
const DOMAINS: [&str; 1] = ["example.com"];

/// The arguments of `unshare` before a command for the daemon: it has a message bus of its own, which starts it, and ends
/// with the command. Its requests are kept in the home.
const SESSION: [&str; 9] =
    ["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "dbus-run-session", "--", "sh", "-c"];

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

/// A certificate with the command at the head of the recipe. `getcert` waits until certmonger has run the post-save
/// command.
fn certificate(namespaces: &Client) -> ClientCertificate<'_> {
    let getcert = move |arguments: &str| {
        namespaces.run(SESSION.into_iter().chain([format!("getcert {arguments}").as_str()]))
    };
    let issue = move || {
        namespaces.write("tls/empty", "");
        let command = commands(SCRIPT).join("\n");
        let command = command.strip_prefix("getcert request -c CA ").unwrap();
        let command = command.replace("/etc/ssl/example.com", &namespaces.path_text("tls"));
        // certmonger passes no variables on.
        let program = format!("/usr/bin/env EDGECERT_BIN={}", namespaces.hook());
        let script = format!("{program} bash {}", recipe(SCRIPT).display());
        let command = command.replace("/usr/local/bin/edgecert-certmonger", &script);
        getcert(&format!("request -s -w -v -c local -G EC -g 256 {command}"))
    };
    ClientCertificate {
        client: namespaces,
        files: ["fullchain.pem", "privkey.pem"].map(|file| namespaces.path("tls").join(file)),
        issue: Box::new(issue),
        renew: Box::new(move || {
            getcert(&format!("resubmit -s -w -v -f {}", namespaces.path_text("tls/cert.pem")))
        }),
    }
}

#[test]
fn certmonger_ignores_failed_deployment() {
    require("bash", "bash");
    let service = sandbox(&DOMAINS);
    let namespaces = host(&service);
    let certificate = certificate(&namespaces);
    assert_sequence(&service, &certificate, &DOMAINS, "P-256", 0);
    assert_eq!(certificate.chain().len(), 2, "the certificate and its issuer");
}
