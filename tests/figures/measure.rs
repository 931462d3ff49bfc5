//! Figures from a single run: instructions, memory, binary size, crates.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;

use anyhow::{Context as _, Result};

use crate::fixture::{Fixture, HookCall};
use crate::system;

/// Crates that must not be dependencies: aws-lc slows down the start of every process, OpenSSL is a system library.
pub(crate) const FORBIDDEN_CRATES: [&str; 3] = ["aws-lc-rs", "aws-lc-sys", "openssl-sys"];

/// User-space instructions of the whole process, counted by callgrind.
pub(crate) fn instructions(fixture: &Fixture, call: HookCall) -> Result<u64> {
    let valgrind = system::find_program("valgrind", "valgrind")?;
    let report = fixture.path("callgrind.out");
    let mut out = OsString::from("--callgrind-out-file=");
    out.push(&report);
    // With vgdb, a killed valgrind leaves pipes in the temporary directory.
    let wrapper = [valgrind.into(), "--tool=callgrind".into(), "--vgdb=no".into(), out];
    system::run(fixture.wrapped_command(&wrapper, call))?;
    let text = fs::read_to_string(&report).context("callgrind wrote no report")?;
    let mut totals = text.lines().filter_map(|line| line.strip_prefix("totals:"));
    totals.next_back().and_then(|count| count.trim().parse().ok()).context("callgrind's report has no total")
}

/// Peak resident set of a bare upload in bytes, see [`peak_memory_of`].
pub(crate) fn peak_memory(fixture: &Fixture) -> Result<u64> {
    let port = fixture.server()?.port();
    peak_memory_of(fixture, || fixture.upload_call(port))
}

/// Peak resident set of a call in bytes: the maximum of several runs.
pub(crate) fn peak_memory_of(fixture: &Fixture, call: impl Fn() -> HookCall) -> Result<u64> {
    const RUNS: usize = 5;
    let time = system::find_program("time", "time")?;
    let report = fixture.path("time.out");
    let mut peak = 0;
    for _ in 0..RUNS {
        let wrapper = [time.as_os_str(), "-f".as_ref(), "%M".as_ref(), "-o".as_ref(), report.as_os_str()];
        system::run(fixture.wrapped_command(&wrapper.map(OsString::from), call()))?;
        let text = fs::read_to_string(&report).context("time wrote no report")?;
        let kibibytes: u64 = text.trim().parse().context("time's report is not a number")?;
        peak = peak.max(kibibytes * 1024);
    }
    Ok(peak)
}

/// Size of the (stripped) release binary in bytes.
pub(crate) fn binary_size(fixture: &Fixture) -> Result<u64> {
    Ok(fs::metadata(fixture.binary())?.len())
}

/// Dependencies of the binary, without those of build scripts and tests.
pub(crate) fn dependencies() -> Result<Dependencies> {
    let tree = ["tree", "--edges", "normal", "--package", "edgecert", "--prefix", "none", "--format", "{p}"];
    let output = system::run(system::cargo(&tree))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let crates = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.to_owned()))
    });
    Ok(Dependencies(crates.filter(|(name, _)| name != "edgecert").collect()))
}

/// Name and version of every dependency; two versions of a crate count twice.
pub(crate) struct Dependencies(BTreeSet<(String, String)>);

impl Dependencies {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.iter().any(|(other, _)| other == name)
    }
}
