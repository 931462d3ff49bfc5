//! What a reader may rely on about the tree: which module knows which, what is in the binary, and that what is written
//! about dependencies, settings and exit codes is still true.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::edgecert;

/// Which modules of `src` may use which. A line that is missing here is a change of design: add it with its reason.
const IMPORTS: [(&str, &[&str]); 33] = [
    // The ground floor: what all others use.
    ("clock", &[]),
    ("env", &[]),
    ("file", &["text"]),
    ("names", &["text"]),
    ("outcome", &["text"]),
    ("runtime", &[]),
    ("secret", &["text"]),
    ("text", &[]),
    // What is known of a site's fields: for the command line, which completes them, and for what checks them.
    ("fields", &["text"]),
    // Certificates and keys; no network, no settings.
    ("pem", &["secret", "text"]),
    ("cert", &["pem", "text"]),
    ("key", &["cert", "pem", "secret"]),
    ("bundle", &["cert", "file", "key", "pem", "text"]),
    ("check", &["bundle", "cert", "key", "names", "text"]),
    ("source", &["bundle", "env", "file", "text"]),
    // Settings and state.
    ("settings", &["env", "file", "names", "secret", "text"]),
    ("state", &["clock", "file", "outcome", "settings", "text"]),
    ("inventory", &["bundle", "env", "file", "names", "settings", "source", "state", "text"]),
    // The service.
    ("trust", &["file", "settings", "text"]),
    ("api", &["check", "clock", "names", "secret", "settings", "text", "trust"]),
    ("plan", &["api", "names", "text"]),
    // The edge.
    ("verify", &["api", "bundle", "cert", "clock", "names", "text"]),
    // What people see.
    ("error", &["api", "check", "file", "settings", "source", "state", "trust"]),
    ("report", &["bundle", "cert", "check", "error", "outcome", "plan", "source", "text"]),
    // What a run starts from, read once.
    ("context", &["env", "report", "settings"]),
    ("notify", &["context", "env", "error", "file", "report", "settings", "text"]),
    // The engines.
    (
        "deploy",
        &[
            "api", "bundle", "cert", "check", "clock", "error", "file", "names", "outcome", "plan", "report",
            "runtime", "secret", "settings", "source", "state", "text", "verify",
        ],
    ),
    (
        "sync",
        &[
            "api",
            "bundle",
            "clock",
            "context",
            "deploy",
            "error",
            "file",
            "inventory",
            "names",
            "outcome",
            "report",
            "settings",
            "source",
            "state",
            "text",
        ],
    ),
    // The commands.
    ("cli", &["env", "error", "fields", "inventory", "names", "report", "settings", "source", "text"]),
    (
        "cmd",
        &[
            "api",
            "bundle",
            "cert",
            "check",
            "cli",
            "clock",
            "context",
            "deploy",
            "env",
            "error",
            "fields",
            "file",
            "inventory",
            "names",
            "outcome",
            "plan",
            "report",
            "runtime",
            "secret",
            "settings",
            "source",
            "state",
            "sync",
            "text",
            "trust",
            "verify",
        ],
    ),
    ("ui", &["env", "error", "file", "report", "sync"]),
    ("lib", &[]),
    ("main", &[]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files = Vec::new();
    for path in entries {
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The top-level module that a file of `src` belongs to.
fn module(file: &Path) -> String {
    let first = file.strip_prefix(root().join("src")).unwrap().components().next().unwrap();
    first.as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned()
}

#[test]
fn modules_know_only_whom_the_table_allows() {
    let files = sources(&root().join("src"));
    let modules: BTreeSet<String> = files.iter().map(|file| module(file)).collect();
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let own = module(file);
        let names = code.split("crate::").skip(1).flat_map(|rest| {
            let list = rest.strip_prefix('{').and_then(|list| list.split('}').next()).unwrap_or(rest);
            let words = if rest.starts_with('{') { list.split(',').collect() } else { vec![list] };
            words
                .into_iter()
                .map(|word| word.trim().split(|c: char| !c.is_ascii_lowercase()).next().unwrap().to_owned())
        });
        used.entry(own.clone())
            .or_default()
            .extend(names.filter(|name| modules.contains(name) && *name != own));
    }
    for (name, found) in used {
        let allowed = IMPORTS.iter().find(|(module, _)| *module == name);
        let allowed: BTreeSet<String> = allowed
            .unwrap_or_else(|| panic!("{name} is not in the table"))
            .1
            .iter()
            .map(|&name| name.to_owned())
            .collect();
        assert_eq!(found, allowed, "what {name} imports (left) and what the table allows (right)");
    }
}

#[test]
fn every_file_says_first_what_it_is_for() {
    for directory in ["src", "tests/it", "tests/figures", "tests/sandbox/src", "tests/sandbox/tests"] {
        for file in sources(&root().join(directory)) {
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.starts_with("//! "), "{} does not begin with what it is for", file.display());
        }
    }
}

#[test]
fn every_dependency_says_what_it_is_for() {
    let manifest = read("Cargo.toml");
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let mut explained = false;
    let mut known_reason = false;
    for line in section.lines() {
        match line {
            "" => known_reason = false,
            comment if comment.starts_with('#') => explained = true,
            dependency => {
                assert!(explained || known_reason, "no reason stands above {dependency}");
                known_reason = explained || known_reason;
                explained = false;
            }
        }
    }
}

#[test]
fn rustls_pemfile_stays_in_one_file() {
    let users: Vec<PathBuf> = sources(&root().join("src"))
        .into_iter()
        .filter(|file| fs::read_to_string(file).unwrap().contains("rustls_pemfile::"))
        .collect();
    assert_eq!(users, [root().join("src/pem.rs")]);
}

#[test]
fn the_hook_is_built_without_aws_lc_openssl_and_server_code() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal,build", "--package", "edgecert", "--prefix", "none"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    let crates: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    for wanted in ["reqwest", "serde_json", "x509-parser", "rustls-pemfile", "p256", "rsa", "anyhow"] {
        assert!(crates.contains(wanted), "{wanted} is missing");
    }
    for unwanted in
        ["aws-lc-rs", "aws-lc-sys", "openssl", "openssl-sys", "cmake", "axum", "rusqlite", "edgecert-sandbox"]
    {
        assert!(!crates.contains(unwanted), "{unwanted} is in the tree of the hook");
    }
}

