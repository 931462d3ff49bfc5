//! nginx with a certificate, in front of a server without TLS.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::thread;

use tempfile::TempDir;

use super::{IssuedCert, require};

/// A running server, killed on drop.
pub(crate) struct Nginx {
    process: Child,
    directory: TempDir,
    pub(crate) port: u16,
}

impl Nginx {
    /// Starts a server that passes requests on to `target`. `protocol` is an option of `listen`, `options` are
    /// directives.
    pub(crate) fn before(target: &str, issued: &IssuedCert, protocol: &str, options: &str) -> Self {
        require("nginx", "nginx-light");
        let directory = TempDir::new().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        write("server.pem", &issued.fullchain());
        write("server.key", &issued.key);
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        write(
            "nginx.conf",
            &format!(
                "daemon off; master_process off; pid nginx.pid; error_log stderr notice;\nevents {{}}\nhttp {{\n\
                 log_format protocol '$server_protocol'; access_log access.log protocol;\n\
                 client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;\n\
                 uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n\
                 server {{ listen 127.0.0.1:{port} ssl {protocol};\n\
                 ssl_certificate server.pem; ssl_certificate_key server.key;\n\
                 {options}\nlocation / {{ proxy_pass {target}; }} }} }}\n"
            ),
        );
        let mut nginx = Command::new("nginx");
        nginx.args(["-e", "stderr", "-c", "nginx.conf", "-p"]).arg(directory.path());
        let mut process = nginx.stderr(Stdio::piped()).spawn().unwrap();
        // It has bound its port when it writes its first line. A write to a closed pipe would kill it.
        let mut log = BufReader::new(process.stderr.take().unwrap()).lines();
        log.next().expect("nginx writes a line when it starts").unwrap();
        thread::spawn(move || log.for_each(drop));
        Self { process, directory, port }
    }

    /// The protocol of each request.
    pub(crate) fn protocols(&self) -> Vec<String> {
        let log = fs::read_to_string(self.directory.path().join("access.log")).unwrap();
        log.lines().map(str::to_owned).collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
