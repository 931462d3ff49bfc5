//! nginx on loopback with a constant response, so that only the client is measured.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use edgecert_sandbox::Authority;
use tempfile::TempDir;

use crate::system;

/// The only path with a response.
pub(crate) const UPLOAD: &str = "/api/certs/upload";

/// A running nginx. Dropping it stops the process.
pub(crate) struct Server {
    process: Child,
    port: u16,
    /// Configuration, logs and temporary files.
    dir: TempDir,
}

impl Server {
    /// Starts nginx and waits until it accepts connections.
    pub(crate) fn start(authority: &Authority) -> Result<Self> {
        let nginx = system::find_program("nginx", "nginx")?;
        let dir = TempDir::new().context("cannot create a temporary directory")?;
        let port = free_port()?;
        write_files(dir.path(), authority, port)?;
        let process = Command::new(nginx)
            .args(["-e", "error.log", "-c", "nginx.conf", "-p"])
            .arg(dir.path())
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(dir.path().join("stderr.log"))?)
            .spawn()
            .context("cannot start nginx")?;
        let mut server = Self { process, port, dir };
        server.wait_until_ready()?;
        Ok(server)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        const PAUSE: Duration = Duration::from_millis(20);
        const TRIES: u32 = 250;
        for _ in 0..TRIES {
            if let Some(status) = self.process.try_wait()? {
                bail!("nginx exited at once ({status}): {}", self.logs());
            }
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return Ok(());
            }
            sleep(PAUSE);
        }
        bail!("nginx does not accept connections: {}", self.logs())
    }

    /// Standard error and error log.
    fn logs(&self) -> String {
        let read = |name| fs::read_to_string(self.dir.path().join(name)).unwrap_or_default();
        (read("stderr.log") + &read("error.log")).trim().to_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn write_files(dir: &Path, authority: &Authority, port: u16) -> Result<()> {
    let issued = authority.issue(&["127.0.0.1"]).map_err(|error| anyhow!("{error}"))?;
    fs::write(dir.join("server.pem"), issued.fullchain())?;
    fs::write(dir.join("server.key"), &issued.key)?;
    fs::write(dir.join("nginx.conf"), nginx_conf(port))?;
    Ok(())
}

/// nginx.conf for a single process, which can be killed by its id and, if started by root, needs no other user.
/// Paths are relative to the directory given with `-p`.
fn nginx_conf(port: u16) -> String {
    const RESPONSE: &str = r#"{"ok":true,"id":"1042","created":false,"domain":"a.example","not_after":"2031-01-01T00:00:00Z","key_match":"unverified","bound_sites":[]}"#;
    format!(
        "daemon off;
master_process off;
pid nginx.pid;
lock_file nginx.lock;
error_log error.log;
events {{ worker_connections 64; }}
http {{
    access_log access.log;
    client_body_temp_path client_body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    default_type application/json;
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate server.pem;
        ssl_certificate_key server.key;
        ssl_protocols TLSv1.3;
        location = {UPLOAD} {{
            if ($request_method != POST) {{ return 405; }}
            return 200 '{RESPONSE}';
        }}
    }}
}}
"
    )
}

/// A port that is free at the moment.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on loopback")?;
    Ok(listener.local_addr()?.port())
}
