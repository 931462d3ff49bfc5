//! A deployment beside many lineages looks only at those that were changed since the last `sync`, and never misses one.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use super::index::{Fleet, LINEAGES, domain};
use super::{Lineage, deploy};
use crate::harness::state_files;

/// How a deployment found out what other lineages deployed.
#[derive(Debug, PartialEq, Eq)]
enum Access {
    /// It read this many of their state files, and did not touch the others.
    Index(usize),
    /// It compared the stamps of all state files, and read this many.
    Stamps(usize),
}

use Access::{Index, Stamps};

impl Fleet {
    fn log(&self) -> PathBuf {
        self.state.path().join("index.changes")
    }

    /// Runs `deploy` for a lineage, and returns what it printed.
    #[track_caller]
    fn deploy(&self, lineage: &Lineage) -> (Access, String) {
        let (is_listed, read, stdout) = self.deploy_traced(lineage);
        (if is_listed { Stamps(read.len()) } else { Index(read.len()) }, stdout)
    }

    /// Runs `deploy` for a lineage. Returns whether it listed the directory, the other state files that it read, and
    /// what it printed.
    #[track_caller]
    fn deploy_traced(&self, lineage: &Lineage) -> (bool, BTreeSet<PathBuf>, String) {
        let run = deploy(&self.service, lineage, self.state.path());
        let (output, trace) = self.traced(run, &["-y", "-e", "trace=%file,getdents64"]);
        assert_eq!(output.code, 0, "{}", output.stderr);
        let certificate = lineage.file("fullchain.pem");
        let files: Vec<PathBuf> =
            state_files(self.state.path()).into_iter().filter(|file| !is_of(file, &certificate)).collect();
        let has = |call: &str, file: &Path| {
            let name = format!("\"{}\"", file.display());
            trace.lines().any(|line| line.contains(call) && line.contains(&name))
        };
        let read: BTreeSet<PathBuf> = files.iter().filter(|file| has("openat", file)).cloned().collect();
        let touched = files.iter().filter(|file| has("", file)).count();
        let directory = format!("<{}>", self.state.path().display());
        let is_listed = trace.lines().any(|line| line.contains("getdents64") && line.contains(&directory));
        let expected = if is_listed { files.len() } else { read.len() };
        assert_eq!(touched, expected, "{trace}");
        (is_listed, read, output.stdout)
    }

    /// Deploys an older leaf for a domain, which has to be left to the lineage that was deployed there.
    #[track_caller]
    fn leaves(&self, number: usize) -> Access {
        let older = Lineage::issued_days_ago(10, "older", &[&domain(number)]);
        let (access, stdout) = self.deploy(&older);
        assert!(stdout.contains("superseded"), "{stdout}");
        fs::remove_file(newest(self.state.path(), &older)).unwrap();
        self.resume();
        access
    }

    /// Runs `sync` until the next deployment can use the index.
    #[track_caller]
    fn resume(&self) {
        self.settle();
        for _ in 0..2 {
            self.sync().succeeds();
        }
    }
}

/// Whether a state file is that of the lineage with this certificate.
fn is_of(file: &Path, certificate: &Path) -> bool {
    fs::read_to_string(file).unwrap().contains(certificate.to_str().unwrap())
}

fn newest(state: &Path, lineage: &Lineage) -> PathBuf {
    let certificate = lineage.file("fullchain.pem");
    state_files(state).into_iter().find(|file| is_of(file, &certificate)).unwrap()
}

/// Replaces a file as an editor, a backup program or an earlier release does.
fn replace(file: &Path, contents: &[u8]) {
    let temporary = file.with_extension("restored");
    fs::write(&temporary, contents).unwrap();
    fs::rename(temporary, file).unwrap();
}

#[test]
fn deployment_reads_only_changed_states() {
    let fleet = Fleet::indexed();
    assert_eq!(fleet.leaves(1), Index(0));
    fleet.lineages[2].renew(&[&domain(2)]);
    assert_eq!(fleet.deploy(&fleet.lineages[2]).0, Index(0));
    fleet.lineages[3].renew(&[&domain(3)]);
    assert_eq!(fleet.deploy(&fleet.lineages[3]).0, Index(1), "the one that was deployed before");
    fleet.resume();
    assert_eq!(fleet.deploy(&fleet.lineages[0]).0, Index(0));
}

