//! The service and an edge: nginx on loopback, with static listings, so that it takes next to no time.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use edgecert_workload::{Lineage, find_program, site_json, write_listings};
use tempfile::TempDir;

use crate::fixture::Fixture;

/// Answers uploads, which needs the request's body. nginx-light depends on the module's package.
const ECHO_MODULE: &str = "/usr/lib/nginx/modules/ngx_http_echo_module.so";

/// The first sites of an account can be read one by one.
const SINGLE_SITES: usize = 1_000;

/// What the service of a figure has and speaks.
pub(crate) struct Service<'a> {
    /// The sites of the account, each bound to its own record.
    pub(crate) sites: Range<usize>,
    /// Besides HTTP/1.1.
    pub(crate) http2: bool,
    /// The lineage whose certificate the edge serves.
    pub(crate) edge: Option<&'a Lineage>,
}

impl Service<'_> {
    /// Without an edge, with HTTP/1.1.
    pub(crate) fn with_sites(sites: Range<usize>) -> Self {
        Self { sites, http2: false, edge: None }
    }
}

/// A running nginx. Dropping it stops the process.
pub(crate) struct Server {
    process: Child,
    port: u16,
    edge_port: u16,
    /// Configuration, logs and temporary files.
    dir: TempDir,
}

impl Server {
    /// Starts nginx and waits until it accepts connections.
    pub(crate) fn start(fixture: &Fixture, service: &Service<'_>) -> Result<Self> {
        let nginx = find_program("nginx", "nginx-light")?;
        if !Path::new(ECHO_MODULE).exists() {
            bail!("{ECHO_MODULE} is missing (Debian package libnginx-mod-http-echo)");
        }
        let dir = TempDir::with_prefix("figures-nginx-").context("cannot create a temporary directory")?;
        let (port, edge_port) = (free_port()?, free_port()?);
        write_account(dir.path(), &service.sites)?;
        let issued = fixture.authority.issue_for_server("127.0.0.1")?;
        fs::write(dir.path().join("server.pem"), issued.fullchain())?;
        fs::write(dir.path().join("server.key"), &issued.key)?;
        fs::write(dir.path().join("nginx.conf"), nginx_conf(dir.path(), [port, edge_port], service))?;
        let process = Command::new(nginx)
            .args(["-e", "error.log", "-c", "nginx.conf", "-p"])
            .arg(dir.path())
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(dir.path().join("stderr.log"))?)
            .spawn()
            .context("cannot start nginx")?;
        let mut server = Self { process, port, edge_port, dir };
        server.wait_until_ready()?;
        Ok(server)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Address of the edge.
    pub(crate) fn edge(&self) -> String {
        format!("127.0.0.1:{}", self.edge_port)
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

fn write_account(dir: &Path, sites: &Range<usize>) -> Result<()> {
    write_listings(&dir.join("sites.json"), &dir.join("certs.json"), sites.clone())?;
    fs::create_dir(dir.join("site"))?;
    for number in sites.clone().take(SINGLE_SITES) {
        fs::write(dir.join(format!("site/{number}.json")), site_json(number))?;
    }
    Ok(())
}

/// nginx.conf for a single process, which can be killed by its id and, if started by root, needs no other user.
/// Other paths are relative to the directory given with `-p`.
fn nginx_conf(dir: &Path, [port, edge_port]: [u16; 2], service: &Service<'_>) -> String {
    let http2 = if service.http2 { " http2" } else { "" };
    let edge = service.edge.map_or_else(String::new, |lineage| {
        format!(
            "server {{
        listen 127.0.0.1:{edge_port} ssl;
        ssl_certificate {};
        ssl_certificate_key {};
        location / {{ return 204; }}
    }}",
            lineage.file("fullchain").display(),
            lineage.file("privkey").display(),
        )
    });
    // The record of `sN.example` has the number N. The body has to be in memory as one piece.
    format!(
        r#"load_module {ECHO_MODULE};
daemon off;
master_process off;
pid nginx.pid;
lock_file nginx.lock;
error_log error.log;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    client_body_temp_path client_body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    default_type application/json;
    keepalive_requests 1000000;
    client_body_buffer_size 256k;
    client_body_in_single_buffer on;
    ssl_protocols TLSv1.3;
    map $request_body $record {{
        "~\"domain\": ?\"s([0-9]+)\.example\"" $1;
        default 0;
    }}
    server {{
        listen 127.0.0.1:{port} ssl{http2} backlog=1024;
        ssl_certificate server.pem;
        ssl_certificate_key server.key;
        root {};
        location = /api/me/sites {{ try_files /sites.json =404; }}
        location = /api/certs {{ try_files /certs.json =404; }}
        location ~ ^/api/sites/([0-9]+)$ {{ try_files /site/$1.json =404; }}
        location = /api/certs/upload {{
            echo_read_request_body;
            echo '{{"ok":true,"id":"$record","created":false,"domain":"s$record.example","key_match":"unverified","bound_sites":[]}}';
        }}
    }}
    {edge}
}}
"#,
        dir.display(),
    )
}

/// A port that is free at the moment.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen on loopback")?;
    Ok(listener.local_addr()?.port())
}
