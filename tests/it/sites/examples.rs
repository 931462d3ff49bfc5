//! Runs the examples of the reference and of each command's help.

use std::fs;
use std::path::Path;

use super::shop;
use crate::harness::edgecert;

const COMMANDS: [&str; 13] = [
    "certs",
    "sites",
    "certs list",
    "certs download",
    "sites list",
    "sites get",
    "sites create",
    "sites update",
    "sites enable",
    "sites disable",
    "sites delete",
    "sites bind",
    "completions",
];

/// Splits a line as a shell does, without redirections.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.split(" > ").next().unwrap().chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words
}

#[track_caller]
fn runs(line: &str) {
    let service = shop();
    let hook = edgecert().against(&service);
    hook.write_file("site.json", r#"{"force_https": true}"#);
    let output = hook.args(words(line).split_first().unwrap().1).run();
    assert_eq!(output.code, 0, "{line}\n{}{}", output.stdout, output.stderr);
}

#[test]
fn examples_in_the_help_work() {
    for command in COMMANDS {
        let help = edgecert().args(command.split(' ')).args(["--help"]).succeeds().stdout;
        let start = format!("edgecert {command}");
        let examples: Vec<&str> = help
            .split("Examples:\n")
            .nth(1)
            .unwrap_or_else(|| panic!("{command} shows no example"))
            .lines()
            .map(str::trim)
            .take_while(|line| line.starts_with(&start))
            .collect();
        assert!(!examples.is_empty(), "{help}");
        for example in examples {
            runs(example);
        }
    }
}

#[test]
fn examples_of_the_reference_work() {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/README.md");
    let reference = fs::read_to_string(reference).unwrap();
    let section =
        reference.split("\n## Certificates and sites\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let block = section.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    for command in COMMANDS {
        assert!(block.contains(&format!("edgecert {command}")), "{command}");
    }
    for line in block.lines() {
        runs(line);
    }
}
