//! Many uploads: a thousand pending lineages, and one certificate for a thousand sites. On loopback the peer is h2load
//! with the same requests; with a round trip of 50 ms, time is what counts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use edgecert_workload::{Call, Lineage, StateTemplate, domain, find_program, instructions, run};
use serde_json::json;

use crate::fixture::{API_KEY, Fixture};
use crate::fleet::{Fleet, hook};
use crate::server::{Server, Service};
use crate::table::{Figure, Goal, Measured, Table, Unit};
use crate::usage::{self, Pairs, Usage};
use crate::{observe, proxy};

const SIZE: usize = 1_000;
const PAIRS: usize = 11;

/// Of rows that take seconds.
const FEW_PAIRS: usize = 5;

const fn ratio(row: u8, name: &'static str, goal: Goal) -> Figure {
    Figure { row, name, unit: Unit::Ratio, goal }
}

const fn seconds(row: u8, name: &'static str, goal: Goal) -> Figure {
    Figure { row, name, unit: Unit::Seconds, goal }
}

const FSYNCS: Figure = Figure {
    row: 5,
    name: "fsyncs of a pending lineage in sync",
    unit: Unit::Count,
    goal: Goal::AtMost(1.0),
};
const GROWTH: Figure = ratio(10, "sync, pending: instructions a lineage, 1,000 / 100", Goal::AtMost(1.1));
const PENDING: [Figure; 2] = [
    ratio(11, "sync, 1,000 pending, rate / h2load, state on tmpfs", Goal::AtLeast(0.08)),
    ratio(11, "sync, 1,000 pending, rate / h2load, state on disk", Goal::None),
];
const ONE_TO_MANY: Figure = ratio(12, "one certificate to 1,000 sites, rate / h2load", Goal::AtLeast(0.55));
const PENDING_DELAYED: Figure =
    seconds(11, "sync, 1,000 pending, 50 ms round trip; peer: h2load, 100 streams", Goal::AtMost(1.2));
const ONE_TO_MANY_DELAYED: Figure = seconds(
    12,
    "one certificate to 1,000 sites, 50 ms round trip; peer: h2load, 100 streams",
    Goal::AtMost(0.95),
);

/// Adds the rows on loopback.
pub(crate) fn add(fixture: &Fixture, table: &mut Table) -> Result<()> {
    let bulk = Bulk::new(fixture, "bulk")?;
    table.add(FSYNCS, bulk.fsyncs()?);
    let (tmpfs, disk) = (fixture.memory("bulk-state")?, fixture.disk("bulk-state")?);
    for (figure, state, pairs) in [(PENDING[0], tmpfs, PAIRS), (PENDING[1], disk, FEW_PAIRS)] {
        let h2load = H2load { port: bulk.server.port(), connections: 32, streams: None };
        let pairs = bulk.pending_and(h2load, &state, pairs)?;
        table.add(figure, Measured::spread(pairs.speed(), Unit::Seconds));
    }
    let h2load = H2load { port: bulk.server.port(), connections: 16, streams: None };
    let pairs = bulk.one_to_many_and(h2load, PAIRS)?;
    table.add(ONE_TO_MANY, Measured::spread(pairs.speed(), Unit::Seconds));
    table.add(GROWTH, bulk.growth()?);
    Ok(())
}

/// Adds the rows with a delay.
pub(crate) fn add_delayed(fixture: &Fixture, table: &mut Table) -> Result<()> {
    let bulk = Bulk::new(fixture, "delay")?;
    let h2load = H2load { port: proxy::start(bulk.server.port())?, connections: 1, streams: Some(100) };
    let state = fixture.memory("delay-state")?;
    table.add(PENDING_DELAYED, Measured::time(bulk.pending_and(h2load, &state, FEW_PAIRS)?.wall()));
    table.add(ONE_TO_MANY_DELAYED, Measured::time(bulk.one_to_many_and(h2load, FEW_PAIRS)?.wall()));
    Ok(())
}

/// The lineages, and a service that speaks HTTP/2 too.
struct Bulk<'a> {
    fixture: &'a Fixture,
    scratch: PathBuf,
    fleet: Fleet,
    /// Covers all sites.
    wildcard: Lineage,
    server: Server,
    pending: StateTemplate,
    /// The request bodies of an upload of each kind.
    fleet_body: PathBuf,
    wildcard_body: PathBuf,
}

/// The peer: the same uploads, by a load generator that does nothing else.
#[derive(Clone, Copy)]
struct H2load {
    port: u16,
    connections: usize,
    /// Streams of HTTP/2 on each connection; `None`: HTTP/1.1.
    streams: Option<usize>,
}

