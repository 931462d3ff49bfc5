//! Tests that are skipped at run time, and output that the test harness does not capture.

use std::fs::OpenOptions;
use std::io::{self, Write as _};

use super::env_var;

/// Prints a line to standard error. The test harness captures `eprintln!`, but not this.
pub(crate) fn print_uncaptured(line: &str) {
    io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// Adds a test to the skipped ones in the summary of `tests/run`; under plain `cargo test`, prints it. The test must
/// return afterwards.
pub(crate) fn skip(test: &str, reason: &str) {
    let reason = reason.trim().replace('\n', " ");
    if let Some(file) = env_var("EDGECERT_TEST_SKIPS") {
        let mut file = OpenOptions::new().append(true).open(file).unwrap();
        file.write_all(format!("{test}\t{reason}\n").as_bytes()).unwrap();
    } else {
        print_uncaptured(&format!("skipped: {test}: {reason}"));
    }
}