#[test]
fn changes_by_other_programs_are_noticed() {
    let fleet = Fleet::indexed();
    let replace_same = |number| replace(&fleet.file(number), &fs::read(fleet.file(number)).unwrap());
    replace_same(5);
    assert_eq!(fleet.leaves(5), Stamps(1), "replaced");
    let kept = fleet.file(6);
    let moved = fleet.state.path().join("kept");
    fs::rename(&kept, &moved).unwrap();
    assert_eq!(fleet.deploy(&fleet.lineages[0]).0, Stamps(0), "deleted");
    fs::rename(&moved, &kept).unwrap();
    assert_eq!(fleet.leaves(6), Stamps(2), "created, and the one that was deployed");

    // tar and rsync restore the times of the directory, too.
    let times = fs::metadata(fleet.state.path()).unwrap();
    replace_same(7);
    let date = format!("@{}.{:09}", times.mtime(), times.mtime_nsec());
    let touched = Command::new("touch").args(["-d", &date]).arg(fleet.state.path()).status().unwrap();
    assert!(touched.success());
    assert_eq!(fs::metadata(fleet.state.path()).unwrap().mtime_nsec(), times.mtime_nsec());
    assert_eq!(fleet.leaves(7), Stamps(1), "restored");
}

#[test]
fn change_by_a_killed_run_is_noticed() {
    let fleet = Fleet::indexed();
    let (directory, log) = (fleet.state.path().to_str().unwrap(), fleet.log());
    let (mut number, mut unlogged) = (2, 0);
    for call in ["utimensat", "write"] {
        for count in 1..=4 {
            fleet.lineages[number].renew(&[&domain(number)]);
            let file = fleet.file(number);
            let before = fs::read(&file).unwrap();
            let inject = format!("inject={call}:signal=KILL:when={count}");
            let options = ["-e", &inject, "-P", directory, "-P", log.to_str().unwrap()];
            let trace = fleet.lineages[0].file("trace");
            let strace = ["strace", "-f", "-qq", "-o", trace.to_str().unwrap()];
            let run = deploy(&fleet.service, &fleet.lineages[number], fleet.state.path());
            let output = run.under(&[&strace[..], &options].concat()).command().output().unwrap();
            assert!(!output.status.success(), "{inject}");
            let is_changed = fs::read(&file).unwrap() != before;
            let (is_listed, read, _) = fleet.deploy_traced(&fleet.lineages[0]);
            assert!(is_listed, "{inject}");
            assert_eq!(read.contains(&file), is_changed, "{inject}");
            unlogged += usize::from(is_changed);
            fleet.sync().succeeds();
            number += 1;
        }
    }
    assert_eq!(unlogged, 6);
}

#[test]
fn damaged_index_does_not_hide_deployments() {
    let fleet = Fleet::indexed();
    let good = fs::read(fleet.index()).unwrap();
    let end = good.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let overwritten = |from: usize| {
        let mut bytes = good.clone();
        bytes[from..].fill(0xff);
        bytes
    };
    let rows = [
        ("no tables", good[..end].to_vec()),
        ("cut table", good[..good.len() - 1].to_vec()),
        ("overwritten entries", overwritten(end)),
    ];
    for (name, bytes) in &rows {
        fs::write(fleet.index(), bytes).unwrap();
        let older = Lineage::issued_days_ago(10, "older", &[&domain(1)]);
        let output = deploy(&fleet.service, &older, fleet.state.path()).succeeds();
        assert!(output.stdout.contains("superseded"), "{name}: {}", output.stdout);
        fleet.resume();
    }
    // The log of another index, and logs that end in the middle of a line.
    let log = fs::read_to_string(fleet.log()).unwrap();
    let other = log.replacen(log.lines().next().unwrap(), "other", 1);
    for text in ["", &other, &log[..log.len() - 1], &log[..log.len() - 9]] {
        fs::write(fleet.log(), text).unwrap();
        assert!(matches!(fleet.deploy(&fleet.lineages[0]).0, Stamps(_)), "{text}");
        fs::write(fleet.log(), &log).unwrap();
    }
    fleet.resume();
    assert_eq!(fleet.deploy(&fleet.lineages[0]).0, Index(rows.len()), "superseded lineages have no entry");
}

#[test]
fn deployments_at_once_are_all_logged() {
    let fleet = Fleet::indexed();
    let renewed = 4..12;
    for at in renewed.clone() {
        fleet.lineages[at].renew(&[&domain(at)]);
    }
    thread::scope(|scope| {
        for at in renewed.clone() {
            let run = deploy(&fleet.service, &fleet.lineages[at], fleet.state.path());
            scope.spawn(move || run.succeeds());
        }
    });
    assert_eq!(fleet.deploy(&fleet.lineages[0]).0, Index(renewed.len()));
    let output = fleet.sync().succeeds();
    assert!(
        output.stdout.starts_with(&format!("{LINEAGES} lineages: {LINEAGES} unchanged")),
        "{}",
        output.stdout
    );
}