impl<'a> Bulk<'a> {
    fn new(fixture: &'a Fixture, name: &str) -> Result<Self> {
        let scratch = fixture.disk(name)?;
        let fleet = Fleet::new(fixture, &format!("{name}-fleet"), 1..SIZE + 1)?;
        let issued = fixture.authority.issue(&["*.example".to_owned()])?;
        let wildcard = Lineage::write(&scratch.join("certbot"), "wildcard", &issued)?;
        let server = start(fixture, SIZE)?;
        let pending = fleet.template(fixture, &server, 1)?.pending();
        let body = |name: &str, lineage: &Lineage| -> Result<PathBuf> {
            let read = |name| fs::read_to_string(lineage.file(name));
            let body = json!({
                "domain": domain(1), "cert_pem": read("fullchain")?, "key_pem": read("privkey")?,
            });
            let path = scratch.join(name);
            fs::write(&path, body.to_string())?;
            Ok(path)
        };
        let fleet_body = body("fleet.json", fleet.lineage(1)?)?;
        let wildcard_body = body("wildcard.json", &wildcard)?;
        Ok(Self { fixture, scratch, fleet, wildcard, server, pending, fleet_body, wildcard_body })
    }

    /// `sync` of pending lineages, whose state it writes first.
    fn pending(&self, state: &Path, template: &StateTemplate, port: u16, count: usize) -> Result<Call> {
        fs::remove_dir_all(state)?;
        fs::create_dir(state)?;
        for (number, lineage, issued) in self.fleet.first(count) {
            template.write(state, lineage, issued, number)?;
        }
        Ok(hook(self.fixture, port, state).args(["sync"]))
    }

    fn fsyncs(&self) -> Result<Measured> {
        const COUNTS: [usize; 2] = [120, 20];
        let state = self.fixture.memory("bulk-fsyncs")?;
        let count = |lineages: usize| -> Result<f64> {
            let call = self.pending(&state, &self.pending, self.server.port(), lineages)?;
            Ok(observe::fsyncs(&self.scratch, &call)? as f64)
        };
        let [many, few] = COUNTS.map(count);
        let (many, few) = (many?, few?);
        Ok(Measured::of_two((many - few) / (COUNTS[0] - COUNTS[1]) as f64, many, few, Unit::Count))
    }

    fn growth(&self) -> Result<Measured> {
        let state = self.fixture.memory("bulk-growth")?;
        let cost = |lineages: usize| -> Result<f64> {
            let server = start(self.fixture, lineages)?;
            let template = self.fleet.template(self.fixture, &server, 1)?.pending();
            let call = self.pending(&state, &template, server.port(), lineages)?;
            Ok(instructions(&self.scratch, &call)? as f64 / lineages as f64)
        };
        let (many, few) = (cost(SIZE)?, cost(SIZE / 10)?);
        Ok(Measured::of_two(many / few, many, few, Unit::Instructions))
    }

    /// `sync` of all lineages on the peer's port, and the peer.
    fn pending_and(&self, peer: H2load, state: &Path, pairs: usize) -> Result<Pairs> {
        // A lineage's options name the service, so its port has to be the same.
        let template = self.pending.with_service(&format!("https://127.0.0.1:{}", peer.port));
        let ours = || usage::run(self.pending(state, &template, peer.port, SIZE)?.command());
        peer.check(&self.fleet_body)?;
        usage::pairs(pairs, ours, || peer.run(&self.fleet_body))
    }

    /// A deploy of the wildcard certificate on the peer's port, and the peer.
    fn one_to_many_and(&self, peer: H2load, pairs: usize) -> Result<Pairs> {
        let ours = || {
            let state = tempfile::TempDir::with_prefix_in("figures-", "/dev/shm")?;
            let call = hook(self.fixture, peer.port, state.path());
            let call = call.env("RENEWED_LINEAGE", self.wildcard.live()).env("RENEWED_DOMAINS", "*.example");
            usage::run(call.command())
        };
        peer.check(&self.wildcard_body)?;
        usage::pairs(pairs, ours, || peer.run(&self.wildcard_body))
    }
}

fn start(fixture: &Fixture, sites: usize) -> Result<Server> {
    Server::start(fixture, &Service { http2: true, ..Service::with_sites(1..sites + 1) })
}

impl H2load {
    fn run(self, body: &Path) -> Result<Usage> {
        usage::run(self.command(body)?)
    }

    /// Fails if not every upload succeeds, which the exit status does not show.
    fn check(self, body: &Path) -> Result<()> {
        let stdout = String::from_utf8(run(self.command(body)?)?.stdout)?;
        ensure!(stdout.contains(&format!("status codes: {SIZE} 2xx")), "h2load failed: {stdout}");
        Ok(())
    }

    fn command(self, body: &Path) -> Result<Command> {
        let mut h2load = Command::new(find_program("h2load", "nghttp2-client")?);
        h2load.args(["-n", &SIZE.to_string(), "-c", &self.connections.to_string()]);
        match self.streams {
            Some(streams) => h2load.args(["-m", &streams.to_string()]),
            None => h2load.arg("--h1"),
        };
        h2load.args(["-H", &format!("Authorization: Bearer {API_KEY}")]);
        h2load.args(["-H", "Content-Type: application/json", "-d"]).arg(body);
        h2load.arg(format!("https://127.0.0.1:{}/api/certs/upload", self.port));
        Ok(h2load)
    }
}
