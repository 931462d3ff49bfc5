//! Runs Pebble, the ACME test server, on free loopback ports. It accepts every challenge.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio, id};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::sleep;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{require, test_ca};

/// A running Pebble server, killed on drop.
pub(crate) struct Pebble {
    process: Child,
    port: u16,
    files: TempDir,
}

impl Pebble {
    /// Starts a server and waits until it accepts connections.
    pub(crate) fn start() -> Self {
        let files = TempDir::new().unwrap();
        let api = test_ca().issue(&["127.0.0.1", "localhost"]).unwrap();
        fs::write(files.path().join("api.pem"), api.fullchain()).unwrap();
        fs::write(files.path().join("api.key"), &api.key).unwrap();
        fs::write(files.path().join(CA_FILE), test_ca().root()).unwrap();
        let (port, management) = (free_port(), free_port());
        let config = json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{port}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": files.path().join("api.pem"),
            "privateKey": files.path().join("api.key"),
            "httpPort": 80,
            "tlsPort": 443,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": false,
        }});
        fs::write(files.path().join("config.json"), config.to_string()).unwrap();
        let log = fs::File::create(files.path().join(LOG)).unwrap();
        require("pebble", "pebble");
        let process = Command::new("pebble")
            .args(["-config", "config.json"])
            .current_dir(files.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("PEBBLE_VA_ALWAYS_VALID", "1")
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_WFE_NONCEREJECT", "0")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut pebble = Self { process, port, files };
        pebble.wait_until_ready();
        pebble
    }

    /// The URL of the ACME directory.
    pub(crate) fn directory(&self) -> String {
        format!("https://127.0.0.1:{}/dir", self.port)
    }

    /// The CA of its HTTPS API, which is not the CA of the certificates that it issues.
    pub(crate) fn ca_file(&self) -> PathBuf {
        self.files.path().join(CA_FILE)
    }

    fn wait_until_ready(&mut self) {
        for _ in 0..MAX_ATTEMPTS {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return;
            }
            if let Some(status) = self.process.try_wait().unwrap() {
                panic!("pebble exited, {status}: {}", self.log());
            }
            sleep(RETRY_DELAY);
        }
        panic!("pebble does not answer: {}", self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.files.path().join(LOG)).unwrap()
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Finds a free port below the ephemeral range, so that the system does not assign it to another process meanwhile.
fn free_port() -> u16 {
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
const LOG: &str = "log";
const MAX_ATTEMPTS: u32 = 3_000;
const RETRY_DELAY: Duration = Duration::from_millis(10);
