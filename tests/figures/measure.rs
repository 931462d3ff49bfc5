//! The figures that take one look: instructions, memory, size, crates.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;

use anyhow::{Context as _, Result};

use crate::scene::{Call, Scene};
use crate::system;

/// Crates that must not be in the tree: the first two cost every process its start, the third is a system library.
pub(crate) const UNWANTED: [&str; 3] = ["aws-lc-rs", "aws-lc-sys", "openssl-sys"];

/// User-space instructions of the whole process, as callgrind counts them.
pub(crate) fn instructions(scene: &Scene, call: Call) -> Result<u64> {
    let valgrind = system::program("valgrind", "valgrind")?;
    let counts = scene.file("callgrind.out");
    let mut out = OsString::from("--callgrind-out-file=");
    out.push(&counts);
    // Without `--vgdb=no` it leaves pipes in the system's temporary directory when it is killed.
    let wrapper = [valgrind.into(), "--tool=callgrind".into(), "--vgdb=no".into(), out];
    system::run(scene.under(&wrapper, call))?;
    let text = fs::read_to_string(&counts).context("callgrind wrote no counts")?;
    let mut totals = text.lines().filter_map(|line| line.strip_prefix("totals:"));
    totals.next_back().and_then(|count| count.trim().parse().ok()).context("callgrind's counts have no total")
}

/// The largest resident set of a bare upload in bytes, the worst of a few runs.
pub(crate) fn peak_memory(scene: &Scene) -> Result<u64> {
    let port = scene.server()?.port();
    memory_of(scene, || scene.upload(port))
}

/// The same of any call.
pub(crate) fn memory_of(scene: &Scene, call: impl Fn() -> Call) -> Result<u64> {
    const RUNS: usize = 5;
    let time = system::program("time", "time")?;
    let report = scene.file("time.out");
    let mut largest = 0;
    for _ in 0..RUNS {
        let wrapper = [time.as_os_str(), "-f".as_ref(), "%M".as_ref(), "-o".as_ref(), report.as_os_str()];
        system::run(scene.under(&wrapper.map(OsString::from), call()))?;
        let text = fs::read_to_string(&report).context("time wrote no report")?;
        let kibibytes: u64 = text.trim().parse().context("time's report is not a number")?;
        largest = largest.max(kibibytes * 1024);
    }
    Ok(largest)
}

/// The binary's size in bytes. The release profile strips it.
pub(crate) fn size(scene: &Scene) -> Result<u64> {
    Ok(fs::metadata(scene.binary())?.len())
}

/// The tree of the binary without what only build scripts and tests need.
pub(crate) fn crates() -> Result<Crates> {
    let tree = ["tree", "--edges", "normal", "--package", "edgecert", "--prefix", "none", "--format", "{p}"];
    let output = system::run(system::cargo(&tree))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let named = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    });
    Ok(Crates(named.filter(|(name, _)| name != "edgecert").collect()))
}

/// Name and version of every crate in the tree, edgecert itself left out. One in two versions counts twice.
pub(crate) struct Crates(BTreeSet<(String, String)>);

impl Crates {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|(other, _)| other == name)
    }
}
