//! Generated accounts against the real binary and the sandbox, with quirks and faults: the report must match what the
//! service and its edge hold in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use fastrand::Rng;
use serde_json::{Value, json};

use crate::harness::{
    Account, Fault, Lineage, Options, Output, Sandbox, fresh, in_parallel, record_of, sandbox_with, test_ca,
    world,
};

const WORLDS: u64 = 120;
const DOMAINS: [&str; 6] =
    ["a.example", "b.example", "c.example", "*.a.example", "x.a.example", "b\u{fc}cher.example"];
const UPLOAD: &str = "POST /api/certs/upload";
/// A record of another account, which the listing lacks.
const UNLISTED: u64 = 99;

/// A generated account with a lineage and faults.
struct Case {
    seed: u64,
    service: Sandbox,
    renewed: Lineage,
    covered: BTreeSet<&'static str>,
    flags: Vec<&'static str>,
    faults: Vec<Fault>,
    sites: Vec<Value>,
    records: Vec<Value>,
}

/// A site's domain as certificates spell it.
fn san(domain: &str) -> &str {
    if domain.is_ascii() { domain } else { "xn--bcher-kva.example" }
}

fn pick(rng: &mut Rng, least: usize) -> Vec<&'static str> {
    let mut domains = DOMAINS.to_vec();
    rng.shuffle(&mut domains);
    domains.truncate(rng.usize(least..=DOMAINS.len()));
    domains
}

fn stored(rng: &mut Rng, id: u64) -> Value {
    let mut names = pick(rng, 1);
    names.truncate(if rng.u8(..4) == 0 { 2 } else { 1 });
    let sans: Vec<&str> = names.iter().map(|name| san(name)).collect();
    let issued = test_ca().issue(&sans).unwrap();
    let kind = if rng.u8(..5) == 0 { "lets" } else { "upload" };
    let mut record = record_of(id, names[0], &issued);
    record["type"] = json!(kind);
    record
}

fn faults(rng: &mut Rng) -> Vec<Fault> {
    let fault = |rng: &mut Rng| match rng.u8(..9) {
        0 => Fault::status(UPLOAD, 503),
        1 => Fault::status(UPLOAD, 400),
        2 => Fault::status(UPLOAD, 429).header("Retry-After", "0"),
        3 => Fault::close_after(UPLOAD),
        4 => Fault::truncate(UPLOAD, 20).times(6),
        5 => Fault::close_before("GET /api/me/sites"),
        6 => Fault::truncate("GET /api/certs", 1),
        7 => Fault::close_after("POST /api/sites/*/update"),
        _ => Fault::status("POST /api/sites/*/update", 403),
    };
    (0..rng.usize(..3)).map(|_| fault(rng)).collect()
}

impl Case {
    fn generate(seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let covered: BTreeSet<&'static str> = pick(rng, 1).into_iter().collect();
        let mut records: Vec<Value> = (1..=rng.u64(0..=6)).map(|id| stored(rng, id)).collect();
        let own = records.len() as u64;
        let mut unlisted = stored(rng, UNLISTED);
        unlisted["account"] = json!(2);
        records.push(unlisted);
        let domains = pick(rng, 1);
        let sites = domains.iter().zip(10..).map(|(domain, id)| {
            let cert_id = match rng.u64(..9) {
                0..=2 => None,
                3 => Some(UNLISTED),
                _ => (own > 0).then(|| rng.u64(1..=own)),
            };
            json!({"id": id, "account": 1, "domain": domain, "cert_id": cert_id})
        });
        let mut world = world(json!({"sites": sites.collect::<Vec<_>>(), "certs": records}));
        world.accounts.push(Account { id: 2, api_keys: vec!["other-key".into()], packages: Vec::new() });
        let options = Options { world, quirks: rng.u64(..50), ..Options::default() };
        let service = sandbox_with(options, &[]);
        let flags = ["--rebind", "--allow-shrink", "--replace-lets"];
        let flags = flags.into_iter().filter(|_| rng.u8(..3) == 0).collect();
        let faults = faults(rng);
        let renewed = Lineage::issued_for(&covered.iter().map(|name| san(name)).collect::<Vec<_>>());
        let (sites, records) = (service.sites(), service.certs());
        for fault in &faults {
            service.add_fault(fault.clone());
        }
        Self { seed, service, renewed, covered, flags, faults, sites, records }
    }

    fn run(&self) -> Output {
        let hook = fresh(&self.service, &self.renewed);
        hook.args(["--json", "--wait", "2", "--timeout", "20"]).args(&self.flags).run()
    }

    fn holds_new_leaf(&self, cert_id: &Value) -> bool {
        let record = self.service.certs().into_iter().find(|record| record["id"] == *cert_id);
        record.is_some_and(|record| record["cert_pem"] == self.renewed.read("fullchain.pem"))
    }

    fn covers(&self, domain: &str) -> bool {
        let parent = domain.split_once('.').map(|(_, parent)| format!("*.{parent}"));
        self.covered.contains(domain)
            || !domain.starts_with('*') && self.covered.contains(parent.unwrap().as_str())
    }

