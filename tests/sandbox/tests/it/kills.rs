//! SIGKILL at any moment: every acknowledged write survives, and the one in flight is complete or absent.
//!
//! A sandbox in this process receives the same writes. The state after each kill must equal its state with or without the
//! last write.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{KEY, Response, Server, TestCert, send_signal, serve_command, test_world, with};

const KILLS: u32 = 200;

/// What the writes change. Times and pending pushes differ.
fn state(server: &Server) -> Value {
    let mut sites = server.get("/api/me/sites");
    for site in sites["sites"].as_array_mut().unwrap() {
        for field in ["created_at", "updated_at", "config_synced"] {
            site.as_object_mut().unwrap().remove(field);
        }
    }
    let certs = server.certs();
    let downloads = certs.iter().map(|cert| server.download(cert["id"].as_u64().unwrap()));
    json!([sites, certs, downloads.collect::<Vec<_>>()])
}

/// Method, path and body of a request.
type Write = (&'static str, String, Value);

/// An endless sequence of writes: an update of two fields, an upload, and a site that is created and deleted.
struct Writes {
    number: u32,
    certs: [TestCert; 2],
    /// The site to delete next.
    created: Option<Value>,
}

impl Writes {
    fn next(&mut self) -> Write {
        self.number += 1;
        let number = self.number;
        match (number % 4, self.created.take()) {
            (0, created) => {
                self.created = created;
                let body = json!({ "remark": number.to_string(), "ssl_ciphers": number.to_string() });
                ("POST", "/api/sites/10/update".to_owned(), body)
            }
            (1, created) => {
                self.created = created;
                let cert = &self.certs[number as usize / 4 % 2];
                let body = with(cert.upload_body("a.example"), &json!({ "name": number.to_string() }));
                ("POST", "/api/certs/upload".to_owned(), body)
            }
            (_, Some(id)) => ("DELETE", format!("/api/sites/{id}"), Value::Null),
            (_, None) => ("POST", "/api/sites".to_owned(), json!({ "domain": format!("s{number}.example") })),
        }
    }
}

fn send(server: &Server, (method, path, body): &Write) -> Result<Response, ureq::Error> {
    let headers = [("authorization", &*format!("Bearer {KEY}")), ("content-type", "application/json")];
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.send("api", method, path, &headers, &body)
}

/// Writes to both until the server is killed, `spin` loop iterations after write number `after` has begun, and returns
/// the write in flight, which only the server has received.
fn write_until_killed(
    mut server: Server,
    twin: &Server,
    writes: &mut Writes,
    after: u32,
    spin: u32,
) -> Write {
    let process = server.process().id();
    let started = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while started.load(Ordering::Acquire) <= after {
                std::thread::yield_now();
            }
            for turn in 0..spin {
                std::hint::black_box(turn);
            }
            send_signal(process, Signal::KILL);
        });
        loop {
            let write = writes.next();
            started.fetch_add(1, Ordering::AcqRel);
            let Ok(response) = send(&server, &write) else { return write };
            response.expect_ok();
            let id = send(twin, &write).unwrap().expect_ok()["site"]["id"].clone();
            if write.1 == "/api/sites" {
                writes.created = Some(id);
            }
        }
    })
}

#[test]
fn kills_lose_no_acknowledged_write() {
    let data = TempDir::new().unwrap();
    let start = || Server::start_process(&["--data", data.path().to_str().unwrap(), "--push-seconds", "0"]);
    let certs = [(); 2].map(|()| TestCert::new(&["a.example"]));
    let mut writes = Writes { number: 0, certs, created: None };
    let (mut server, twin) = (start(), Server::start());
    for kill in 0..KILLS {
        server.hold_pushes(false);
        let spin = kill.wrapping_mul(2_654_435_761) % 40_000;
        let last = write_until_killed(server, &twin, &mut writes, kill % 7, spin);
        server = start();
        let observed = state(&server);
        if observed != state(&twin) {
            send(&twin, &last).unwrap().expect_ok();
            assert_eq!(observed, state(&twin), "after kill {kill}");
        }
    }
    assert!(writes.number > KILLS, "too few writes were acknowledged");
}

/// A kill while the database is created: the next start finds a complete world or creates it.
#[test]
fn kill_during_first_start_is_harmless() {
    for kill in 0..20_u32 {
        let data = TempDir::new().unwrap();
        let args = ["--data", data.path().to_str().unwrap()];
        let dir = TempDir::new().unwrap();
        let mut child = serve_command(&dir, &test_world().to_string()).args(args).spawn().unwrap();
        while !data.path().join("sandbox.sqlite3").exists() {
            std::thread::yield_now();
        }
        for turn in 0..kill * 20_000 {
            std::hint::black_box(turn);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let server = Server::start_process(&args);
        assert_eq!(server.get("/api/me/sites")["total"], 3, "kill {kill}");
        assert_eq!(server.certs().len(), 1);
    }
}
