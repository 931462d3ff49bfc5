//! The tables of hooks/README.md, which agree with the program, and its promises, each of which has tests.

use std::collections::BTreeSet;
use std::fs;

use super::{REFERENCE, read, root};
use crate::harness::{Lineage, edgecert};
use crate::help::help;
use crate::tidy::sources;

/// A recipe fits a terminal of this height.
const MAX_RECIPE_LINES: usize = 60;

/// The promises of the section on security, with the tests that verify them.
const PROMISES: [(&str, &[&str]); 13] = [
    ("The API key is never an argument", &["key_as_argument_is_not_echoed"]),
    ("never reach output, logs, JSON or state files", &["output_and_state_hold_no_secret"]),
    ("repeats twelve characters of a key", &["echoed_secrets_are_redacted"]),
    ("Core dumps", &["core_dumps_are_disabled"]),
    ("Redirects are not followed", &["redirects_are_never_followed"]),
    ("plain HTTP is refused except on loopback", &["plain_http_and_credentials_are_refused"]),
    ("sent only to its own service", &["key_is_never_sent_to_another_service"]),
    ("`heartbeat_url` never appears", &["url_is_never_shown"]),
    ("A private key that others can read is a warning", &["readable_private_key_is_a_warning"]),
    ("an API key file that others can access is refused", &["readable_api_key_file_is_refused"]),
    (
        "`deploy` and `sync` write only to the state directory",
        &["only_state_files_are_written", "modes_of_files_do_not_depend_on_umask"],
    ),
    (
        "The only child process",
        &["program_receives_report_without_secrets", "writable_configuration_names_no_program"],
    ),
    ("the token of a cluster", &["secrets_are_deployed_without_state"]),
];

/// The text below a heading, up to the next one.
#[track_caller]
fn section(heading: &str) -> String {
    let text = read(REFERENCE);
    let (_, rest) = text.split_once(&format!("\n{heading}\n")).expect(heading);
    rest.split("\n#").next().unwrap().to_owned()
}

/// The cells of each row of the table whose first column has this name.
#[track_caller]
fn table(heading: &str, column: &str) -> Vec<Vec<String>> {
    let section = section(heading);
    let mut lines = section.lines().skip_while(|line| !line.starts_with(&format!("| {column} |")));
    assert!(lines.next().is_some(), "{heading} has no table of {column}");
    let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| -> Vec<String> {
        let row = row.replace("\\|", "/");
        row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    rows.map(cells).collect()
}

/// The first code span of a cell, without the value of a flag.
fn code(cell: &str) -> Option<&str> {
    cell.split('`').nth(1)?.split(' ').next()
}

/// The code spans in the first column of a table.
#[track_caller]
fn names(heading: &str, column: &str) -> Vec<String> {
    table(heading, column).iter().map(|row| code(&row[0]).expect(column).to_owned()).collect()
}

/// The variants of an enum of `src`, in lower case with hyphens.
#[track_caller]
fn variants(directory: &str, name: &str) -> Vec<String> {
    let sources = sources(&[directory]);
    let mut bodies =
        sources.iter().filter_map(|source| source.text.split(&format!("enum {name} {{\n")).nth(1));
    let body = bodies.next().unwrap_or_else(|| panic!("{directory} has no enum {name}"));
    let body = body.split("\n}").next().unwrap();
    let variants = body.lines().filter_map(|line| line.trim().strip_suffix(','));
    let variants = variants.filter(|variant| variant.chars().all(char::is_alphanumeric));
    let hyphenated = |variant: &str| {
        let hyphen = |c: char| c.is_uppercase().then_some('-');
        let text: String =
            variant.chars().flat_map(|c| hyphen(c).into_iter().chain(c.to_lowercase())).collect();
        text.trim_start_matches('-').to_owned()
    };
    variants.map(hyphenated).collect()
}

#[test]
fn settings_of_the_program_have_rows() {
    let mut keys = BTreeSet::new();
    for row in table("### Settings", "Flag") {
        let [flag, variable, key] = [0, 1, 2].map(|column| code(&row[column]).map(str::to_owned));
        let Some(key) = key else {
            assert_eq!(variable.as_deref(), Some("EDGECERT_API_KEY"), "{row:?}");
            continue;
        };
        let wanted = [format!("--{}", key.replace('_', "-")), format!("EDGECERT_{}", key.to_uppercase())];
        let named = [flag, variable].into_iter().zip(wanted);
        named.for_each(|(name, wanted)| assert!(name.is_none_or(|name| name == wanted), "{row:?}"));
        keys.insert(key);
    }
    let json = edgecert().args(["doctor", "--settings", "--json"]).run().json();
    let settings = json["settings"].as_array().unwrap().iter();
    let settings: BTreeSet<String> = settings.map(|row| row["key"].as_str().unwrap().to_owned()).collect();
    let others = ["api_key", "config"].map(str::to_owned).into();
    assert_eq!(keys, &settings - &others, "the reference (left) and `doctor --settings` (right)");
}

#[test]
fn exit_codes_of_the_help_have_rows() {
    let help = help(&[]);
    let list = help.split("Exit codes:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let first_word = |line: &str| line.split_whitespace().next().unwrap().to_owned();
    let codes = list.lines().map(first_word).filter(|word| word.parse::<u8>().is_ok());
    let rows: Vec<String> = table("## Exit codes", "Code").iter().map(|row| row[0].clone()).collect();
    assert_eq!(rows, codes.collect::<Vec<_>>(), "the reference (left) and --help (right)");
}

#[test]
fn every_outcome_has_a_row() {
    let mut variants = variants("src", "Outcome");
    // Of a later release.
    variants.retain(|name| name != "unknown");
    let mut rows = names("### Outcomes", "Outcome");
    // The source has the most severe first.
    rows.sort();
    variants.sort();
    assert_eq!(rows, variants, "the reference (left) and the source (right)");
}

#[test]
fn every_check_has_a_row() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let hook = edgecert().with_filter_for(&lineage).args(["check", "--json", "--lineage"]);
    let json = hook.args([lineage.path()]).run().json();
    let name = |finding: &serde_json::Value| finding["check"].as_str().unwrap().to_owned();
    let mut checks: Vec<String> = json["checks"].as_array().unwrap().iter().map(name).collect();
    checks.dedup();
    assert_eq!(names("### Local checks", "Check"), checks, "the reference (left) and `check` (right)");
}

#[test]
fn every_subject_of_doctor_has_a_row() {
    let rows: BTreeSet<String> = names("## Doctor", "Subject").into_iter().collect();
    let subjects = variants("src/cmd/doctor", "Subject").into_iter().collect();
    assert_eq!(rows, subjects, "the reference (left) and the source (right)");
}

#[test]
fn promises_have_tests() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (security, sources) = (words(&section("## Security")), sources(&["src", "tests/it"]));
    for (promise, tests) in PROMISES {
        assert!(security.contains(promise), "the reference does not promise: {promise}");
        for test in tests {
            let function = format!("fn {test}(");
            assert!(
                sources.iter().any(|source| source.text.contains(&function)),
                "{promise}: no test {test}"
            );
        }
    }
}

#[test]
fn recipes_fit_a_screen() {
    let mut recipes = 0;
    for row in table("## ACME clients", "Client") {
        let links = row[1].split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
        for file in links.map(|link| root().join("hooks").join(link)).filter(|file| file.is_file()) {
            let height = fs::read_to_string(&file).unwrap().lines().count();
            assert!(height <= MAX_RECIPE_LINES, "{} has {height} lines", file.display());
            recipes += 1;
        }
    }
    assert!(recipes > 10, "{recipes} recipes");
}
