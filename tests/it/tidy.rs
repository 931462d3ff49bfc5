//! Checks of the source tree: imports between modules, names and module comments.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of `src`, lowest first, each with the modules that it imports. A missing import is a design change: add
/// it in the commit that needs it, and say why there.
const IMPORTS: [(&str, &str); 42] = [
    // The lowest layer.
    ("text", ""),
    ("clock", ""),
    ("env", ""),
    ("file", "clock text"),
    ("names", "text"),
    ("outcome", "text"),
    ("leaf", "text"),
    // Written by `verify` and `deploy`, stored in `state`.
    ("sightings", "leaf"),
    ("runtime", "file"),
    // A lookup takes a thread of its own.
    ("dns", "runtime"),
    // What to do about a failure; from the checks up, every module has failures.
    ("hint", "text"),
    ("secret", "text"),
    ("progress", ""),
    ("fields", "text"),
    // Certificates and keys; no network, no settings.
    ("der", ""),
    ("pem", "secret text"),
    ("key", "der pem secret"),
    // `key` for the public key of a certificate, `names` for the length of the longest name.
    ("cert", "der key leaf names pem text"),
    ("bundle", "cert clock file key leaf pem runtime text"),
    ("check", "bundle cert hint key names text"),
    ("source", "bundle env file text"),
    // Settings and state.
    ("settings", "clock env file hint names secret text"),
    ("state", "clock sightings file hint leaf names outcome settings source text"),
    ("inventory", "names settings source state text"),
    // The service.
    ("trust", "clock file hint pem settings text"),
    // `key` and `pem`, to remove the numbers of a downloaded key from the rest of its record.
    ("api", "check clock dns key names pem secret settings text trust"),
    // The guards that a run overrides.
    ("plan", "api hint leaf names settings text"),
    // The edge.
    ("verify", "bundle cert clock dns sightings leaf names text"),
    // Errors and reports.
    ("error", "api check file hint runtime settings source state text"),
    // `clock` for the moment at which a report is made.
    ("report", "bundle check clock error hint leaf names outcome plan sightings source text verify"),
    // Secrets of a cluster, as lineages.
    ("kubernetes", "api clock env error file hint runtime settings source text"),
    // Read once per run.
    ("context", "env report settings"),
    // `api` and `runtime` for the heartbeat, which is an HTTP request.
    ("notify", "api clock context env error file report runtime settings text"),
    // The engines.
    (
        "deploy",
        "api bundle cert check clock error file hint leaf names outcome plan progress report runtime \
         secret settings sightings source state text trust verify",
    ),
    // `trust`, loaded once for all lineages.
    (
        "sync",
        "api bundle cert clock context deploy error file hint inventory kubernetes leaf names outcome plan \
         progress report runtime settings sightings source state text trust verify",
    ),
    // The commands.
    ("cli", "env error names report settings source state text"),
    // `notify`: `sync` sends its heartbeat before its report is printed, because a failure is one of its warnings.
    (
        "cmd",
        "api bundle cert check cli clock context deploy env error fields file hint inventory kubernetes \
         leaf names notify outcome plan progress report runtime secret settings sightings source state \
         sync text trust verify",
    ),
    ("ui", "env error file progress report text"),
    ("lib", ""),
    // The build script.
    ("build", ""),
    // Part of the program, which uses the library.
    ("early_exit", ""),
    ("main", ""),
];

/// The directories of all source files that are written by hand.
const TREES: [&str; 6] = ["src", "tests/it", "tests/figures", "tests/man", "tests/fuzz/src", "tests/sandbox"];

const MAX_TEST_NAME_WORDS: usize = 8;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A Rust file, with its path relative to the repository.
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl Source {
    /// The top-level module of `src` that the file belongs to.
    pub(crate) fn module(&self) -> String {
        let first = self.path.strip_prefix("src").unwrap().components().next().unwrap();
        first.as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned()
    }
}

