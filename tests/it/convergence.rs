//! Convergence: the real binary on generated hosts, in any state that hooks, renewals, other clients, faults and lost state
//! leave behind. `sync` brings every site to the latest leaf of its host or says which one it cannot, and then sends
//! nothing more. What `sync` decides is simulated in `sync::histories`, also with leaves that expire; here it meets real
//! files, requests and handshakes.
//!
//! `EDGECERT_TEST_WORLD=7` runs one world. Keys and random fingerprints differ from run to run.

use std::fs;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use fastrand::Rng;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    DAY, Fault, Hook, IssuedCert, Lineage, Options, Output, RecordedRequest, Sandbox, bind, edgecert,
    env_var, fingerprint, in_parallel, record_of, sandbox_with, set_back, test_ca, world,
};

const WORLDS: u64 = 100;
/// Most of the time is spent waiting.
const THREADS: usize = 8;
const MAX_ROUNDS: usize = 6;

const UPLOAD: &str = "POST /api/certs/upload";
const FLAGS: [&str; 5] = ["--force", "--rebind", "--allow-older", "--allow-shrink", "--replace-lets"];
const DOMAINS: [&str; 7] =
    ["a.example", "b.example", "c.example", "*.a.example", "x.a.example", "y.a.example", "d.b.example"];
/// Nothing listens there.
const DEAD_EDGE: &str = "127.0.0.1:1";

/// A leaf, and what it is compared by.
struct Leaf {
    names: Vec<&'static str>,
    /// Days from today to issue and to expiry, and the fingerprint. Of several leaves, the greatest is to be served.
    rank: (i64, i64, String),
    issued: IssuedCert,
}

impl Leaf {
    fn issue(names: Vec<&'static str>, days: [i64; 2]) -> Self {
        let issued = test_ca().issue_between(&names, days).unwrap();
        let rank = (days[0], days[1], fingerprint(&issued.cert));
        Self { names, rank, issued }
    }

    fn covers(&self, domain: &str) -> bool {
        let wildcard = domain.split_once('.').map(|(_, parent)| format!("*.{parent}"));
        self.names.contains(&domain)
            || !domain.starts_with('*') && wildcard.is_some_and(|name| self.names.contains(&name.as_str()))
    }
}

/// The dates of leaves, in days from today: issued ever later, up to the present, unless a world wants otherwise.
struct Dates {
    latest: i64,
}

impl Dates {
    /// Later than all leaves before it.
    fn later(&mut self, rng: &mut Rng) -> [i64; 2] {
        self.latest = (self.latest + rng.i64(1..=4)).min(-1);
        [self.latest, expiry(rng)]
    }

    /// As late as another leaf, or earlier.
    fn not_later(&self, rng: &mut Rng) -> [i64; 2] {
        [self.latest - rng.i64(0..3), expiry(rng)]
    }
}

fn expiry(rng: &mut Rng) -> i64 {
    [10, 30, 30, 80][rng.usize(..4)]
}

/// Between these numbers of random domains.
fn pick(rng: &mut Rng, least: usize, most: usize) -> Vec<&'static str> {
    let mut domains = DOMAINS.to_vec();
    rng.shuffle(&mut domains);
    domains.truncate(rng.usize(least..=most));
    domains
}

/// A generated account, and a host with lineages for it.
struct World {
    rng: Rng,
    service: Sandbox,
    lineages: Vec<(Lineage, Leaf)>,
    dates: Dates,
    /// The edge addresses in the configuration.
    edges: String,
    /// Whether a hook was allowed to take a site's names or its later leaf, which others of the host then restore.
    is_overridden: bool,
    settings: String,
    home: TempDir,
    /// What happened, for the message of a failed test.
    log: Vec<String>,
}

/// A finished run.
struct Run {
    output: Output,
    json: Value,
    /// The requests that may change the service.
    posts: Vec<String>,
}

