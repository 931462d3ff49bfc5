//! What a record holds is remembered until something else was really stored there, so the guard against older
//! certificates refuses in every run, even if the edge shows nothing.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::start_until;
use crate::harness::{
    Fault, Hook, IssuedCert, Lineage, Options, Sandbox, at_once, change, edgecert, record, sandbox,
    sandbox_with, test_ca, world,
};

const SITES: [&str; 2] = ["a.example", "b.example"];
const UPLOAD: &str = "POST /api/certs/upload";

/// A host that deployed a certificate to both sites, and has no other way to know what the records hold.
struct Host {
    service: Sandbox,
    state: TempDir,
    lineage: Lineage,
    /// The deployed certificate.
    newer: IssuedCert,
}

/// Issues a certificate this many days ago.
fn issued(days: i64, names: &[&str]) -> IssuedCert {
    test_ca().issue_between(names, [-days, 90 - days]).unwrap()
}

impl Host {
    /// Each site has a record of its own.
    fn deployed() -> Self {
        let sites = [(10, "a.example", 5), (11, "b.example", 6)];
        let sites = sites
            .map(|(id, domain, cert)| json!({"id": id, "account": 1, "domain": domain, "cert_id": cert}));
        let records = [record(5, "a.example", "upload"), record(6, "b.example", "upload")];
        let world = world(json!({"sites": sites, "certs": records}));
        let service = sandbox_with(Options { world, quirks: 0, ..Options::default() }, &[]);
        let (state, lineage, newer) =
            (TempDir::new().unwrap(), Lineage::issued_for(&SITES), issued(5, &SITES));
        let host = Self { service, state, lineage, newer };
        host.lineage.save(&host.newer);
        host.deploy(&[]).succeeds();
        assert_eq!(host.holders(), SITES);
        host
    }

    /// The sites whose record holds the deployed certificate.
    fn holders(&self) -> Vec<String> {
        let (sites, certs) = (self.service.sites(), self.service.certs());
        let holds = |id: &Value| {
            certs.iter().any(|cert| cert["id"] == *id && cert["cert_pem"] == self.newer.fullchain())
        };
        let holders = sites.iter().filter(|site| holds(&site["cert_id"]));
        let mut holders: Vec<String> =
            holders.map(|site| site["domain"].as_str().unwrap().to_owned()).collect();
        holders.sort();
        holders
    }

    fn hook(&self) -> Hook {
        let hook = edgecert().against(&self.service).env("EDGECERT_STATE_DIR", self.state.path());
        hook.env("EDGECERT_VERIFY", "off").env("EDGECERT_TIMEOUT", "2")
    }

    /// A run of the lineage's hook.
    fn deploy(&self, arguments: &[&str]) -> Hook {
        self.hook().called_by_certbot(&self.lineage).args(arguments)
    }

    /// A run for the lineage that a user starts, so that its options do not hold for later certificates.
    fn by_hand(&self, arguments: &[&str]) -> Hook {
        self.hook().args(["--lineage".as_ref(), self.lineage.path()]).args(arguments)
    }

    fn sync(&self) -> Hook {
        self.hook().args(["sync"])
    }

    /// Replaces the files with a certificate that was issued this many days ago.
    fn save(&self, days: i64, names: &[&str]) {
        self.lineage.save(&issued(days, names));
    }

    /// Expects `sync` to refuse in every run.
    #[track_caller]
    fn assert_guarded(&self, name: &str) {
        for run in 1..=2 {
            let output = self.sync().run();
            assert_eq!(output.code, 65, "{name}, run {run}: {}{}", output.stdout, output.stderr);
            assert!(output.stderr.contains("later than the new one"), "{name}, run {run}: {}", output.stderr);
        }
    }

    /// Runs the hook for a later certificate while the uploads fail.
    fn fail_to_renew(&self, fault: Fault, code: i32) {
        self.service.add_fault(fault.times(99));
        self.save(1, &SITES);
        self.deploy(&[]).exits_with(code);
        self.service.clear_faults();
    }
}

/// Something that happens between two runs of `sync`.
type Event = fn(&Host);

