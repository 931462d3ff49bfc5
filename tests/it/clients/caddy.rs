//! Caddy, which manages certificates itself and has no hook in Debian's build: `sync` finds them in its storage.

use std::fs;

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{Daemon, Sandbox, sandbox};

use super::pebble::free_port;
use super::{Client, Pebble, certificates, fail_uploads, served_record};

/// Starts a server that gets a certificate from this CA and keeps it below `storage` in the home of the hook; returns the
/// path of the certificate.
fn start(hook: &Client, ca: &Pebble, domain: &str) -> (Daemon, String) {
    let port = free_port();
    let server = json!({
        "listen": [format!("127.0.0.1:{port}")],
        "routes": [{"match": [{"host": [domain]}], "handle": [{"handler": "static_response"}]}],
        "automatic_https": {"disable_redirects": true},
    });
    let issuer = json!({
        "module": "acme",
        "ca": ca.directory(),
        "trusted_roots_pem_files": [ca.ca_file()],
        "challenges": {"http": {"disabled": true}, "tls-alpn": {"alternate_port": port}},
    });
    let config = json!({
        "admin": {"disabled": true},
        "storage": {"module": "file_system", "root": hook.path("storage")},
        "apps": {
            "http": {"https_port": port, "servers": {"edge": server}},
            "tls": {"automation": {"policies": [{"subjects": [domain], "issuers": [issuer]}]}},
        },
    });
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("caddy.json"), config.to_string()).unwrap();
    let mut caddy = Daemon::start(directory, "caddy", "caddy", &["run", "--config", "caddy.json"]);
    let pattern = hook.path_text(&format!("storage/certificates/*/{domain}/{domain}.json"));
    let found = caddy.wait_for("certificate", |_| glob::glob(&pattern).unwrap().next());
    let certificate = found.unwrap().with_extension("crt").into_os_string().into_string().unwrap();
    (caddy, certificate)
}

/// A host with the configuration of the recipe: a pattern for the storage of Caddy.
fn host(service: &Sandbox) -> Client {
    let hook = Client::new("sh", "dash").deploying_to(service);
    let pattern = hook.path_text("storage/certificates/*/*");
    hook.write("config.toml", &format!("[[lineage]]\npath = '{pattern}'\n"));
    let config = hook.path("config.toml");
    hook.env("EDGECERT_CONFIG", config)
}

#[test]
fn sync_deploys_what_caddy_gets() {
    let service = sandbox(&["a.example"]);
    let (hook, ca) = (host(&service), Pebble::start());
    // Nothing is there yet.
    hook.run(["-c", "./edgecert sync"]).succeeds();
    let (caddy, certificate) = start(&hook, &ca, "a.example");
    let output = hook.run(["-c", "./edgecert sync"]).succeeds();
    assert!(output.stdout.contains("1 lineage: 1 deployed"), "{}", output.stdout);
    let chain = certificates(&fs::read_to_string(&certificate).unwrap());
    assert_eq!(served_record(&service, &["a.example"]).chain, chain);

    // A renewal, as Caddy does it after it lost the certificate.
    drop(caddy);
    fs::remove_dir_all(hook.path("storage/certificates")).unwrap();
    let (_caddy, renewed) = start(&hook, &ca, "a.example");
    let renewed = certificates(&fs::read_to_string(renewed).unwrap());
    assert_ne!(renewed, chain);
    fail_uploads(&service);
    hook.run(["-c", "./edgecert sync"]).exits_with(75);
    assert_eq!(served_record(&service, &["a.example"]).chain, chain);
    service.clear_faults();
    hook.run(["-c", "./edgecert sync"]).succeeds();
    assert_eq!(served_record(&service, &["a.example"]).chain, renewed);
}