impl World {
    fn generate(seed: u64) -> Self {
        let (mut rng, mut dates) = (Rng::with_seed(seed), Dates { latest: -100 });
        let records = rng.u64(0..=4);
        let record = |id: u64| {
            let leaf = Leaf::issue(pick(&mut rng, 1, 3), dates.not_later(&mut rng));
            let mut record = record_of(id, leaf.names[0], &leaf.issued);
            record["type"] = json!(if rng.u8(..12) == 0 { "lets" } else { "upload" });
            record
        };
        let certs: Vec<Value> = (1..=records).map(record).collect();
        let sites = pick(&mut rng, 2, 6).into_iter().zip(10..).map(|(domain, id)| {
            let cert_id = (records > 0 && rng.u8(..3) > 0).then(|| rng.u64(1..=records));
            json!({"id": id, "account": 1, "domain": domain, "cert_id": cert_id})
        });
        let world = world(json!({"sites": sites.collect::<Vec<_>>(), "certs": certs}));
        let lineage = |_| {
            let days = if rng.bool() { dates.later(&mut rng) } else { dates.not_later(&mut rng) };
            let leaf = Leaf::issue(pick(&mut rng, 1, 5), days);
            let files = Lineage::issued_for(&leaf.names);
            files.save(&leaf.issued);
            (files, leaf)
        };
        let lineages: Vec<_> = (0..=seed % 3).map(lineage).collect();
        let service = sandbox_with(Options { world, quirks: rng.u64(..50), ..Options::default() }, &[]);
        let mut world = Self {
            edges: service.endpoints().edge.clone(),
            settings: format!("rebind = {}\nskip_unmatched = {}\n", rng.u8(..3) > 0, rng.bool()),
            service,
            lineages,
            dates,
            is_overridden: false,
            home: TempDir::new().unwrap(),
            log: Vec::new(),
            rng,
        };
        world.log.push(world.settings.clone());
        world.log_state();
        world
    }

    /// Logs the lineages, and the sites with their bindings and what the edge serves for them.
    fn log_state(&mut self) {
        for (_, leaf) in &self.lineages {
            self.log.push(format!("lineage: {:?} {:?}", leaf.rank, leaf.names));
        }
        for site in self.service.sites() {
            let served = self.served(&site);
            self.log.push(format!("{} bound to {}, serves {served:?}", site["domain"], site["cert_id"]));
        }
    }

    /// The fingerprint of the leaf that the edge serves for a site.
    fn served(&self, site: &Value) -> Option<String> {
        let shown = self.service.edge().into_iter().find(|shown| shown["site_id"] == site["id"])?;
        Some(shown["fingerprint"].as_str()?.to_owned())
    }

    fn state_dir(&self) -> PathBuf {
        self.home.path().join("state")
    }

    fn binary(&self) -> Hook {
        let entry =
            |(files, _): &(Lineage, Leaf)| format!("[[lineage]]\npath = '{}'\n", files.path().display());
        let entries: String = self.lineages.iter().map(entry).collect();
        let config =
            format!("edge_address = '{}'\nwait = 1\ntimeout = 5\n{}{entries}", self.edges, self.settings);
        let hook = edgecert().against(&self.service).without_env("EDGECERT_EDGE_ADDRESS");
        hook.with_config(&config).with_state(self.state_dir())
    }

    fn hook(&mut self, number: usize, flags: &[&str]) {
        let hook = self.binary().called_by_certbot(&self.lineages[number].0);
        let faults = self.faults();
        self.run(hook.args(["deploy", "--json"]).args(flags), &faults);
    }

    /// Runs `sync` a day later, when the turn of every lineage has come.
    fn sync(&mut self, faults: &[Fault]) -> Run {
        if self.state_dir().exists() {
            set_back(&self.state_dir(), DAY);
        }
        self.run(self.binary().args(["sync", "--json"]), faults)
    }

    fn run(&mut self, mut hook: Hook, faults: &[Fault]) -> Run {
        let name = format!("{:?} {faults:?}", hook.command().get_args());
        for fault in faults {
            self.service.add_fault(fault.clone());
        }
        let before = self.service.requests().len();
        let output = hook.run();
        let requests = self.service.requests().split_off(before);
        self.service.clear_faults();
        let json = output.json();
        let posts: Vec<_> = requests.iter().filter(|request| request.method == "POST").collect();
        let lines: Vec<String> = posts.iter().map(|post| describe(post)).collect();
        self.log.push(format!("{name}: exit {}, {lines:?}\n{}", output.code, output.stderr));
        self.log_state();
        let changed = json["changed"].as_bool().unwrap_or(false);
        assert!(
            changed || !posts.iter().any(|post| is_executed(post)),
            "a change is not reported: {lines:?}"
        );
        // A request that failed may have been carried out, as far as the client can tell.
        let is_change = |post: &&RecordedRequest| is_executed(post) || post.fault.is_some();
        assert!(!changed || posts.iter().any(is_change), "no change is reported as one: {lines:?}");
        assert_eq!(json["exit_code"], output.code);
        assert!(![70, 76, 77, 78, 101].contains(&output.code), "exit {}", output.code);
        Run { output, json, posts: lines }
    }

