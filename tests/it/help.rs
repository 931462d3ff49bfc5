//! Help: size, form, `edgecert help`, the examples, which are run, and agreement with the reference in
//! `hooks/README.md`.

use crate::harness::{Lineage, edgecert};
use crate::sites::shop;
use crate::tidy::read;

/// Commands whose examples run here. Those of the others need an edge, a cluster, or a host of their own.
const WITH_EXAMPLES: [&str; 6] = ["deploy", "check", "plan", "certs", "sites", "completions"];

pub(crate) fn help(command: &[&str]) -> String {
    edgecert().args(command).args(["--help"]).succeeds().stdout
}

/// Name and summary of each command that a group's help lists.
fn command_list(group: &[&str]) -> Vec<(String, String)> {
    let help = help(group);
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows = list.lines().map(|line| line.trim().split_once(' ').unwrap());
    rows.map(|(name, summary)| (name.to_owned(), summary.trim().to_owned())).collect()
}

/// All commands and subcommands, each as a list of words.
pub(crate) fn commands() -> Vec<Vec<String>> {
    let top = command_list(&[]).into_iter().map(|(name, _)| vec![name]);
    let nested = ["certs", "sites"].into_iter().flat_map(|group| {
        let rows = command_list(&[group]).into_iter().filter(|(name, _)| name != "help");
        rows.map(move |(name, _)| vec![group.to_owned(), name])
    });
    top.chain(nested).collect()
}

/// The examples in the help of a command.
fn examples(command: &[&str]) -> Vec<String> {
    let help = help(command);
    let block = help.split("Examples:\n").nth(1).unwrap_or_else(|| panic!("{command:?} has no examples"));
    let lines = block.lines().map(str::trim);
    lines.take_while(|line| line.contains("edgecert ") && !line.starts_with('/')).map(str::to_owned).collect()
}

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

/// Runs an example in the directory of a lineage, against a service with sites.
#[track_caller]
pub(crate) fn run_example(line: &str) {
    const LIVE: &str = "/etc/letsencrypt/live/example.com";
    let (service, lineage) = (shop(), Lineage::issued_for(&["example.com"]));
    service.add_site("example.com");
    lineage.write("site.json", r#"{"force_https": true}"#);
    let mut hook = edgecert().against(&service);
    hook.command().current_dir(lineage.path());
    let words = words(&line.replace(LIVE, lineage.path().to_str().unwrap()));
    let (variables, call) = words.split_at(words.iter().position(|word| word == "edgecert").unwrap());
    for (name, value) in variables.iter().map(|word| word.split_once('=').unwrap()) {
        hook = hook.env(name, value);
    }
    let output = hook.args(&call[1..]).run();
    // The date of the `--at` example may lie outside the certificate's validity.
    let is_dated = line.contains("--at ") && output.code == 65;
    assert!(output.code == 0 || is_dated, "{line}\n{}{}", output.stdout, output.stderr);
}

#[test]
fn short_help_fits_a_terminal() {
    const COLUMNS: usize = 80;
    let help = edgecert().args(["-h"]).succeeds().stdout;
    let rows: usize = help.lines().map(|line| line.chars().count().div_ceil(COLUMNS).max(1)).sum();
    assert!(rows <= 40, "{rows} rows of {COLUMNS} columns:\n{help}");
    assert!(help.find("Examples:").unwrap() < help.find("Commands:").unwrap());
    assert!(!help.contains("--allow-shrink") && help.contains("--config"), "{help}");
}

#[test]
fn help_is_wrapped_between_words() {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for arguments in [&["-h"][..], &["--help"], &["sync", "--help"], &["sites", "update", "-h"]] {
        let piped = edgecert().args(arguments).env("COLUMNS", "40").succeeds().stdout;
        assert!(piped.lines().any(|line| line.len() > 80), "{piped}");
        for columns in [1, 20, 80, 120] {
            let shown = edgecert().args(arguments).shows_on_terminal(columns);
            assert_eq!((shown.code, words(&shown.text)), (0, words(&piped)), "{columns} columns");
        }
        let shown = edgecert().args(arguments).shows_on_terminal(80).text;
        assert_eq!(shown.lines().find(|line| line.chars().count() > 80), None, "{arguments:?}");
    }
}

#[test]
fn examples_fit_80_columns() {
    for command in commands() {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let help = if command[0] == "help" { help(&[]) } else { help(&words) };
        // Wrapped examples cannot be pasted.
        let is_example = |line: &&str| line.starts_with("  edgecert ") || line.starts_with("  --");
        assert_eq!(help.lines().filter(is_example).find(|line| line.len() > 80), None, "{command:?}");
    }
}

#[test]
fn help_is_a_command_too() {
    assert_eq!(edgecert().args(["help"]).succeeds().stdout, help(&[]));
    for command in commands().iter().filter(|command| command[0] != "help") {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        assert_eq!(edgecert().args(["help"]).args(&words).succeeds().stdout, help(&words), "{words:?}");
    }
    edgecert().args(["help", "no-such-command"]).exits_with(2);
}

#[test]
fn listed_summary_is_an_imperative_line_of_help() {
    for group in [&[][..], &["certs"], &["sites"]] {
        // clap's own `help` takes no flags.
        for (command, summary) in command_list(group).into_iter().filter(|(command, _)| command != "help") {
            let help = help(&[group, &[&command]].concat());
            assert_eq!(help.lines().next().unwrap(), summary, "{group:?} {command}");
        }
        for (command, summary) in command_list(group) {
            let first = summary.split(' ').next().unwrap();
            assert!(first.starts_with(char::is_uppercase) && !first.ends_with('s'), "{command}: {summary}");
            assert!(!summary.ends_with('.') && summary.len() < 70, "{command}: {summary}");
        }
    }
}

#[test]
fn examples_work() {
    for command in commands().iter().filter(|command| WITH_EXAMPLES.contains(&command[0].as_str())) {
        let examples = examples(&command.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(!examples.is_empty(), "{command:?}");
        for example in examples {
            run_example(&example);
        }
    }
}

#[test]
fn reference_and_help_agree_on_exit_codes() {
    let (reference, help) = (read("hooks/README.md"), help(&[]));
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let section = reference.split("\n## Exit codes").nth(1).unwrap();
    let is_row = |line: &&str| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit();
    let rows: Vec<&str> = section.lines().filter(is_row).collect();
    assert!(rows.len() > 9, "{rows:?}");
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let (code, meaning) = (cells[0].trim_start_matches("| "), cells[1]);
        assert!(help.contains(&format!(" {code} {meaning}")), "--help does not list {code}: {meaning}");
    }
}
