//! SIGKILL at any moment: every acknowledged write survives, and the one in flight is complete or absent.
//!
//! A model follows the writes. The state after each kill must equal the model with or without the last write.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{KEY, Server, TestCert, send_signal, serve_command, test_world, with};

const KILLS: u32 = 200;

/// The part of the service's state that the writes change.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    /// `remark` and `ssl_ciphers` of site 10, always updated together.
    fields: (Value, Value),
    /// Name and chain of record 1001, always replaced together.
    record: Option<(String, String)>,
    domains: BTreeSet<String>,
}

impl Model {
    /// Reads the state from the service.
    fn observe(server: &Server) -> Self {
        let site = server.site(10);
        let record = server.certs().into_iter().find(|cert| cert["id"] == 1001).map(|cert| {
            let chain = server.download(1001)["cert_pem"].clone();
            (cert["name"].as_str().unwrap().to_owned(), chain.as_str().unwrap().to_owned())
        });
        let sites = server.get("/api/me/sites")["sites"].as_array().unwrap().clone();
        let domains = sites.iter().map(|site| site["domain"].as_str().unwrap().to_owned()).collect();
        Self { fields: (site["remark"].clone(), site["ssl_ciphers"].clone()), record, domains }
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::Update(value) => self.fields = (json!(value), json!(value)),
            Write::Upload(name, cert) => self.record = Some((name.clone(), cert.cert_pem.clone())),
            Write::Create(domain) => drop(self.domains.insert(domain.clone())),
            Write::Delete(_, domain) => drop(self.domains.remove(domain)),
        }
    }
}

enum Write {
    /// Sets both fields of site 10 to this value.
    Update(String),
    /// Uploads under this name.
    Upload(String, TestCert),
    /// Creates a site with this domain.
    Create(String),
    /// Deletes the site with this id and domain.
    Delete(u64, String),
}

impl Write {
    /// Sends the request and returns the id of a created site; fails if the service is gone.
    fn send(&self, server: &Server) -> Result<Option<u64>, ureq::Error> {
        let (method, path, body) = match self {
            Self::Update(value) => {
                ("POST", "/api/sites/10/update".to_owned(), json!({ "remark": value, "ssl_ciphers": value }))
            }
            Self::Upload(name, cert) => {
                let body = with(cert.upload_body("a.example"), &json!({ "name": name }));
                ("POST", "/api/certs/upload".to_owned(), body)
            }
            Self::Create(domain) => ("POST", "/api/sites".to_owned(), json!({ "domain": domain })),
            Self::Delete(id, _) => ("DELETE", format!("/api/sites/{id}"), Value::Null),
        };
        let headers = [("authorization", &*format!("Bearer {KEY}")), ("content-type", "application/json")];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let response = server.send("api", method, &path, &headers, &body)?;
        Ok(response.expect_ok()["site"]["id"].as_u64())
    }
}

/// An endless sequence of writes.
struct Writes {
    number: u32,
    certs: [TestCert; 2],
    /// The site to delete next.
    created: Option<(u64, String)>,
}

impl Writes {
    fn next(&mut self) -> Write {
        self.number += 1;
        let number = self.number;
        match (number % 4, self.created.take()) {
            (0, _) => Write::Update(number.to_string()),
            (1, _) => Write::Upload(number.to_string(), self.certs[number as usize / 4 % 2].clone()),
            (_, Some((id, domain))) => Write::Delete(id, domain),
            (_, None) => Write::Create(format!("s{number}.example")),
        }
    }
}

/// Writes until the server is killed, `spin` loop iterations after write number `after` has begun, and returns the
/// write in flight.
fn write_until_killed(
    mut server: Server,
    writes: &mut Writes,
    model: &mut Model,
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
            match write.send(&server) {
                Err(_) => return write,
                Ok(id) => {
                    model.apply(&write);
                    if let (Some(id), Write::Create(domain)) = (id, &write) {
                        writes.created = Some((id, domain.clone()));
                    }
                }
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
    let mut server = start();
    let mut model = Model::observe(&server);
    for kill in 0..KILLS {
        server.hold_pushes(false);
        let spin = kill.wrapping_mul(2_654_435_761) % 40_000;
        let last = write_until_killed(server, &mut writes, &mut model, kill % 7, spin);
        server = start();
        let observed = Model::observe(&server);
        if observed != model {
            model.apply(&last);
            assert_eq!(observed, model, "after kill {kill}");
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
