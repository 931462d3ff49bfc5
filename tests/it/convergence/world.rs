//! A generated account, a host with lineages for it, and runs of the binary there.

use std::fs;
use std::path::PathBuf;

use fastrand::Rng;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::leaf::{Dates, Leaf, pick};
use crate::harness::{
    DAY, Fault, Hook, Lineage, Options, Output, RecordedRequest, Sandbox, edgecert, sandbox_with, set_back,
    world,
};

/// Nothing listens there.
const DEAD_EDGE: &str = "127.0.0.1:1";

pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) service: Sandbox,
    pub(super) lineages: Vec<HostLineage>,
    pub(super) dates: Dates,
    pub(super) edge: EdgeSetting,
    /// Whether a hook was allowed to take a site's names or its later leaf, which others of the host then restore.
    pub(super) is_overridden: bool,
    settings: String,
    home: TempDir,
    /// What happened, for the message of a failed test.
    pub(super) log: Vec<String>,
}

/// A lineage of the host.
pub(super) struct HostLineage {
    pub(super) files: Lineage,
    pub(super) leaf: Leaf,
    /// Its earlier leaves.
    past: Vec<Leaf>,
    is_rsa: bool,
    /// The sites of its entry; empty: every covered one.
    domains: Vec<&'static str>,
}

/// The edge addresses in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EdgeSetting {
    Alive,
    /// One of two addresses refuses connections.
    HalfDead,
    Dead,
}

/// A finished run.
pub(super) struct Run {
    pub(super) output: Output,
    pub(super) json: Value,
    /// The requests that may change the service.
    pub(super) posts: Vec<String>,
}

impl World {
    pub(super) fn generate(seed: u64) -> Self {
        let (mut rng, mut dates) = (Rng::with_seed(seed), Dates::new());
        let records = rng.u64(0..=4);
        let certs: Vec<Value> = (1..=records).map(|id| record(id, &mut rng, &mut dates)).collect();
        let sites = pick(&mut rng, 2, 6).into_iter().zip(10..).map(|(domain, id)| {
            let cert_id = (records > 0 && rng.u8(..3) > 0).then(|| rng.u64(1..=records));
            json!({"id": id, "account": 1, "domain": domain, "cert_id": cert_id})
        });
        let world = world(json!({"sites": sites.collect::<Vec<_>>(), "certs": certs}));
        let options = Options { world, quirks: rng.u64(..50), ..Options::default() };
        let lineages = (0..rng.usize(1..=3)).map(|_| HostLineage::generate(&mut rng, &mut dates)).collect();
        let rebind = rng.u8(..3) > 0;
        let mut world = Self {
            service: sandbox_with(options, &[]),
            lineages,
            dates,
            edge: EdgeSetting::Alive,
            is_overridden: false,
            settings: format!("rebind = {rebind}\nskip_unmatched = {}\n", rng.bool()),
            home: TempDir::new().unwrap(),
            log: Vec::new(),
            rng,
        };
        world.log_start();
        world
    }

    fn log_start(&mut self) {
        let records = self.service.certs();
        for record in &records {
            self.log.push(format!("record {} for {}", record["id"], record["domain"]));
        }
        self.log.extend(self.site_lines());
        for (number, lineage) in self.lineages.iter().enumerate() {
            self.log.push(format!("lineage {number}: {}", lineage.describe()));
        }
        self.log.push(self.settings.replace('\n', "; "));
    }

    /// The sites with their bindings and what the edge serves for them.
    pub(super) fn site_lines(&self) -> Vec<String> {
        let sites = self.service.sites();
        let line = |site: &Value| {
            let served = self.served(site);
            let served = served.as_deref().map_or("nothing", |fingerprint| &fingerprint[..8]);
            format!("site {} bound to {}, serves {served}", site["domain"], site["cert_id"])
        };
        sites.iter().map(line).collect()
    }

    /// The fingerprint of the leaf that the edge serves for a site.
    pub(super) fn served(&self, site: &Value) -> Option<String> {
        let shown = self.service.edge().into_iter().find(|shown| shown["site_id"] == site["id"])?;
        Some(shown["fingerprint"].as_str()?.to_owned())
    }

    /// Whether lineages were issued at the same time and one is for some of its sites only. The others of these have
    /// its leaf if they share a record, which only the state tells from an accident.
    pub(super) fn has_tie(&self) -> bool {
        let mut dates: Vec<i64> = self.lineages.iter().map(|lineage| lineage.leaf.rank.0).collect();
        dates.sort_unstable();
        let is_tie = dates.windows(2).any(|pair| pair[0] == pair[1]);
        is_tie && self.lineages.iter().any(|lineage| !lineage.domains.is_empty())
    }

    fn state_dir(&self) -> PathBuf {
        self.home.path().join("state")
    }

    pub(super) fn wipe_state(&mut self) {
        let _ = fs::remove_dir_all(self.state_dir());
    }