/// Events that store nothing in the record of at least one site.
const EVENTS: [(&str, Event); 16] = [
    ("nothing", |_| {}),
    ("guarded", |host| {
        host.save(20, &SITES);
        host.deploy(&[]).exits_with(65);
    }),
    ("refused", |host| host.fail_to_renew(Fault::status(UPLOAD, 400), 69)),
    ("key rejected", |host| host.fail_to_renew(Fault::status(UPLOAD, 401), 77)),
    ("busy", |host| host.fail_to_renew(Fault::status(UPLOAD, 429), 75)),
    ("listing fails", |host| host.fail_to_renew(Fault::status("*", 503).header("Retry-After", "3600"), 75)),
    ("failed check", |host| {
        host.save(1, &SITES);
        host.lineage.write("privkey.pem", &host.newer.key);
        host.deploy(&[]).exits_with(65);
    }),
    ("one site refused", |host| {
        host.service.add_fault(Fault::status(UPLOAD, 403).times(1));
        host.save(1, &SITES);
        host.deploy(&[]).exits_with(69);
    }),
    ("site bound elsewhere for a time", |host| {
        change(&host.service, "/api/sites/10/update", &json!({"cert_id": 6}));
        host.sync().succeeds();
        change(&host.service, "/api/sites/10/update", &json!({"cert_id": 5}));
    }),
    ("another service", |host| {
        let other = sandbox(&["a.example"]);
        host.save(20, &SITES);
        host.deploy(&[]).against(&other).succeeds();
    }),
    ("another service that does not respond", |host| {
        host.save(20, &SITES);
        host.deploy(&[]).env("EDGECERT_BASE_URL", "http://127.0.0.1:1").exits_with(75);
    }),
    ("files missing for a time", |host| {
        fs::remove_file(host.lineage.file("fullchain.pem")).unwrap();
        host.sync().exits_with(66);
    }),
    ("other site only", |host| {
        host.save(20, &SITES);
        host.by_hand(&["--domain", "b.example", "--allow-older"]).succeeds();
    }),
    ("no site covered", |host| {
        host.save(1, &["c.example"]);
        host.by_hand(&["--skip-unmatched"]).succeeds();
    }),
    ("bare upload for the other site", |host| {
        host.save(20, &SITES);
        host.by_hand(&["--domain", "b.example", "--wait", "0"]).succeeds();
    }),
    ("bare upload refused", |host| {
        host.service.add_fault(Fault::status(UPLOAD, 403).times(1));
        host.save(20, &SITES);
        host.by_hand(&["--domain", "a.example", "--wait", "0"]).exits_with(69);
    }),
];

#[test]
fn guard_older_works_more_than_once() {
    at_once(EVENTS, |(name, happen)| {
        let host = Host::deployed();
        happen(&host);
        let holders = host.holders();
        assert!(!holders.is_empty(), "{name}");
        host.save(20, &SITES);
        host.assert_guarded(name);
        assert_eq!(host.holders(), holders, "{name}");
        // What was really stored counts from then on.
        host.deploy(&["--allow-older"]).succeeds();
        assert_eq!(host.holders(), [""; 0], "{name}");
        host.save(10, &SITES);
        host.sync().succeeds();
    });
}

#[test]
fn lost_response_may_have_stored_the_certificate() {
    let rows: [(&str, Event); 3] = [
        ("lost", |host| {
            host.deploy(&[]).exits_with(75);
        }),
        ("lost by a bare upload", |host| {
            host.by_hand(&["--domain", "a.example", "--wait", "0"]).exits_with(75);
        }),
        ("killed", |host| {
            let mut hook = host.deploy(&["--timeout", "60"]);
            let (mut child, _stderr) = start_until(&mut hook, "retrying in");
            child.kill().unwrap();
            child.wait().unwrap();
        }),
    ];
    at_once(rows, |(name, run)| {
        let host = Host::deployed();
        host.service.add_fault(Fault::close_after(UPLOAD).times(99));
        let latest = issued(1, &SITES);
        host.lineage.save(&latest);
        run(&host);
        host.service.clear_faults();
        // Issued later than the deployed certificate, but earlier than the one that may have been stored.
        host.save(3, &SITES);
        host.assert_guarded(name);
        assert!(host.service.certs().iter().any(|cert| cert["cert_pem"] == latest.fullchain()), "{name}");
        let output = host.sync().exits_with(65);
        assert!(output.stderr.contains(") may be one that was issued at "), "{name}: {}", output.stderr);
        host.lineage.save(&latest);
        host.sync().succeeds();
    });
}

#[test]
fn lost_response_counts_after_a_refused_retry() {
    let host = Host::deployed();
    host.service.add_fault(Fault::close_after(UPLOAD).times(2));
    host.service.add_fault(Fault::status(UPLOAD, 429).times(99));
    host.lineage.save(&issued(1, &SITES));
    let output = host.deploy(&["--json"]).exits_with(75);
    assert_eq!(output.json()["changed"], true);
    host.service.clear_faults();
    host.save(3, &SITES);
    host.assert_guarded("lost, then busy");
}