    /// Something happens.
    fn happen(&mut self) {
        match self.rng.u8(..20) {
            0..=3 => {
                let flags: Vec<&str> = FLAGS.into_iter().filter(|_| self.rng.u8(..8) == 0).collect();
                self.is_overridden |= flags.iter().any(|flag| flag.starts_with("--allow"));
                let number = self.rng.usize(..self.lineages.len());
                self.hook(number, &flags);
            }
            4..=6 => self.renew(),
            7..=9 => {
                let faults = self.faults();
                self.sync(&faults);
            }
            10..=13 => self.change_record(),
            14..=15 => {
                let (sites, records) = (self.service.sites(), self.service.certs());
                let site = self.rng.choice(&sites).unwrap();
                let record = self.rng.choice(&records).filter(|_| self.rng.u8(..3) > 0);
                bind(
                    &self.service,
                    site["domain"].as_str().unwrap(),
                    record.and_then(|record| record["id"].as_u64()),
                );
            }
            16 => {
                let held = self.rng.bool();
                self.service.hold_pushes(held);
                self.log.push(format!("pushes are held: {held}"));
            }
            17 => self.wipe(),
            18 => {
                let edge = &self.service.endpoints().edge;
                self.edges = match self.rng.u8(..3) {
                    0 => edge.clone(),
                    1 => format!("{edge},{DEAD_EDGE}"),
                    _ => DEAD_EDGE.to_owned(),
                };
            }
            _ => {
                let sites = self.service.sites();
                let is_free = |domain: &&str| sites.iter().all(|site| site["domain"] != **domain);
                if let Some(domain) = DOMAINS.into_iter().find(is_free) {
                    self.service.add_site(domain);
                }
            }
        }
    }

    fn renew(&mut self) {
        let number = self.rng.usize(..self.lineages.len());
        let mut names = self.lineages[number].1.names.clone();
        let days = match self.rng.u8(..9) {
            0..=1 => self.dates.not_later(&mut self.rng),
            _ => self.dates.later(&mut self.rng),
        };
        match self.rng.u8(..8) {
            0 if names.len() > 1 => drop(names.pop()),
            1 => names.extend(self.rng.choice(DOMAINS).filter(|name| !names.contains(name))),
            _ => {}
        }
        let (files, leaf) = &mut self.lineages[number];
        *leaf = Leaf::issue(names, days);
        files.save(&leaf.issued);
        self.log.push(format!("lineage {number} is renewed"));
        if self.rng.bool() {
            self.hook(number, &[]);
        }
    }

    fn faults(&mut self) -> Vec<Fault> {
        let mut faults = Vec::new();
        while self.rng.u8(..4) == 0 {
            let times = [1, 1, 9][self.rng.usize(..3)];
            faults.push(match self.rng.u8(..8) {
                0..=1 => Fault::status(UPLOAD, 503).times(times),
                2 => Fault::close_before(UPLOAD).times(times),
                3 => Fault::close_after(UPLOAD).times(times),
                4 => Fault::truncate(UPLOAD, 20).times(times),
                5 => Fault::close_after("POST /api/sites/*/update").times(times),
                6 => Fault::status("GET /api/me/sites", 503).times(times),
                _ => Fault::close_before("GET /api/certs"),
            });
        }
        faults
    }

    /// Another client uploads a leaf, or stores one in a record, issued before or after those of the host.
    fn change_record(&mut self) {
        let sites = self.service.sites();
        let records = self.service.certs();
        let record = self.rng.choice(&records).filter(|_| self.rng.bool());
        let site = self.rng.choice(&sites).unwrap();
        let stored_for = record.unwrap_or(site)["domain"].as_str().unwrap();
        // A record may be stored for several domains.
        let is_meant = |name: &&str| *name == stored_for || record.is_some() && stored_for.contains(name);
        let domain = DOMAINS.into_iter().find(is_meant).unwrap();
        let mut names = vec![domain];
        names.extend(self.rng.choice(DOMAINS).filter(|name| *name != domain));
        let days = match self.rng.u8(..6) {
            0 if record.is_some() => [self.dates.later(&mut self.rng)[0] - 1, -1],
            0..=1 => self.dates.later(&mut self.rng),
            _ => self.dates.not_later(&mut self.rng),
        };
        let leaf = Leaf::issue(names, days);
        let (cert, key) = (leaf.issued.fullchain(), &leaf.issued.key);
        match record.and_then(|record| record["id"].as_u64()) {
            Some(id) if self.rng.bool() => self.service.replace_cert_silently(id, &cert, key),
            Some(id) => self.service.replace_cert(id, &cert, key),
            None => drop(self.service.upload_as_other_client(site["domain"].as_str().unwrap(), &cert, key)),
        }
        self.log.push(format!(
            "{:?} for {domain} is stored in {:?}",
            leaf.rank,
            record.map(|record| &record["id"])
        ));
    }

