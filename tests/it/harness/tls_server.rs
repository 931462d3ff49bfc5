//! A TLS server other than the sandbox: `openssl s_server`, for certificates and protocols that the sandbox does not
//! offer.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use super::Lineage;

/// A server on loopback with one certificate for every name.
pub(crate) struct TlsServer {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl TlsServer {
    /// Starts a server with the leaf and key of a lineage, in its directory, with these arguments.
    pub(crate) fn start(lineage: &Lineage, arguments: &[&str]) -> Self {
        let mut child = Command::new("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0", "-naccept", "1000"])
            .args(["-cert", "cert.pem", "-key", "privkey.pem"])
            .args(arguments)
            .current_dir(lineage.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("cannot run here: openssl is not installed (Debian package openssl)");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("ACCEPT ")?.parse().ok());
        Self { child, address: address.expect("openssl s_server prints its address") }
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
