//! What a record holds is remembered until something else was really stored there, so the guard against older
//! certificates refuses in every run, even if the edge shows nothing.

use std::fs;

use serde_json::Value;

use super::start_until;
use crate::harness::{Fault, Hook, Host, IssuedCert, account, at_once, bind, record, sandbox, test_ca};

const SITES: [&str; 2] = ["a.example", "b.example"];
const UPLOAD: &str = "POST /api/certs/upload";

/// A host that deployed a certificate to both sites, and has no other way to know what the records hold.
struct Recorded {
    host: Host,
    /// The deployed certificate.
    newer: IssuedCert,
}

/// Issues a certificate this many days ago.
fn issued(days: i64, names: &[&str]) -> IssuedCert {
    test_ca().issue_between(names, [-days, 90 - days]).unwrap()
}

impl Recorded {
    /// Each site has a record of its own.
    fn deployed() -> Self {
        let sites = [(10, "a.example", Some(5)), (11, "b.example", Some(6))];
        let records = [record(5, "a.example", "upload"), record(6, "b.example", "upload")];
        let host = Host::of(account(&sites, &records), &SITES);
        let case = Self { host, newer: issued(5, &SITES) };
        case.host.lineage.save(&case.newer);
        case.deploy(&["--timeout", "60"]).succeeds();
        assert_eq!(case.holders(), SITES);
        case
    }

    /// The sites whose record holds the deployed certificate.
    fn holders(&self) -> Vec<String> {
        let (sites, certs) = (self.host.service.sites(), self.host.service.certs());
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
        self.host.call().env("EDGECERT_VERIFY", "off").env("EDGECERT_TIMEOUT", "2")
    }

    /// A run of the lineage's hook.
    fn deploy(&self, arguments: &[&str]) -> Hook {
        self.hook().called_by_certbot(&self.host.lineage).args(arguments)
    }

    /// A run for the lineage that a user starts, so that its options do not hold for later certificates.
    fn by_hand(&self, arguments: &[&str]) -> Hook {
        self.hook().args(["--lineage".as_ref(), self.host.lineage.path()]).args(arguments)
    }

    fn sync(&self) -> Hook {
        self.hook().args(["sync"])
    }

    /// Replaces the files with a certificate that was issued this many days ago.
    fn save(&self, days: i64, names: &[&str]) {
        self.host.lineage.save(&issued(days, names));
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
        self.host.service.add_fault(fault.times(99));
        self.save(1, &SITES);
        self.deploy(&[]).exits_with(code);
        self.host.service.clear_faults();
    }
}

/// Something that happens between two runs of `sync`.
type Event = fn(&Recorded);

