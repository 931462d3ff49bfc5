//! The configuration file of the packages: it names every setting, and what is commented out is valid.

use std::collections::BTreeSet;
use std::fs;

use tempfile::TempDir;

use crate::harness::edgecert;
use crate::tidy::read;

const FILE: &str = ".ci/packaging/config.toml";

#[test]
fn packaged_configuration_changes_nothing() {
    let hook = edgecert();
    hook.write_file(".config/edgecert/config.toml", &read(FILE));
    hook.args(["sites", "list"]).exits_with(78).says("no base URL is set");
}

/// Every setting of the reference's table is in the file, and the examples are accepted.
#[test]
fn packaged_configuration_names_every_setting() {
    let file = read(FILE);
    let lines = file.lines().filter_map(|line| line.strip_prefix('#'));
    let settings: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with(' ')).collect();
    let keys: BTreeSet<&str> = settings.iter().filter_map(|line| Some(line.split_once(" = ")?.0)).collect();

    let reference = read("hooks/README.md");
    let section = reference.split("### Settings\n").nth(1).unwrap().split("### ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    let cells = rows.map(|row| row.split(" | ").nth(2).unwrap_or_default());
    let listed: BTreeSet<&str> = cells.filter_map(|cell| cell.split('`').nth(1)).collect();
    assert!(listed.len() > 10, "{listed:?}");
    assert_eq!(&listed - &keys, BTreeSet::new(), "settings that {FILE} lacks");

    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("api-key"), "key").unwrap();
    let hook = edgecert();
    hook.write_file(".config/edgecert/config.toml", &settings.join("\n"));
    // It fails later, because the files of the examples do not exist.
    let output = hook.args(["status"]).run();
    assert_ne!(output.code, 78, "{}", output.stderr);
}