    fn wipe(&mut self) {
        let _ = fs::remove_dir_all(self.state_dir());
        self.log.push("the state is wiped".to_owned());
    }

    /// Returns whether everything was served in the end.
    fn live(&mut self) -> bool {
        for _ in 0..self.rng.usize(1..=7) {
            self.happen();
        }
        self.service.hold_pushes(false);
        self.service.push_now();
        if self.edges == DEAD_EDGE {
            self.edges = format!("{},{DEAD_EDGE}", self.service.endpoints().edge);
        }
        self.log.push(format!("no more events, edges: {}", self.edges));
        // A lineage may notice in one run that another one no longer has a site, and deploy in the next.
        let is_quiet = |world: &mut Self| (0..2).all(|_| world.checked_sync().posts.is_empty());
        assert!((0..MAX_ROUNDS).any(|_| is_quiet(self)), "it does not converge");
        assert!(self.checked_sync().posts.is_empty(), "it sends again what it sent");
        let run = self.checked_sync();
        assert!(run.posts.is_empty(), "it sends again what it sent");
        let is_served = run.output.code == 0;
        if is_served {
            self.wipe();
            assert!(self.checked_sync().posts.is_empty(), "without state it sends what is served");
        }
        is_served
    }

    fn checked_sync(&mut self) -> Run {
        let run = self.sync(&[]);
        // A retry with the override of a hook may take a site from another lineage, which deploys in the next run.
        if run.posts.is_empty() || !self.is_overridden {
            self.check(&run);
        }
        run
    }

    /// Checks that every site serves the latest leaf of the host, or that the run failed and names it.
    fn check(&self, run: &Run) {
        for site in self.service.sites() {
            let domain = site["domain"].as_str().unwrap();
            let leaves = self.lineages.iter().map(|(_, leaf)| leaf).filter(|leaf| leaf.covers(domain));
            let Some(latest) = leaves.map(|leaf| &leaf.rank).max() else { continue };
            let served = self.served(&site);
            let is_latest = served.as_ref() == Some(&latest.2);
            assert!(is_latest || is_reported(run, domain), "{domain} serves {served:?}, not {latest:?}");
        }
    }
}

fn describe(post: &RecordedRequest) -> String {
    let target = [&post.body["domain"], &post.body["cert_id"]].map(Value::to_string).join(" ");
    format!("{} {target} {:?} {:?}", post.path, post.status, post.fault)
}

/// Whether a request was carried out.
fn is_executed(post: &RecordedRequest) -> bool {
    match post.fault.as_deref() {
        None => post.status.is_some_and(|status| status < 300),
        Some(fault) => ["close_after", "truncate"].contains(&fault),
    }
}

/// Whether a run failed for a site.
fn is_reported(run: &Run, domain: &str) -> bool {
    let failures = ["stale", "misbound", "queued", "refused", "guarded"];
    let lineages = run.json["lineages"].as_array().into_iter().flatten();
    let failed = lineages.filter(|lineage| lineage["exit_code"] != 0);
    let mut sites = failed.flat_map(|lineage| lineage["sites"].as_array().into_iter().flatten());
    let is_failure = |site: &Value| failures.contains(&site["outcome"].as_str().unwrap());
    run.output.code != 0 && sites.any(|site| site["domain"] == domain && is_failure(site))
}

/// Returns whether everything was served in the end, or why the world is wrong.
fn try_world(seed: u64) -> Result<bool, String> {
    let mut world = World::generate(seed);
    let result = catch_unwind(AssertUnwindSafe(|| world.live()));
    result.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        format!("world {seed}: {}\n{}", text.unwrap_or_default(), world.log.join("\n"))
    })
}

#[test]
fn first_hosts_converge() {
    assert!(converge_all(0..WORLDS / 10) > 0, "no world was served completely");
}

#[test]
fn every_host_converges() {
    let only = env_var("EDGECERT_TEST_WORLD").map(|seed| seed.to_str().unwrap().parse::<u64>().unwrap());
    let served = converge_all(only.map_or(0..WORLDS, |seed| seed..seed + 1));
    assert!(only.is_some() || served > 25, "only {served} worlds were served completely");
}

/// Runs the worlds with these seeds; returns how many were served completely.
fn converge_all(seeds: Range<u64>) -> usize {
    let (mut served, mut failures) = (0, Vec::new());
    for result in in_parallel(THREADS, seeds, try_world) {
        match result {
            Ok(is_served) => served += usize::from(is_served),
            Err(failure) => failures.push(failure),
        }
    }
    assert!(failures.is_empty(), "{} worlds:\n{}", failures.len(), failures.join("\n\n"));
    served
}
