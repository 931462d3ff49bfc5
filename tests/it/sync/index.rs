//! The index of the state directory: files of unchanged lineages are not read again, and every change is noticed.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Lineage, change, configured, sync};
use crate::harness::{Hook, Output, Sandbox, edit_state, sandbox, state_files, test_ca};

/// More than the index takes to be written.
pub(super) const LINEAGES: usize = 18;

/// Lineages that were deployed, and whose files are not too young to be indexed.
pub(super) struct Fleet {
    pub(super) service: Sandbox,
    pub(super) state: TempDir,
    pub(super) lineages: Vec<Lineage>,
}

pub(super) fn domain(number: usize) -> String {
    format!("s{number}.example")
}

impl Fleet {
    fn deployed() -> Self {
        let domains: Vec<String> = (0..LINEAGES).map(domain).collect();
        let names: Vec<&str> = domains.iter().map(String::as_str).collect();
        let (service, state) = (sandbox(&names), TempDir::new().unwrap());
        let lineages: Vec<Lineage> = names.iter().map(|name| Lineage::issued_for(&[name])).collect();
        // As certbot has it.
        lineages[1].rename("fullchain.pem", "archive1.pem");
        symlink("archive1.pem", lineages[1].file("fullchain.pem")).unwrap();
        let all: Vec<&Lineage> = lineages.iter().collect();
        configured(sync(&service, state.path()), &all).succeeds();
        let fleet = Self { service, state, lineages };
        fleet.settle();
        fleet
    }

    /// Deployed, and indexed by a first run.
    pub(super) fn indexed() -> Self {
        let fleet = Self::deployed();
        assert_eq!(fleet.unread(), (0, "18 lineages: 18 unchanged\n".into()));
        assert!(fleet.index().is_file());
        assert_eq!(fleet.unread(), (LINEAGES, "18 lineages: 18 unchanged\n".into()));
        fleet
    }

    pub(super) fn sync(&self) -> Hook {
        sync(&self.service, self.state.path())
    }

    pub(super) fn index(&self) -> PathBuf {
        self.state.path().join("index")
    }

    /// The state file of a lineage.
    pub(super) fn file(&self, number: usize) -> PathBuf {
        let path = self.lineages[number].file("fullchain.pem");
        let is_own = |file: &PathBuf| {
            let state: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
            state["lineage"]["cert"] == path.to_str().unwrap()
        };
        state_files(self.state.path()).into_iter().find(is_own).unwrap()
    }

    /// Waits until the file system's clock is three seconds past the last change of any file.
    pub(super) fn settle(&self) {
        let certificates = self.lineages.iter().map(|lineage| lineage.file("fullchain.pem"));
        let files = certificates.chain(state_files(self.state.path()));
        let newest = files.map(|file| fs::metadata(file).unwrap().ctime()).max().unwrap();
        let clock = self.lineages[0].file("clock");
        loop {
            fs::write(&clock, "").unwrap();
            if fs::metadata(&clock).unwrap().ctime() > newest + 3 {
                return;
            }
            sleep(Duration::from_millis(50));
        }
    }

    pub(super) fn traced(&self, run: Hook, options: &[&str]) -> (Output, String) {
        let trace = self.lineages[0].file("trace");
        let strace = ["strace", "-f", "-qq", "-o", trace.to_str().unwrap()];
        let output = run.under(&[&strace, options].concat()).run();
        (output, fs::read_to_string(trace).unwrap())
    }

    /// Runs `sync`, and returns how many lineages it did not read, and its last line.
    pub(super) fn unread(&self) -> (usize, String) {
        let (output, trace) = self.traced(self.sync(), &["-e", "trace=open,openat"]);
        assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
        assert!(!output.stderr.contains("warning"), "{}", output.stderr);
        (LINEAGES - self.read(&trace).len(), output.shown().replace(" (TIME)", ""))
    }

    /// The lineages whose certificates a traced run opened.
    fn read(&self, trace: &str) -> BTreeSet<usize> {
        let is_read = |path: PathBuf| trace.contains(&format!("\"{}\"", path.display()));
        (0..LINEAGES).filter(|at| is_read(self.lineages[*at].file("fullchain.pem"))).collect()
    }

    /// Runs `sync`, which has to process one lineage for this reason.
    #[track_caller]
    fn notices(&self, reason: &str) {
        let output = self.sync().args(["--json"]).succeeds().json();
        assert_eq!(output["counts"]["deployed"], 1, "{output}");
        let found = output["lineages"][0]["reason"].as_str().unwrap();
        assert!(found.contains(reason), "{found}");
        self.settle();
        self.unread();
        assert_eq!(self.unread().0, LINEAGES);
    }
}

#[test]
fn shard_reads_only_its_own_lineages() {
    let fleet = Fleet::deployed();
    let mut read = BTreeSet::new();
    for shard in 0..3 {
        _ = fs::remove_file(fleet.index());
        let sync = fleet.sync().args(["--json", "--shard", &format!("{shard}/3")]);
        let (output, trace) = fleet.traced(sync, &["-e", "trace=open,openat"]);
        let own = fleet.read(&trace);
        assert_eq!(output.json()["counts"]["unchanged"], own.len());
        assert!(read.is_disjoint(&own), "{read:?} {own:?}");
        read.extend(own);
    }
    assert_eq!(read.len(), LINEAGES);
}