    fn binary(&self) -> Hook {
        let edge = &self.service.endpoints().edge;
        let edges = match self.edge {
            EdgeSetting::Alive => edge.clone(),
            EdgeSetting::HalfDead => format!("{edge},{DEAD_EDGE}"),
            EdgeSetting::Dead => DEAD_EDGE.to_owned(),
        };
        let entries: String = self.lineages.iter().map(HostLineage::entry).collect();
        let config = format!("edge_address = '{edges}'\nwait = 1\ntimeout = 5\n{}{entries}", self.settings);
        let path = self.home.path().join("config.toml");
        fs::write(&path, config).unwrap();
        let hook = edgecert().against(&self.service).without_env("EDGECERT_EDGE_ADDRESS");
        hook.env("EDGECERT_CONFIG", path).env("EDGECERT_STATE_DIR", self.state_dir())
    }

    pub(super) fn hook(&mut self, number: usize, flags: &[&str], faults: &[Fault]) -> Run {
        let hook = self.binary().called_by_certbot(&self.lineages[number].files);
        self.run(hook.args(["deploy", "--json"]).args(flags), &format!("hook {number} {flags:?}"), faults)
    }

    /// Runs `sync` a day later, when the turn of every lineage has come.
    pub(super) fn sync(&mut self, faults: &[Fault]) -> Run {
        if self.state_dir().exists() {
            set_back(&self.state_dir(), DAY);
        }
        self.run(self.binary().args(["sync", "--json"]), "sync", faults)
    }

    fn run(&mut self, hook: Hook, name: &str, faults: &[Fault]) -> Run {
        for fault in faults {
            self.service.add_fault(fault.clone());
        }
        let before = self.service.requests().len();
        let output = hook.run();
        let requests = self.service.requests().split_off(before);
        self.service.clear_faults();
        let json = output.json();
        let posts = requests.iter().filter(|request| request.method == "POST").collect::<Vec<_>>();
        let lines: Vec<String> = posts.iter().map(|post| describe(post)).collect();
        self.log.push(format!("{name} {faults:?}: exit {}, {lines:?}\n{}", output.code, output.stderr));
        self.log.extend(self.site_lines());
        let changed = json["changed"].as_bool().unwrap_or(false);
        assert!(
            changed || !posts.iter().any(|post| is_executed(post)),
            "a change is not reported: {lines:?}"
        );
        assert!(
            !changed || posts.iter().any(|post| is_change(post)),
            "no change is reported as one: {lines:?}"
        );
        assert_eq!(json["exit_code"], output.code);
        assert!(![70, 76, 77, 78, 101].contains(&output.code), "exit {}", output.code);
        Run { output, json, posts: lines }
    }
}

impl HostLineage {
    fn generate(rng: &mut Rng, dates: &mut Dates) -> Self {
        let names = pick(rng, 1, 5);
        let dates = if rng.bool() { dates.later(rng) } else { dates.not_later(rng) };
        let is_rsa = rng.u8(..3) == 0;
        let domains = if rng.u8(..5) == 0 { vec![names[0]] } else { Vec::new() };
        let leaf = Leaf::issue(names, dates, is_rsa);
        let files = Lineage::issued_for(&leaf.names);
        files.save(&leaf.issued);
        Self { files, leaf, past: Vec::new(), is_rsa, domains }
    }

    /// Whether the lineage is to be deployed to a site.
    pub(super) fn wants(&self, domain: &str) -> bool {
        self.leaf.is_valid()
            && self.leaf.covers(domain)
            && (self.domains.is_empty() || self.domains.contains(&domain))
    }

    /// The leaves that its sites may serve: the latest, or while that has expired, an earlier one.
    pub(super) fn deployable(&self) -> impl Iterator<Item = &Leaf> {
        let past = self.past.iter().filter(|leaf| !self.leaf.is_valid() && leaf.is_valid());
        past.chain([&self.leaf])
    }

    pub(super) fn renew(&mut self, names: Vec<&'static str>, dates: [i64; 2]) {
        let renewed = Leaf::issue(names, dates, self.is_rsa);
        self.past.push(std::mem::replace(&mut self.leaf, renewed));
        self.files.save(&self.leaf.issued);
    }

    fn entry(&self) -> String {
        format!("[[lineage]]\npath = '{}'\ndomains = {:?}\n", self.files.path().display(), self.domains)
    }

    pub(super) fn describe(&self) -> String {
        let (issued, expires, fingerprint) = &self.leaf.rank;
        let rsa = if self.is_rsa { "RSA" } else { "P-256" };
        let (names, domains) = (&self.leaf.names, &self.domains);
        format!("{} {names:?} for {domains:?}, {rsa}, issued {issued}, expires {expires}", &fingerprint[..8])
    }
}

fn record(id: u64, rng: &mut Rng, dates: &mut Dates) -> Value {
    let names = pick(rng, 1, 3);
    let kind = if rng.u8(..12) == 0 { "lets" } else { "upload" };
    let dates = if rng.u8(..6) == 0 { dates.expired(rng) } else { dates.not_later(rng) };
    let (domain, leaf) = (names[0], Leaf::issue(names, dates, false));
    json!({
        "id": id, "account": 1, "domain": domain, "name": domain, "type": kind,
        "cert_pem": leaf.issued.fullchain(), "key_pem": leaf.issued.key,
    })
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

/// Whether a request may have been carried out, as far as the client can tell.
fn is_change(post: &RecordedRequest) -> bool {
    is_executed(post) || post.fault.is_some()
}
