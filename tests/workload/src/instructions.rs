//! Counts instructions. The count does not depend on the load of the machine; it is stable to about 0.5 %.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::{Call, find_program, run};

/// User-space instructions of a whole process, counted by callgrind. `scratch` is a directory for its report.
pub fn instructions(scratch: &Path, call: &Call) -> Result<u64> {
    let valgrind = find_program("valgrind", "valgrind")?;
    let report = scratch.join("callgrind.out");
    let mut out = OsString::from("--callgrind-out-file=");
    out.push(&report);
    // With vgdb, a killed valgrind leaves pipes in the temporary directory.
    run(call.under(&[valgrind.into(), "--tool=callgrind".into(), "--vgdb=no".into(), out]))?;
    let text = fs::read_to_string(&report).context("callgrind wrote no report")?;
    let mut totals = text.lines().filter_map(|line| line.strip_prefix("totals:"));
    totals.next_back().and_then(|count| count.trim().parse().ok()).context("callgrind's report has no total")
}