/// Events that store nothing in the record of at least one site.
const EVENTS: [(&str, Event); 16] = [
    ("nothing", |_| {}),
    ("guarded", |case| {
        case.save(20, &SITES);
        case.deploy(&[]).exits_with(65);
    }),
    ("refused", |case| case.fail_to_renew(Fault::status(UPLOAD, 400), 69)),
    ("key rejected", |case| case.fail_to_renew(Fault::status(UPLOAD, 401), 77)),
    ("busy", |case| case.fail_to_renew(Fault::status(UPLOAD, 429), 75)),
    ("listing fails", |case| case.fail_to_renew(Fault::status("*", 503).header("Retry-After", "3600"), 75)),
    ("failed check", |case| {
        case.save(1, &SITES);
        case.host.lineage.write("privkey.pem", &case.newer.key);
        case.deploy(&[]).exits_with(65);
    }),
    ("one site refused", |case| {
        case.host.service.add_fault(Fault::status(UPLOAD, 403).times(1));
        case.save(1, &SITES);
        case.deploy(&[]).exits_with(69);
    }),
    ("site bound elsewhere for a time", |case| {
        bind(&case.host.service, "a.example", Some(6));
        case.sync().succeeds();
        bind(&case.host.service, "a.example", Some(5));
    }),
    ("another service", |case| {
        let other = sandbox(&["a.example"]);
        case.save(20, &SITES);
        case.deploy(&[]).against(&other).succeeds();
    }),
    ("another service that does not respond", |case| {
        case.save(20, &SITES);
        case.deploy(&[]).env("EDGECERT_BASE_URL", "http://127.0.0.1:1").exits_with(75);
    }),
    ("files missing for a time", |case| {
        fs::remove_file(case.host.lineage.file("fullchain.pem")).unwrap();
        case.sync().exits_with(66);
    }),
    ("other site only", |case| {
        case.save(20, &SITES);
        case.by_hand(&["--domain", "b.example", "--allow-older"]).succeeds();
    }),
    ("no site covered", |case| {
        case.save(1, &["c.example"]);
        case.by_hand(&["--skip-unmatched"]).succeeds();
    }),
    ("bare upload for the other site", |case| {
        case.save(20, &SITES);
        case.by_hand(&["--domain", "b.example", "--wait", "0"]).succeeds();
    }),
    ("bare upload refused", |case| {
        case.host.service.add_fault(Fault::status(UPLOAD, 403).times(1));
        case.save(20, &SITES);
        case.by_hand(&["--domain", "a.example", "--wait", "0"]).exits_with(69);
    }),
];

#[test]
fn guard_older_works_more_than_once() {
    at_once(EVENTS, |(name, happen)| {
        let case = Recorded::deployed();
        happen(&case);
        let holders = case.holders();
        assert!(!holders.is_empty(), "{name}");
        case.save(20, &SITES);
        case.assert_guarded(name);
        assert_eq!(case.holders(), holders, "{name}");
        // What was really stored counts from then on.
        case.deploy(&["--allow-older"]).succeeds();
        assert_eq!(case.holders(), [""; 0], "{name}");
        case.save(10, &SITES);
        case.sync().succeeds();
    });
}

#[test]
fn lost_response_may_have_stored_the_certificate() {
    let rows: [(&str, Event); 3] = [
        ("lost", |case| {
            case.deploy(&[]).exits_with(75);
        }),
        ("lost by a bare upload", |case| {
            case.by_hand(&["--domain", "a.example", "--wait", "0"]).exits_with(75);
        }),
        ("killed", |case| {
            let mut hook = case.deploy(&["--timeout", "60"]);
            let (mut child, _stderr) = start_until(&mut hook, "retrying in");
            child.kill().unwrap();
            child.wait().unwrap();
        }),
    ];
    at_once(rows, |(name, run)| {
        let case = Recorded::deployed();
        case.host.service.add_fault(Fault::close_after(UPLOAD).times(99));
        let latest = issued(1, &SITES);
        case.host.lineage.save(&latest);
        run(&case);
        case.host.service.clear_faults();
        // Issued later than the deployed certificate, but earlier than the one that may have been stored.
        case.save(3, &SITES);
        case.assert_guarded(name);
        assert!(
            case.host.service.certs().iter().any(|cert| cert["cert_pem"] == latest.fullchain()),
            "{name}"
        );
        let output = case.sync().exits_with(65);
        assert!(output.stderr.contains(") may be one that was issued at "), "{name}: {}", output.stderr);
        case.host.lineage.save(&latest);
        case.sync().succeeds();
    });
}

#[test]
fn lost_response_counts_after_a_refused_retry() {
    let case = Recorded::deployed();
    case.host.service.add_fault(Fault::close_after(UPLOAD).times(2));
    case.host.service.add_fault(Fault::status(UPLOAD, 429).times(99));
    case.host.lineage.save(&issued(1, &SITES));
    assert_eq!(case.deploy(&["--json"]).exits_with(75).json()["changed"], true);
    case.host.service.clear_faults();
    case.save(3, &SITES);
    case.assert_guarded("lost, then busy");
}
