//! The metrics file, read as text.

use std::collections::BTreeSet;
use std::fs;

use tempfile::TempDir;

use super::host::Host;

/// The names of the metrics that the program writes for a host.
pub(super) fn written_metrics(host: &Host) -> BTreeSet<String> {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("edgecert.prom");
    host.write_metrics(&file);
    let text = fs::read_to_string(file).unwrap();
    let series = text.lines().filter(|line| !line.starts_with('#'));
    series.map(|line| line.split(['{', ' ']).next().unwrap().to_owned()).collect()
}