#[test]
fn unchanged_lineages_are_not_read() {
    let fleet = Fleet::indexed();
    // Another service was meant.
    let elsewhere = fleet.sync().env("EDGECERT_BASE_URL", "http://127.0.0.1:1").args(["--timeout", "1"]);
    let output = elsewhere.run();
    assert!(output.stderr.contains("18 lineages"), "{}{}", output.stdout, output.stderr);
    assert_eq!(fleet.unread().0, LINEAGES);
    // Each shard counts its own.
    let shards = [0, 1, 2].map(|shard| {
        let output = fleet.sync().args(["--json", "--shard", &format!("{shard}/3")]).succeeds().json();
        output["counts"]["unchanged"].as_u64().unwrap()
    });
    assert_eq!(shards.iter().sum::<u64>(), 18, "{shards:?}");
    assert_eq!(fleet.unread().0, LINEAGES);
    // The edges of all are due.
    let output = fleet.sync().env("EDGECERT_VERIFY_EVERY", "1").succeeds();
    assert!(output.stdout.starts_with("18 lineages: 18 unchanged"), "{}", output.stdout);
    assert_eq!(fleet.unread().0, 0, "the check was recorded");
}

#[test]
fn every_change_of_a_lineage_is_noticed() {
    let fleet = Fleet::indexed();
    let before = fleet.file(0);
    let backup = fs::read(&before).unwrap();
    fleet.lineages[0].renew(&[&domain(0)]);
    fleet.notices("renewed");

    let issued = test_ca().issue(&[&domain(1)]).unwrap();
    let lineage = &fleet.lineages[1];
    lineage.write("archive2.pem", &issued.fullchain());
    lineage.write("privkey.pem", &issued.key);
    symlink("archive2.pem", lineage.file("new")).unwrap();
    lineage.rename("new", "fullchain.pem");
    fleet.notices("renewed");

    fs::write(&before, &backup).unwrap();
    fleet.notices("renewed");

    edit_state(&fleet.file(2), |state| state["pending_since"] = state["begun"].clone());
    fleet.notices("pending since");

    let sites = fleet.service.sites();
    let id = sites.iter().find(|site| site["domain"] == domain(3)).unwrap()["id"].as_u64().unwrap();
    change(&fleet.service, &format!("/api/sites/{id}/update"), &json!({"cert_id": null}));
    fleet.notices("bound to no certificate");

    let key = fleet.lineages[4].read("privkey.pem");
    let fullchain = fleet.lineages[4].read("fullchain.pem");
    fs::remove_file(fleet.lineages[4].file("fullchain.pem")).unwrap();
    let gone = fleet.sync().args(["--json"]).exits_with(66).json();
    assert_eq!(gone["counts"]["gone"], 1, "{gone}");
    fleet.lineages[4].write("fullchain.pem", &fullchain);
    fleet.lineages[4].write("privkey.pem", &key);
    fleet.notices("its files are back");

    fs::remove_file(fleet.file(5)).unwrap();
    let (unread, line) = fleet.unread();
    assert_eq!((unread, line.as_str()), (LINEAGES, "17 lineages: 17 unchanged\n"));
}

#[test]
fn damaged_index_means_that_all_is_read() {
    let fleet = Fleet::indexed();
    let good = fs::read(fleet.index()).unwrap();
    let end = good.iter().position(|byte| *byte == b'\n').unwrap();
    let edited = |change: fn(&mut Value)| {
        let mut header: Value = serde_json::from_slice(&good[..end]).unwrap();
        change(&mut header);
        [header.to_string().as_bytes(), &good[end..]].concat()
    };
    let rows = [
        ("empty", Vec::new()),
        ("garbage", vec![0xff; 4096]),
        ("another format", edited(|header| header["version"] = json!(3))),
        ("another boot", edited(|header| header["boot"] = json!("other"))),
        ("another directory", edited(|header| header["directory"][1] = json!(1))),
        (
            "a day old",
            edited(|header| header["read_at"] = json!(header["read_at"].as_i64().unwrap() - 86_400)),
        ),
        ("from the future", edited(|header| header["read_at"] = json!(4_000_000_000_u32))),
    ];
    for (name, bytes) in rows {
        fs::write(fleet.index(), bytes).unwrap();
        assert_eq!(fleet.unread(), (0, "18 lineages: 18 unchanged\n".into()), "{name}");
        assert_eq!(fleet.unread().0, LINEAGES, "{name}");
    }
    fs::write(fleet.index(), &good[..end + (good.len() - end) / 2]).unwrap();
    let (unread, line) = fleet.unread();
    assert!((1..LINEAGES).contains(&unread) && line == "18 lineages: 18 unchanged\n", "{unread}: {line}");
    fs::remove_file(fleet.index()).unwrap();
    fs::create_dir(fleet.index()).unwrap();
    assert_eq!(fleet.unread(), (0, "18 lineages: 18 unchanged\n".into()));
}

#[test]
fn killed_write_leaves_a_usable_index() {
    let fleet = Fleet::indexed();
    let paths = ["index", "index.new", "index.changes"].map(|name| fleet.state.path().join(name));
    let mut kills = 0;
    for call in ["openat", "flock", "ftruncate", "unlink", "write", "rename"] {
        for count in 1..20 {
            fs::write(fleet.index(), "").unwrap();
            let inject = format!("inject={call}:signal=KILL:when={count}");
            let mut options = vec!["-e", inject.as_str()];
            options.extend(paths.iter().flat_map(|path| ["-P", path.to_str().unwrap()]));
            let trace = fleet.lineages[0].file("trace");
            let strace = ["strace", "-f", "-qq", "-o", trace.to_str().unwrap()];
            let output =
                fleet.sync().under(&[&strace, options.as_slice()].concat()).command().output().unwrap();
            let is_killed = !output.status.success();
            let (_, line) = fleet.unread();
            assert_eq!(line, "18 lineages: 18 unchanged\n", "{inject}");
            assert_eq!(fleet.unread().0, LINEAGES, "{inject}");
            if !is_killed {
                break;
            }
            kills += 1;
        }
    }
    assert!(kills >= 5, "{kills}");
}
