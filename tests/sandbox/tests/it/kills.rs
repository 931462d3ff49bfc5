//! SIGKILL at any moment: every answered write is there afterwards, the one in flight is there whole or not at
//! all. A model follows the writes; what is found after each kill has to be the model, with or without the last.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{KEY, Made, Program, world};

const KILLS: u32 = 200;

/// What the writes change.
#[derive(Clone, Debug, Default, PartialEq)]
struct Model {
    /// Two fields of one site, always changed together.
    marks: (Value, Value),
    /// Name and content of the record, always replaced together.
    record: Option<(String, String)>,
    domains: BTreeSet<String>,
}

impl Model {
    /// What the service shows; the targets in the DNS are those of the sites.
    fn observe(program: &Program) -> Self {
        let site = program.site(10);
        let sites = program.get("/api/me/sites")["sites"].as_array().unwrap().clone();
        let record = program.certs().into_iter().find(|cert| cert["id"] == 1001).map(|cert| {
            let record = program.get("/api/certs/1001/download");
            (cert["name"].as_str().unwrap().to_owned(), record["cert_pem"].as_str().unwrap().to_owned())
        });
        let domains = domains_of(&sites);
        let dns = program.control("GET", "/dns", None).ok().as_array().unwrap().clone();
        assert!(domains.is_subset(&domains_of(&dns)));
        assert_eq!(dns.len(), domains.len() + 1, "and the other account's");
        Self { marks: (site["remark"].clone(), site["ssl_ciphers"].clone()), record, domains }
    }

    fn apply(&mut self, write: &Write) {
        match write {
            Write::Mark(mark) => self.marks = (json!(mark), json!(mark)),
            Write::Upload(name, made) => self.record = Some((name.clone(), made.cert.clone())),
            Write::Create(domain) => drop(self.domains.insert(domain.clone())),
            Write::Delete(_, domain) => drop(self.domains.remove(domain)),
        }
    }
}

fn domains_of(list: &[Value]) -> BTreeSet<String> {
    list.iter().map(|entry| entry["domain"].as_str().unwrap().to_owned()).collect()
}

enum Write {
    Mark(String),
    Upload(String, Made),
    Create(String),
    Delete(u64, String),
}

impl Write {
    /// Sends it; an error when the service is gone. A site that was made is returned by its number.
    fn send(&self, program: &Program) -> Result<Option<u64>, ureq::Error> {
        let (method, path, body) = match self {
            Self::Mark(mark) => {
                ("POST", "/api/sites/10/update".to_owned(), json!({ "remark": mark, "ssl_ciphers": mark }))
            }
            Self::Upload(name, made) => {
                let mut body = made.body("a.example");
                body["name"] = json!(name);
                ("POST", "/api/certs/upload".to_owned(), body)
            }
            Self::Create(domain) => ("POST", "/api/sites".to_owned(), json!({ "domain": domain })),
            Self::Delete(id, _) => ("DELETE", format!("/api/sites/{id}"), Value::Null),
        };
        let url = format!("{}{path}", program.url("api"));
        let key = format!("Bearer {KEY}");
        let body = Some(body).filter(|body| !body.is_null());
        let reply = program.try_ask(method, &url, &[("authorization", &key)], body.as_ref())?;
        Ok(reply.ok()["site"]["id"].as_u64())
    }
}

/// The writes, one after another, for ever.
struct Stream {
    number: u32,
    certificates: [Made; 2],
    created: Option<(u64, String)>,
}

impl Stream {
    fn next(&mut self) -> Write {
        self.number += 1;
        let number = self.number;
        match (number % 4, self.created.take()) {
            (0, _) => Write::Mark(number.to_string()),
            (1, _) => Write::Upload(number.to_string(), self.certificates[number as usize / 4 % 2].clone()),
            (_, Some((id, domain))) => Write::Delete(id, domain),
            (_, None) => Write::Create(format!("s{number}.example")),
        }
    }
}

/// Writes until the program is gone; the kill strikes `spin` turns of a loop after write number `after` was begun.
fn write_until_killed(
    program: &Program,
    stream: &mut Stream,
    model: &mut Model,
    after: u32,
    spin: u32,
) -> Write {
    let begun = AtomicU32::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while begun.load(Ordering::Acquire) <= after {
                std::thread::yield_now();
            }
            for turn in 0..spin {
                std::hint::black_box(turn);
            }
            program.strike();
        });
        loop {
            let write = stream.next();
            begun.fetch_add(1, Ordering::AcqRel);
            match write.send(program) {
                Err(_) => return write,
                Ok(made) => {
                    model.apply(&write);
                    if let (Some(id), Write::Create(domain)) = (made, &write) {
                        stream.created = Some((id, domain.clone()));
                    }
                }
            }
        }
    })
}

#[test]
fn two_hundred_kills_lose_no_answered_write() {
    let data = TempDir::new().unwrap();
    let start = || Program::with(&world(), &["--data", data.path().to_str().unwrap(), "--push-seconds", "0"]);
    let certificates = [(); 2].map(|()| Made::for_names(&["a.example"]));
    let mut stream = Stream { number: 0, certificates, created: None };
    let mut program = start();
    let mut model = Model::observe(&program);
    for kill in 0..KILLS {
        program.hold(false);
        let spin = kill.wrapping_mul(2_654_435_761) % 40_000;
        let last = write_until_killed(&program, &mut stream, &mut model, kill % 7, spin);
        drop(program);
        program = start();
        let found = Model::observe(&program);
        if found != model {
            model.apply(&last);
            assert_eq!(found, model, "after kill {kill}");
        }
    }
    assert!(stream.number > KILLS, "there was something to lose");
}

/// SIGKILL while the database is being made: the next start finds a world, whole, or makes it.
#[test]
fn a_kill_during_the_first_start_leaves_nothing_half_made() {
    for kill in 0..20_u32 {
        let data = TempDir::new().unwrap();
        let args = ["--data", data.path().to_str().unwrap()];
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("world.json"), world().to_string()).unwrap();
        let mut child = crate::support::command(&dir).args(args).spawn().unwrap();
        while !data.path().join("sandbox.sqlite3").exists() {
            std::thread::yield_now();
        }
        for turn in 0..kill * 20_000 {
            std::hint::black_box(turn);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let program = Program::with(&world(), &args);
        assert_eq!(program.get("/api/me/sites")["total"], 3, "kill {kill}");
        assert_eq!(program.certs().len(), 1);
    }
}