/// All Rust files below these directories.
pub(crate) fn sources(directories: &[&str]) -> Vec<Source> {
    let mut sources = Vec::new();
    for directory in directories {
        add_sources(Path::new(directory), &mut sources);
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

fn add_sources(directory: &Path, sources: &mut Vec<Source>) {
    for entry in fs::read_dir(root().join(directory)).unwrap() {
        let entry = entry.unwrap();
        let path = directory.join(entry.file_name());
        if entry.path().is_dir() {
            add_sources(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(Source { text: fs::read_to_string(entry.path()).unwrap(), path });
        }
    }
}

/// The first segment of every path below `crate::`, including those in `crate::{…}`.
fn crate_paths(code: &str) -> BTreeSet<String> {
    let first_segment =
        |path: &str| path.trim().split(|c: char| !c.is_ascii_lowercase()).next().unwrap().to_owned();
    let mut segments = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{') {
            Some(group) => segments.extend(group_members(group).into_iter().map(first_segment)),
            None => _ = segments.insert(first_segment(rest)),
        }
    }
    segments
}

/// The members of a `use` group, given the text after its opening brace.
fn group_members(group: &str) -> Vec<&str> {
    let (mut members, mut start, mut depth) = (Vec::new(), 0, 1);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && c == ',') {
            members.push(&group[start..at]);
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    members
}

#[test]
fn modules_import_what_the_table_lists() {
    let sources = sources(&["src"]);
    let modules: BTreeSet<String> = sources.iter().map(Source::module).collect();
    let listed: BTreeSet<String> = IMPORTS.iter().map(|(module, _)| (*module).to_owned()).collect();
    assert_eq!(modules, listed, "modules of src (left) and rows of the table (right)");
    for (module, allowed) in IMPORTS {
        let mut imported = BTreeSet::new();
        for source in sources.iter().filter(|source| source.module() == module) {
            let code = source.text.split("#[cfg(test)]").next().unwrap();
            imported.extend(crate_paths(code).into_iter().filter(|name| modules.contains(name)));
        }
        imported.remove(module);
        let allowed: BTreeSet<String> = allowed.split_whitespace().map(str::to_owned).collect();
        assert_eq!(imported, allowed, "imports of {module} (left) and the table (right)");
    }
}

#[test]
fn modules_import_from_below_only() {
    let mut below = BTreeSet::new();
    for (module, imports) in IMPORTS {
        for import in imports.split_whitespace() {
            assert!(below.contains(import), "{module} imports {import}, which is not below it");
        }
        below.insert(module);
    }
}

#[test]
fn map_names_modules_above_their_imports() {
    let text = read("src/ARCHITECTURE.md");
    let map = text.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
    let row = |module: &str| {
        let names = [format!("{module}.rs"), format!("{module}/")];
        let row =
            map.lines().position(|line| line.split_whitespace().any(|word| names.contains(&word.to_owned())));
        row.unwrap_or_else(|| panic!("the map in src/ARCHITECTURE.md lacks {module}"))
    };
    for (module, imports) in IMPORTS {
        let row_of_module = row(module);
        for import in imports.split_whitespace() {
            assert!(row_of_module <= row(import), "the map has {module} below {import}, which it imports");
        }
    }
}

/// What a comment or a document does not begin a sentence with.
const INDIRECT: [&str; 8] =
    ["So many ", "So long ", "So far ", "So much ", "What is ", "The same, but ", "Whose ", "Who "];

#[test]
fn sentences_are_direct() {
    let mut texts = sources(&TREES);
    for document in ["README.md", "hooks/README.md", "src/ARCHITECTURE.md", "tests/README.md", "CHANGELOG.md"]
    {
        texts.push(Source { path: document.into(), text: read(document) });
    }
    for Source { path, text } in texts {
        let is_document = path.extension().is_some_and(|extension| extension == "md");
        let comments = text.lines().filter_map(|line| {
            let text = line.trim_start();
            let comment = text.strip_prefix("//").map(|text| text.trim_start_matches(['/', '!']));
            comment.or(is_document.then_some(text)).map(str::trim_start)
        });
        for comment in comments {
            let begins = INDIRECT
                .iter()
                .any(|words| comment.starts_with(words) || comment.contains(&format!(". {words}")));
            assert!(!begins, "{}: {comment}", path.display());
        }
    }
}

#[test]
fn every_file_states_its_purpose() {
    for source in sources(&TREES) {
        let begins_with_docs = source.text.starts_with("//! ");
        assert!(begins_with_docs, "{} does not begin with a module comment", source.path.display());
    }
}

#[test]
fn no_file_includes_another_by_path() {
    // Written in two parts because this file is searched too.
    let attribute = ["#[", "path"].concat();
    for source in sources(&TREES) {
        assert!(!source.text.contains(&attribute), "{} has {attribute}", source.path.display());
    }
}

/// The name of the function that a line begins, if it does.
fn function_name(line: &str) -> Option<&str> {
    let is_qualifier = |word: &&str| {
        word.starts_with("pub") || matches!(*word, "const" | "async" | "unsafe" | "extern" | "\"C\"")
    };
    let mut words = line.split_whitespace().skip_while(is_qualifier);
    (words.next()? == "fn").then(|| words.next())?.map(|name| name.split(['(', '<']).next().unwrap())
}

#[test]
fn test_names_are_short() {
    let mut too_long = Vec::new();
    for Source { path, text } in sources(&["tests/it"]) {
        let tests = text.split("#[test]\n").skip(1);
        let names = tests.filter_map(|test| test.lines().find_map(function_name));
        let long = names.filter(|name| name.split('_').count() > MAX_TEST_NAME_WORDS);
        too_long.extend(long.map(|name| format!("{}: {name}", path.display())));
    }
    assert!(too_long.is_empty(), "more than {MAX_TEST_NAME_WORDS} words:\n{}", too_long.join("\n"));
}

#[test]
fn sandbox_and_hook_share_no_code() {
    for source in sources(&["tests/sandbox/src"]) {
        for library in ["x509_parser::", "rustls_pemfile::", "p256::", "rsa::", "reqwest::", "edgecert::"] {
            let is_use = |line: &str| line.contains(library) && !line.trim_start().starts_with("//");
            let is_used = source.text.lines().any(is_use);
            assert!(!is_used, "{} uses {library}, which the hook uses too", source.path.display());
        }
    }
    for source in sources(&["src"]) {
        assert!(!source.text.contains("edgecert_sandbox"), "{}", source.path.display());
    }
}

#[test]
fn changelog_names_the_version() {
    let version = env!("CARGO_PKG_VERSION");
    let changelog = read("CHANGELOG.md");
    assert!(changelog.contains(&format!("\n## [{version}] - ")));
}
