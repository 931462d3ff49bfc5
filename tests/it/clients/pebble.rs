//! Runs Pebble, the ACME test server, on free loopback ports. It accepts every challenge.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::id;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{Daemon, test_ca};

/// A running Pebble server, ended on drop.
pub(super) struct Pebble {
    process: Daemon,
    port: u16,
}

impl Pebble {
    /// Starts a server and waits until it accepts connections.
    pub(super) fn start() -> Self {
        let files = TempDir::new().unwrap();
        let write = |name: &str, text: &str| fs::write(files.path().join(name), text).unwrap();
        let api = test_ca().issue(&["127.0.0.1", "localhost"]).unwrap();
        write("api.pem", &api.fullchain());
        write("api.key", &api.key);
        write(CA_FILE, test_ca().root());
        let (port, management) = (free_port(), free_port());
        let config = json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{port}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": "api.pem",
            "privateKey": "api.key",
            "httpPort": 80,
            "tlsPort": 443,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": false,
        }});
        write("config.json", &config.to_string());
        let variables =
            [("PEBBLE_VA_ALWAYS_VALID", "1"), ("PEBBLE_VA_NOSLEEP", "1"), ("PEBBLE_WFE_NONCEREJECT", "0")];
        let arguments = ["-config", "config.json"];
        let mut process = Daemon::with_env(files, "pebble", "pebble", &arguments, &variables);
        process.wait_for("connection", |_| TcpStream::connect(("127.0.0.1", port)).ok());
        Self { process, port }
    }

    /// The URL of the ACME directory.
    pub(super) fn directory(&self) -> String {
        format!("https://127.0.0.1:{}/dir", self.port)
    }

    /// The CA of its HTTPS API, which is not the CA of the certificates that it issues.
    pub(super) fn ca_file(&self) -> PathBuf {
        self.process.path(CA_FILE)
    }
}

/// Finds a free port below the ephemeral range, so that the system does not assign it to another process meanwhile.
pub(super) fn free_port() -> u16 {
    static LAST: AtomicU16 = AtomicU16::new(0);
    loop {
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let spread = (id() % 1_000) * 20 + u32::from(number);
        let port = 10_000 + u16::try_from(spread % 20_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

const CA_FILE: &str = "ca.pem";
