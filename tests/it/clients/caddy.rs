//! Caddy, which manages certificates itself and has no hook in Debian's build: `sync` finds them in its storage.

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use crate::harness::{Fault, Sandbox, require, sandbox};

use super::{Client, Pebble, certificates, served_record};

/// A running server with its storage, killed on drop.
struct Caddy {
    process: Child,
}

impl Caddy {
    /// Starts a server that gets a certificate from this CA and keeps it below `storage` in the home of the hook.
    fn start(hook: &Client, ca: &Pebble, domain: &str) -> Self {
        require("caddy", "caddy");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
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
        hook.write("caddy.json", &config.to_string());
        let log = fs::File::create(hook.path("caddy.log")).unwrap();
        let mut command = Command::new("caddy");
        command.args(["run", "--config", "caddy.json"]).current_dir(hook.path("."));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", hook.path("."));
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Self { process }
    }

    /// Waits until the storage holds a certificate, and returns its path.
    fn certificate(&mut self, hook: &Client, domain: &str) -> String {
        const MAX_ATTEMPTS: u32 = 3_000;
        const RETRY_DELAY: Duration = Duration::from_millis(10);
        for _ in 0..MAX_ATTEMPTS {
            let pattern = hook.path_text(&format!("storage/certificates/*/{domain}/{domain}.json"));
            if let Some(found) = glob::glob(&pattern).unwrap().next() {
                let certificate = found.unwrap().with_extension("crt");
                return certificate.into_os_string().into_string().unwrap();
            }
            if let Some(status) = self.process.try_wait().unwrap() {
                panic!("caddy exited, {status}: {}", hook.read("caddy.log"));
            }
            sleep(RETRY_DELAY);
        }
        panic!("caddy got no certificate: {}", hook.read("caddy.log"));
    }
}

impl Drop for Caddy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
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
    let mut caddy = Caddy::start(&hook, &ca, "a.example");
    let certificate = caddy.certificate(&hook, "a.example");
    let output = hook.run(["-c", "./edgecert sync"]).succeeds();
    assert!(output.stdout.contains("1 lineage: 1 deployed"), "{}", output.stdout);
    let chain = certificates(&fs::read_to_string(&certificate).unwrap());
    assert_eq!(served_record(&service, &["a.example"]).chain, chain);

    // A renewal, as Caddy does it after it lost the certificate.
    drop(caddy);
    fs::remove_dir_all(hook.path("storage/certificates")).unwrap();
    let mut caddy = Caddy::start(&hook, &ca, "a.example");
    let renewed = caddy.certificate(&hook, "a.example");
    let renewed = certificates(&fs::read_to_string(renewed).unwrap());
    assert_ne!(renewed, chain);
    let unavailable = Fault::status("POST /api/certs/upload", 503).header("Retry-After", "3600");
    service.add_fault(unavailable.times(99));
    hook.run(["-c", "./edgecert sync"]).exits_with(75);
    assert_eq!(served_record(&service, &["a.example"]).chain, chain);
    service.clear_faults();
    hook.run(["-c", "./edgecert sync"]).succeeds();
    assert_eq!(served_record(&service, &["a.example"]).chain, renewed);
}