#[test]
fn p256_and_rsa_are_direct_dependencies() {
    let manifest = read("Cargo.toml");
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
    for (name, user) in [("p256", "src/key/ec.rs"), ("rsa", "src/key/rsa.rs")] {
        assert!(section.contains(&format!("\n{name} = ")), "{name} is not in [dependencies]");
        assert!(read(user).contains(&format!("{name}::")), "{user} does not use {name}");
    }
}

#[test]
fn the_sandbox_shares_no_code_with_the_hook() {
    for file in sources(&root().join("tests/sandbox/src")) {
        let text = fs::read_to_string(&file).unwrap();
        for library in ["x509_parser::", "rustls_pemfile::", "p256::", "rsa::", "reqwest::", "edgecert::"] {
            let uses =
                text.lines().any(|line| line.contains(library) && !line.trim_start().starts_with("//"));
            assert!(!uses, "{} uses {library}, which is the hook's", file.display());
        }
    }
    for file in sources(&root().join("src")) {
        assert!(!fs::read_to_string(&file).unwrap().contains("edgecert_sandbox"), "{}", file.display());
    }
}

/// Variables that are no settings: one is the tests', two are told to the program of `on_failure`.
const NO_SETTINGS: [&str; 4] = ["EDGECERT_LIMBO", "EDGECERT_BIN", "EDGECERT_COMMAND", "EDGECERT_EXIT_CODE"];

/// Environment variables that are settings.
fn variables_in(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_ascii_uppercase() && c != '_')
        .filter(|word| word.starts_with("EDGECERT_") && !NO_SETTINGS.contains(word))
        .collect()
}

#[test]
fn reference_and_help_agree() {
    let (reference, help) = (read("hooks/README.md"), edgecert().args(["--help"]).succeeds().stdout);
    let flat = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let variables = variables_in(&reference);
    assert!(variables.len() > 9, "{variables:?}");
    let missing: Vec<&str> = variables_in(&help).difference(&variables).copied().collect();
    assert!(missing.is_empty(), "{missing:?} is in --help and not in the reference");
    for variable in variables {
        assert!(help.contains(variable), "{variable} is in the reference and not in --help");
        if let Some(flag) = variable.strip_prefix("EDGECERT_").filter(|name| *name != "API_KEY") {
            assert!(help.contains(&format!("--{}", flag.to_lowercase().replace('_', "-"))), "{flag}");
        }
    }
    let rows = reference
        .split("\n## Exit codes")
        .nth(1)
        .unwrap()
        .lines()
        .filter(|line| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit());
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let code = cells[0].trim_start_matches("| ");
        assert!(
            flat.contains(&format!(" {code} {}", cells[1])),
            "exit code {code}: {} in the reference, --help says otherwise",
            cells[1]
        );
    }
}

#[test]
fn an_ignored_advisory_is_about_a_crate_that_is_there() {
    let (deny, lock) = (read(".cargo/deny.toml"), read("Cargo.lock"));
    for (advisory, name) in [("RUSTSEC-2025-0134", "rustls-pemfile"), ("RUSTSEC-2023-0071", "rsa")] {
        assert_eq!(deny.contains(advisory), lock.contains(&format!("name = \"{name}\"\n")), "{advisory}");
    }
    assert_eq!(deny.matches("RUSTSEC-").count(), 2, "an exception that this test does not know");
}

#[test]
fn the_changelog_names_the_version() {
    let version = env!("CARGO_PKG_VERSION");
    let changelog = read("CHANGELOG.md");
    assert!(changelog.contains("## Unreleased") || changelog.contains(&format!("## {version}")));
}