    /// Compares the report with the service and the edge.
    fn check(&self, output: &Output) {
        let report = output.json();
        let now: BTreeMap<String, Value> =
            self.service.sites().into_iter().map(|site| (name(&site), site)).collect();
        let reported: Vec<&Value> =
            report["sites"].as_array().unwrap().iter().filter(|site| site["id"] != json!(null)).collect();
        let covered = self.sites.iter().filter(|site| self.covers(&name(site))).count();
        if reported.is_empty() {
            let nothing = report["error"].is_string() || covered == 0;
            assert!(
                nothing && self.service.certs() == self.records,
                "{self}: nothing is reported\n{report:#}"
            );
            return;
        }
        assert_eq!(reported.len(), covered, "{self}: a covered site is missing\n{report:#}");
        for site in &reported {
            self.check_site(site, &now[&name(site)], &report);
        }
        self.check_others(&reported, &report);
        let code = reported
            .iter()
            .map(|site| severity(site["outcome"].as_str().unwrap()))
            .max_by_key(|(rank, _)| *rank);
        let code = code.unwrap().1;
        assert!(code.contains(&output.code), "{self}: exit {} for\n{report:#}", output.code);
    }

    fn check_site(&self, reported: &Value, now: &Value, report: &Value) {
        // Retries of the upload may have left no time to read it again.
        let is_unread = reported["detail"] == "the site could not be read after the upload";
        let known = if is_unread { &reported["cert_id_before"] } else { &now["cert_id"] };
        assert_eq!(reported["cert_id"], *known, "{self}: {reported} but the service has {now}\n{report:#}");
        let new = self.holds_new_leaf(&now["cert_id"]);
        match reported["outcome"].as_str().unwrap() {
            "served" => {
                let shown = self.service.edge().into_iter().find(|shown| shown["site_id"] == now["id"]);
                let fingerprint = shown.map(|shown| shown["fingerprint"].clone());
                let expected = report["certificate"]["fingerprint"].clone();
                assert!(new && fingerprint == Some(expected), "{self}: {reported} is not served\n{report:#}");
            }
            "synced" | "uploaded" | "stale" => {
                assert!(new, "{self}: {reported} lacks the new leaf\n{report:#}");
            }
            "misbound" | "guarded" => assert!(!new, "{self}: {reported} has the new leaf\n{report:#}"),
            "queued" | "refused" => assert!(!self.faults.is_empty(), "{self}: {reported}\n{report:#}"),
            other => panic!("{self}: {other}\n{report:#}"),
        }
    }

    /// Asserts that nothing else changed, and that no unused record is left.
    fn check_others(&self, reported: &[&Value], report: &Value) {
        let (sites, records) = (self.service.sites(), self.service.certs());
        for (before, after) in self.sites.iter().zip(&sites).filter(|(site, _)| !self.covers(&name(site))) {
            assert_eq!(before["cert_id"], after["cert_id"], "{self}: {}\n{report:#}", name(before));
            let untouched = !self.holds_new_leaf(&after["cert_id"]) || self.flags.contains(&"--allow-shrink");
            assert!(untouched, "{self}: {} lost its names\n{report:#}", name(before));
        }
        for before in self.records.iter().filter(|record| record["type"] == "lets") {
            let after = records.iter().find(|record| record["id"] == before["id"]).unwrap();
            let kept = after["cert_pem"] == before["cert_pem"] || self.flags.contains(&"--replace-lets");
            assert!(kept, "{self}: {} was the system's\n{report:#}", before["id"]);
        }
        let failed = |site: &&Value| ["queued", "refused"].contains(&site["outcome"].as_str().unwrap());
        for record in &records {
            let is_new = !self.records.iter().any(|before| before["id"] == record["id"]);
            let is_used = sites.iter().any(|site| site["cert_id"] == record["id"]);
            assert!(
                !is_new || is_used || reported.iter().any(failed),
                "{self}: an unused record is left\n{report:#}"
            );
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sites, records) = (json!(self.sites), json!(self.records));
        let brief: Vec<_> =
            records.as_array().unwrap().iter().map(|r| (&r["id"], &r["domain"], &r["type"])).collect();
        let sites: Vec<_> =
            sites.as_array().unwrap().iter().map(|s| (name(s), s["cert_id"].clone())).collect();
        let (seed, covered, flags, faults) = (self.seed, &self.covered, &self.flags, &self.faults);
        write!(f, "world {seed}: {sites:?} {brief:?} covered {covered:?} {flags:?} {faults:?}")
    }
}

fn name(site: &Value) -> String {
    site["domain"].as_str().unwrap().to_owned()
}

/// The severity of an outcome, and the exit codes that it allows.
fn severity(outcome: &str) -> (u8, &'static [i32]) {
    match outcome {
        "guarded" => (4, &[65]),
        // An invalid response is retried, and is more severe than a refusal.
        "queued" => (2, &[75, 76, 69]),
        "misbound" | "refused" => (3, &[69, 76]),
        "stale" => (1, &[75]),
        _ => (0, &[0]),
    }
}

#[test]
fn report_matches_service_and_edge() {
    // Most of their time is waiting.
    in_parallel(20, 0..WORLDS, |seed| {
        let case = Case::generate(seed);
        case.check(&case.run());
    });
}
