//! The manual pages, which packages contain: correct roff, complete and readable.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::harness::{env_var, require, step};
use crate::help::{commands, help};
use crate::tidy::{read, root};

/// Sections of the reference that are for those who read it as Markdown: the table of commands, monitoring systems, and
/// the setup of each ACME client, which refer to files in `hooks/`.
const LEFT_OUT: [&str; 8] = [
    "Packages",
    "Ansible",
    "Commands",
    "Limits of responses",
    "Prometheus and Grafana",
    "Nagios, Icinga and Zabbix",
    "JSON report",
    "ACME clients",
];

struct Manual {
    directory: TempDir,
}

impl Manual {
    fn new() -> Self {
        require("mandoc", "mandoc");
        let directory = TempDir::new().unwrap();
        let cargo = env_var("CARGO").unwrap_or_else(|| "cargo".into());
        // With `it`, crates have the features for which they have been compiled.
        let arguments = "build --quiet --locked --offline --workspace --bin edgecert-man --test it";
        let mut build = Command::new(cargo);
        build.current_dir(root()).args(arguments.split(' '));
        // cargo sets them for this test, and would compile ring again, whose build script reads them.
        let package = ["NAME", "VERSION_MAJOR", "VERSION_MINOR", "VERSION_PATCH", "VERSION_PRE"];
        for name in package {
            build.env_remove(format!("CARGO_PKG_{name}"));
        }
        run(build.env_remove("CARGO_MANIFEST_DIR"));
        let program = Path::new(env!("CARGO_BIN_EXE_edgecert")).with_file_name("edgecert-man");
        run(Command::new(program).arg(directory.path()));
        Self { directory }
    }

    fn pages(&self) -> Vec<PathBuf> {
        let mut pages: Vec<PathBuf> =
            fs::read_dir(self.directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        pages.sort();
        pages
    }

    /// A page as a terminal of 80 columns shows it.
    fn shown(&self, page: &str) -> String {
        let output = mandoc(&["-Tascii"], &self.directory.path().join(page));
        // An overstruck letter is a letter, a backspace, and the letter again.
        let mut text = String::new();
        for c in output.chars() {
            if c == '\x08' { _ = text.pop() } else { text.push(c) }
        }
        text
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn mandoc(arguments: &[&str], page: &Path) -> String {
    let output = Command::new("mandoc").args(arguments).arg(page).output().unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

#[test]
fn manual_is_complete_and_correct() {
    let manual = Manual::new();

    step("pages_pass_mandoc");
    let pages = manual.pages();
    assert!(pages.len() > 20, "{pages:?}");
    for path in pages {
        // clap_mangen breaks the line before possible values once more than needed.
        let found = mandoc(&["-Tlint", "-Wwarning"], &path);
        let found = found.lines().find(|line| !line.contains("skipping paragraph macro: br "));
        assert_eq!(found, None);
        let name = path.file_name().unwrap().to_str().unwrap();
        let page = manual.shown(name);
        assert!(page.is_ascii(), "{name}");
        for markup in ["](", "**", "| ", "\\f", "\\(", "&nbsp;", "Some("] {
            let line = page.lines().find(|line| line.contains(markup));
            assert_eq!(line, None, "{name}: {markup}");
        }
    }

    step("every_command_has_its_flags_in_its_page");
    for command in commands().iter().filter(|command| command[0] != "help") {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let page = manual.shown(&format!("edgecert-{}.1", words.join("-")));
        let help = help(&words);
        let flags = help.lines().filter_map(|line| line.trim_start().split("  ").next());
        let flags = flags.filter(|line| line.starts_with('-')).flat_map(|line| line.split(", "));
        let names: Vec<&str> = flags.map(|flag| flag.split([' ', '[', '=', '.']).next().unwrap()).collect();
        assert!(names.contains(&"--json"), "{words:?}: {names:?}");
        for name in names {
            let is_shown = page.lines().any(|line| {
                let line = line.trim_start();
                line.starts_with(name) || line.starts_with('-') && line.contains(&format!(", {name}"))
            });
            assert!(is_shown, "{words:?}: {name} is missing:\n{page}");
        }
    }

    step("manual_has_every_section_of_the_reference");
    let names = manual.pages();
    let names = names.iter().map(|page| page.file_name().unwrap().to_str().unwrap());
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(&names.map(|name| manual.shown(name)).collect::<String>());
    for section in read("hooks/README.md").split("\n#").skip(1) {
        let (heading, body) = section.split_once('\n').unwrap();
        let heading = heading.trim_start_matches('#').trim();
        // Four plain words, as the pages have them.
        let body: Vec<&str> = body.split_whitespace().collect();
        let is_plain = |word: &&str| word.chars().all(|c| c.is_ascii_alphabetic());
        let mut phrases = body.windows(4).filter(|words| words.iter().all(&is_plain));
        let is_shown = phrases.any(|words| text.contains(&words.join(" ")));
        assert!(is_shown || LEFT_OUT.contains(&heading), "{heading}");
    }
}
