//! The alert rules: promtool accepts them and runs their tests. Rules, dashboard and reference name the metrics that
//! the program writes, and no others.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use time::Duration;

use super::dashboard;
use super::exposition::written_metrics;
use super::host::Host;
use crate::harness::require;
use crate::readme::{REFERENCE, read, root};

pub(super) const RULES: &str = "hooks/prometheus/edgecert.rules.yml";
const RULE_TESTS: &str = "hooks/prometheus/edgecert.rules.test.yml";
const DASHBOARD: &str = "hooks/prometheus/dashboard.json";

/// Runs promtool in a directory; returns what it prints.
#[track_caller]
pub(crate) fn promtool(directory: &Path, arguments: &[&str]) -> String {
    require("promtool", "prometheus");
    let output =
        Command::new("promtool").args(arguments).current_dir(directory).env_clear().output().unwrap();
    let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{printed}");
    printed
}

#[test]
fn promtool_accepts_the_rules() {
    let printed = promtool(root(), &["check", "rules", "--lint-fatal", RULES]);
    let rules = read(RULES).lines().filter(|line| line.trim_start().starts_with("expr:")).count();
    assert!(printed.contains(&format!("SUCCESS: {rules} rules found")), "{printed}");
}

#[test]
fn rules_pass_their_tests() {
    let tests = read(RULE_TESTS);
    promtool(root(), &["test", "rules", RULE_TESTS]);
    // The tests cover each alert.
    for line in read(RULES).lines() {
        if let Some(name) = line.trim().strip_prefix("- alert: ") {
            assert!(tests.contains(&format!("alertname: {name}\n")), "no test expects {name}");
        }
    }
}

/// The values that queries compare the label `file` of the node exporter with.
fn file_patterns(queries: &str) -> BTreeSet<&str> {
    let starts = queries.split("node_textfile_mtime_seconds{file=~\"").skip(1);
    starts.map(|rest| rest.split('"').next().unwrap()).collect()
}

#[test]
fn metrics_file_has_one_pattern() {
    let reference = read(REFERENCE);
    let named = reference.split("must match `").nth(1).unwrap().split('`').next().unwrap();
    let pattern = format!("(.*/)?{}", named.replace('.', r"\\.").replace('*', "[^/]*"));
    for queries in [read(RULES), dashboard::queries().concat()] {
        assert_eq!(file_patterns(&queries), BTreeSet::from([pattern.as_str()]));
    }
}

/// The metrics of edgecert that a file names, without comments.
fn named_metrics(file: &str) -> BTreeSet<String> {
    let text = read(file);
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    // A colon belongs to the name of a recording rule.
    let words =
        lines.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':'));
    words.filter(|word| word.starts_with("edgecert_")).map(str::to_owned).collect()
}

#[test]
fn metrics_have_one_name_everywhere() {
    // The lifetime of a pending certificate is written only while it is pending.
    let hosts = [Host::healthy(), Host::pending(Duration::HOUR)];
    let written = hosts.iter().flat_map(written_metrics).collect();
    let [rules, tests, dashboard] = [RULES, RULE_TESTS, DASHBOARD].map(named_metrics);
    let used = &rules | &dashboard;
    assert_eq!(used, written, "metrics in the rules or the dashboard (left) and those written (right)");
    assert!(tests.is_subset(&written), "{:?} in {RULE_TESTS}", &tests - &written);
    let reference = read(REFERENCE);
    let rows = reference.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    // A name with a dot is that of a package.
    let rows = rows.filter(|name| name.starts_with("edgecert_") && !name.contains('.'));
    let documented: BTreeSet<String> = rows.map(str::to_owned).collect();
    assert_eq!(documented, written, "metrics in {REFERENCE} (left) and those written (right)");
}
