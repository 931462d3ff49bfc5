//! Checks of dependencies: each has a stated purpose, unwanted crates stay out of the hook, ignored advisories apply, and
//! `tests/full` and the reference name existing tests.

use std::collections::BTreeSet;
use std::process::Command;

use crate::tidy::{read, root, sources};

#[test]
fn every_dependency_states_its_purpose() {
    let manifest = read("Cargo.toml");
    let section = manifest.split("\n[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
    // A comment covers the dependencies below it, up to the next blank line.
    let mut is_covered = false;
    for line in section.lines() {
        match line {
            "" => is_covered = false,
            comment if comment.starts_with('#') => is_covered = true,
            dependency => assert!(is_covered, "no comment above {dependency}"),
        }
    }
}

#[test]
fn every_dependency_states_its_keeper() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let dependencies: Vec<&str> =
        manifest["dependencies"].as_table().unwrap().keys().map(String::as_str).collect();
    let map = read("src/ARCHITECTURE.md");
    let section = map.split("\n## Dependencies\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")).skip(1);
    let rows: Vec<Vec<&str>> = rows.map(|row| row.split(" | ").collect()).collect();
    let mut names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert!(names.is_sorted(), "the table is sorted by name");
    names.sort_by_key(|name| dependencies.iter().position(|dependency| dependency == name));
    assert_eq!(names, dependencies);
    for row in rows {
        assert!(row.len() == 4 && row.iter().all(|cell| !cell.is_empty()), "{row:?}");
    }
}

#[test]
fn rustls_pemfile_stays_in_one_module() {
    let users = sources(&["src"]).into_iter().filter(|source| source.text.contains("rustls_pemfile::"));
    let modules: BTreeSet<String> = users.map(|source| source.module()).collect();
    assert_eq!(modules, ["pem".to_owned()].into());
}

#[test]
fn hook_builds_without_unwanted_crates() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges", "normal,build", "--package", "edgecert", "--prefix", "none"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    let crates: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    for wanted in ["reqwest", "serde_json", "x509-parser", "rustls-pemfile", "p256", "rsa", "anyhow"] {
        assert!(crates.contains(wanted), "the hook does not depend on {wanted}");
    }
    for unwanted in
        ["aws-lc-rs", "aws-lc-sys", "openssl", "openssl-sys", "cmake", "axum", "rusqlite", "edgecert-sandbox"]
    {
        assert!(!crates.contains(unwanted), "the hook depends on {unwanted}");
    }
}

#[test]
fn ignored_advisories_match_dependencies() {
    let (deny, lock) = (read(".cargo/deny.toml"), read("Cargo.lock"));
    for (advisory, name) in [("RUSTSEC-2025-0134", "rustls-pemfile"), ("RUSTSEC-2023-0071", "rsa")] {
        assert_eq!(deny.contains(advisory), lock.contains(&format!("name = \"{name}\"\n")), "{advisory}");
    }
    assert_eq!(deny.matches("RUSTSEC-").count(), 2, "an ignored advisory is missing from this test");
}

#[test]
fn full_profile_names_existing_tests() {
    let (sources, full) = (sources(&["src", "tests"]), read("tests/full"));
    let parts = full.lines().filter_map(|line| line.split_whitespace().next());
    for part in parts.filter(|part| part.starts_with(|c: char| c.is_ascii_lowercase())) {
        // Modules, and the beginning of the name of a module or test.
        let (modules, name) = part.rsplit_once("::").unwrap_or(("", part));
        let is_named = sources.iter().any(|source| {
            let (path, modules) = (source.path.to_str().unwrap(), modules.replace("::", "/"));
            path.contains(&modules)
                && (source.text.contains(&format!("fn {name}"))
                    || path.contains(&format!("{modules}/{name}")))
        });
        assert!(is_named, "tests/full: no test begins with {part}");
    }
}

/// The clients of the reference, with the tests of their recipes.
const CLIENTS: [(&str, &[&str]); 15] = [
    ("certbot", &["clients::certbot", "clients::certbot_hooks", "clients::certbot_renewals"]),
    ("acme.sh", &["clients::acme_sh", "clients::recipes"]),
    ("lego", &["clients::lego_script"]),
    ("dehydrated", &["clients::dehydrated", "clients::recipes"]),
    ("uacme", &["clients::uacme_script"]),
    ("Apache mod_md", &["clients::mod_md"]),
    ("certmonger", &["clients::certmonger"]),
    ("Caddy", &["clients::caddy", "clients::recipes"]),
    ("acmed", &["clients::client_layouts", "clients::recipes"]),
    ("getssl", &["clients::client_layouts", "clients::recipes"]),
    ("Posh-ACME", &["clients::client_layouts", "clients::recipes"]),
    ("step", &["clients::client_layouts", "clients::recipes"]),
    ("cert-manager", &["kubernetes"]),
    ("simple-acme", &["clients::client_layouts"]),
    ("tailscale", &["clients::client_layouts"]),
];

#[test]
fn clients_of_the_reference_have_tests() {
    let sources = sources(&["tests/it"]);
    let is_module = |path: &str| {
        let file = format!("tests/it/{}", path.replace("::", "/"));
        [format!("{file}.rs"), format!("{file}/mod.rs")].iter().any(|file| root().join(file).is_file())
    };
    let is_test = |path: &str| {
        let name = path.rsplit("::").next().unwrap();
        sources.iter().any(|source| source.text.contains(&format!("fn {name}()")))
    };
    let reference = read("hooks/README.md");
    let table = reference.split("\n| Client | Recipe | Tried with |\n").nth(1).unwrap();
    let rows = table.lines().skip(1).map_while(|row| row.strip_prefix("| ")?.split(" | ").next());
    let clients: Vec<&str> = rows.filter(|client| *client != "any other").collect();
    assert_eq!(clients, CLIENTS.map(|(client, _)| client), "the reference (left) and the tests (right)");
    for (client, tests) in CLIENTS {
        let missing = tests.iter().find(|path| !is_module(path) && !is_test(path));
        assert_eq!(missing, None, "{client}");
    }
}
