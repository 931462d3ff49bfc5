//! The section on monitoring in README.md: its length, and its commands, which are run.

use std::fs;

use tempfile::TempDir;

use super::{README, call, read};
use crate::harness::{Lineage, edgecert, sandbox};

/// Where Debian's node exporter looks for metrics.
const METRICS: &str = "/var/lib/prometheus/node-exporter/edgecert.prom";

/// The section without its heading.
fn section() -> String {
    let text = read(README);
    let section = text.split("## Monitor it\n").nth(1).unwrap();
    section.split("\n## ").next().unwrap().to_owned()
}

#[test]
fn section_has_at_most_150_words() {
    let words = section().split_whitespace().count();
    assert!((50..=150).contains(&words), "{words} words");
}

#[test]
fn commands_of_the_section_work() {
    let (service, lineage) = (sandbox(&["a.example"]), Lineage::issued_for(&["a.example"]));
    let state = TempDir::new().unwrap();
    let hook = || edgecert().against(&service).env("EDGECERT_STATE_DIR", state.path());
    hook().called_by_certbot(&lineage).succeeds();
    let metrics = state.path().join("edgecert.prom");
    let section = section();
    let commands = section.split("```").nth(1).unwrap().strip_prefix("sh\n").unwrap();
    let output: Vec<String> = commands
        .lines()
        .map(|line| call(&line.replace(METRICS, metrics.to_str().unwrap()), hook()).succeeds().stdout)
        .collect();
    assert!(output[0].starts_with("EDGECERT OK - 1 lineage"), "{output:?}");
    assert_eq!(output[1..], [""]);
    let written = fs::read_to_string(metrics).unwrap();
    assert!(written.contains("edgecert_pending{lineage="), "{written}");
}
