//! The documents: their length, their links, and everything that README.md and hooks/README.md show, which is run.

mod reference;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::harness::{
    Authority, Hook, Lineage, Options, Sandbox, edgecert, record_of, sandbox, scrub_times, step, world,
    write_with_mode,
};
pub(crate) use crate::tidy::{read, root};

pub(crate) const README: &str = "README.md";
pub(crate) const REFERENCE: &str = "hooks/README.md";
const DOCUMENTS: [&str; 4] = [README, REFERENCE, "src/ARCHITECTURE.md", "tests/README.md"];

/// The words that a document may have; of the changelog, each section.
const MAX_WORDS: [(&str, usize); 5] = [
    (README, 1000),
    (REFERENCE, 9000),
    ("src/ARCHITECTURE.md", 2500),
    ("tests/README.md", 600),
    ("CHANGELOG.md", 300),
];

pub(crate) const SANDBOX: &str = "tests/sandbox/README.md";

/// The code blocks of a language.
pub(crate) fn blocks(document: &str, language: &str) -> Vec<String> {
    let text = read(document);
    let starts = text.split(&format!("```{language}\n")).skip(1).map(str::to_owned).collect::<Vec<_>>();
    starts.iter().map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// The command that attaches edgecert to a client: the first code span of its row.
pub(crate) fn attach_command(document: &str, client: &str) -> String {
    let readme = read(document);
    let row = readme.lines().find(|line| line.starts_with(&format!("| {client} |"))).expect(client);
    row.split('`').nth(1).unwrap().to_owned()
}

/// Headings as the anchors that a link can name.
fn anchors(document: &str) -> BTreeSet<String> {
    let text = read(document);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        words
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
            .collect::<String>()
            .replace(' ', "-")
    };
    headings.map(anchor).collect()
}

#[test]
fn documents_stay_short() {
    for (document, limit) in MAX_WORDS {
        let text = read(document);
        let sections = if document == "CHANGELOG.md" { text.split("\n## ").collect() } else { vec![&*text] };
        let words = sections.iter().map(|section| section.split_whitespace().count()).max().unwrap();
        assert!(words <= limit, "{document} has {words} words, more than {limit}");
    }
}

#[test]
fn readme_is_short_and_shows_two_commands() {
    let text = read(README);

    // Its commands are run by `first_hour`.
    step("monitoring_section_has_at_most_150_words");
    let section = text.split("## Monitor it\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let words = section.split_whitespace().count();
    assert!((50..=150).contains(&words), "{words} words");

    // The rehearsal is run by the sandbox's own tests and, with the commands of the README, by `first_hour`.
    step("two_commands_follow_the_first_example");
    let (before, section) = text.split_once("\n## Try it\n").unwrap();
    assert_eq!((before.matches("```console\n").count(), before.matches("\n## ").count()), (1, 0), "{before}");
    let block = section.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let commands: Vec<(&str, &str)> = block.lines().map(|line| line.split_once("  # ").unwrap()).collect();
    let [(rehearsal, first_time), (tests, second_time)] = commands.try_into().unwrap();
    assert_eq!(rehearsal, "cargo build --workspace && target/debug/edgecert-sandbox rehearse");
    assert!(tests == "tests/run" && root().join(tests).is_file(), "{tests}");
    for time in [first_time, second_time] {
        let minutes = time.split(' ').next().unwrap();
        assert!(minutes.parse::<u8>().is_ok() && time.contains(" minutes: "), "{time}");
    }
}

/// Fails unless the links of a document lead to files in its tree, or to their headings.
#[track_caller]
pub(crate) fn assert_links(tree: &Path, document: &str) {
    let at = tree.join(document);
    let text = read(at.to_str().unwrap());
    let mut count = 0;
    for target in text.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
        count += 1;
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = if file.is_empty() { at.clone() } else { at.parent().unwrap().join(file) };
        let is_in_tree = path.canonicalize().is_ok_and(|path| path.starts_with(tree));
        assert!(is_in_tree, "{document} links to {target}");
        let is_known = anchor.is_empty() || anchors(path.to_str().unwrap()).contains(anchor);
        assert!(is_known, "{document} links to {target}, and there is no such heading");
    }
    assert!(count > 2, "{document} has {count} links");
}

#[test]
fn links_lead_somewhere() {
    for document in [&DOCUMENTS[..], &[SANDBOX]].concat() {
        assert_links(&root().canonicalize().unwrap(), document);
    }
}

#[test]
fn paths_named_exist() {
    const TREES: [&str; 4] = ["hooks/", "src/", "tests/", ".ci/"];
    for document in DOCUMENTS {
        let text = read(document);
        let words = text.split(|c: char| c.is_whitespace() || "`()[]|,;".contains(c));
        let is_path = |word: &&str| TREES.iter().any(|tree| word.starts_with(tree));
        for path in words.filter(is_path).map(|word| word.trim_end_matches([':', '.'])) {
            let path = root().join(path.split('#').next().unwrap());
            let is_there = path.exists() || path.to_str().unwrap().strip_suffix('*').is_some_and(has_files);
            assert!(is_there, "{document} names {}", path.display());
        }
    }
}

/// Whether the paths of files begin like this.
fn has_files(begin: &str) -> bool {
    let mut files = Path::new(begin).parent().unwrap().read_dir().unwrap();
    files.any(|file| file.unwrap().path().to_str().unwrap().starts_with(begin))
}

/// The text of a module of `src`: its file, and every file in its folder.
fn module(name: &str) -> String {
    let source = root().join("src").join(name);
    let folder = fs::read_dir(&source).into_iter().flatten().map(|entry| entry.unwrap().path());
    let files = folder.chain([source.with_extension("rs")]).filter(|path| path.is_file());
    files.map(|path| fs::read_to_string(path).unwrap()).collect()
}

#[test]
fn names_in_architecture_exist() {
    let text = read("src/ARCHITECTURE.md");
    let mut count = 0;
    for (at, name) in text.split('`').enumerate().filter(|(at, _)| at % 2 == 1) {
        let after = text.split('`').nth(at + 1).unwrap();
        let file = after.strip_prefix(" in [").and_then(|rest| rest.split(']').next());
        let (source, item) = match (file, name.split_once("::")) {
            (Some(file), _) => (read(&format!("src/{file}")), name),
            (None, Some((module_name, item))) => (module(module_name), item),
            (None, None) => continue,
        };
        let item = item.rsplit("::").next().unwrap();
        assert!(source.contains(item), "src/ARCHITECTURE.md names {name}");
        count += 1;
    }
    assert!(count > 15, "{count} names");
}

#[test]
fn configuration_is_understood() {
    for (document, count) in [(README, 1), (REFERENCE, 5)] {
        let blocks = blocks(document, "toml");
        assert_eq!(blocks.len(), count, "{document}");
        let lineage = Lineage::issued_for(&["a.example"]);
        let hook = edgecert().called_by_certbot(&lineage);
        // Keys after a `[[lineage]]` would belong to it.
        let (entries, keys): (Vec<_>, Vec<_>) = blocks.iter().partition(|block| block.starts_with("[["));
        let file = hook
            .write_file("config.toml", &[keys, entries].concat().into_iter().cloned().collect::<String>());
        // With an empty PATH, because `on_failure` names a program.
        let output = hook.env("EDGECERT_CONFIG", file).env("PATH", "/nowhere").exits_with(78);
        output.says("cannot read /etc/edgecert/api-key");
        let names_program = blocks.concat().contains("on_failure");
        assert_eq!(names_program, output.stderr.contains("cannot start mail"), "{}", output.stderr);
    }
}

#[test]
fn commands_of_the_readme_work() {
    let service = sandbox(&["example.com"]);
    let lineage = Lineage::issued_for(&["example.com", "www.example.com"]);
    let live = "/etc/letsencrypt/live/example.com";
    let mut run = 0;
    for line in blocks(README, "sh").concat().lines().filter(|line| line.contains(live)) {
        call(&line.replace(live, lineage.path().to_str().unwrap()), edgecert().against(&service)).succeeds();
        run += 1;
    }
    assert_eq!(run, 3);
}

/// A command line of the README as a call of the hook.
fn call(line: &str, hook: Hook) -> Hook {
    line.split(' ').fold(hook, |hook, word| match word.split_once('=') {
        Some((name, value)) => hook.env(name, value),
        None if word == "edgecert" => hook,
        None => hook.args([word]),
    })
}

/// Width of the terminal of the README's runs; nothing in them is longer.
const COLUMNS: usize = 200;

/// The system's trust store in a scene.
const ROOTS: &str = "roots.pem";

/// The scene of the README's runs: three sites with certificates, and a renewed lineage for each certificate.
struct Scene {
    service: Sandbox,
    live: TempDir,
    state: TempDir,
}

impl Scene {
    fn new() -> Self {
        let authority = Authority::new("Example CA").unwrap();
        let lineages: [(u64, &[&str]); 2] = [(5, &["shop.example.com"]), (6, &["blog.example.com"])];
        let (live, mut sites, mut certs) = (TempDir::new().unwrap(), Vec::new(), Vec::new());
        for (id, names) in lineages {
            let [old, new] = [(); 2].map(|()| authority.issue(names).unwrap());
            certs.push(record_of(id, names[0], &old));
            sites.extend(names.iter().map(|name| json!({"account": 1, "domain": name, "cert_id": id})));
            let directory = live.path().join(names[0]);
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("fullchain.pem"), new.fullchain()).unwrap();
            write_with_mode(directory.join("privkey.pem"), &new.key, 0o600);
        }
        for (number, site) in sites.iter_mut().enumerate() {
            site["id"] = json!(10 + number);
        }
        fs::write(live.path().join(ROOTS), authority.root()).unwrap();
        let world = world(json!({"sites": sites, "certs": certs}));
        let service = Sandbox::start(Options { world, ..Options::default() }).unwrap();
        Self { service, live, state: TempDir::new().unwrap() }
    }

    /// What a terminal shows, with the names of the README.
    fn run(&self, line: &str) -> String {
        let line = line.replace("/etc/letsencrypt/live", self.live.path().to_str().unwrap());
        let mut hook = call(&line, edgecert().against(&self.service)).with_state(self.state.path());
        hook = hook.env("SSL_CERT_FILE", self.live.path().join(ROOTS)).env("TERM", "dumb");
        let text =
            hook.shows_on_terminal(COLUMNS).text.replace(&self.service.endpoints().edge, "127.0.0.1:8793");
        text.replace("Example CA intermediate", "Example CA")
    }
}

/// Replaces dates, durations and the hash in the name of a lineage.
fn scrub(text: &str) -> String {
    let word = |word: &str| {
        let hash =
            word.trim_end().rsplit_once('-').filter(|(_, hash)| hash.len() == 10 && !hash.contains('.'));
        hash.map_or_else(
            || word.to_owned(),
            |(name, _)| word.replace(word.trim_end(), &format!("{name}-HASH")),
        )
    };
    scrub_times(text).split_inclusive([' ', '\n']).map(word).collect()
}

#[test]
fn runs_of_the_readme_are_real() {
    let scene = Scene::new();
    let [success, failure] = blocks(README, "console").try_into().unwrap();
    let check = |session: &str| {
        for step in session.split("$ ").skip(1) {
            let (line, shown) = step.split_once('\n').unwrap();
            if line == "edgecert sync" {
                scene.service.hold_pushes(false);
                scene.service.push_now();
            }
            let output = scene.run(line);
            assert_eq!(scrub(&output), scrub(shown), "{line}");
        }
    };
    check(&success);
    scene.service.hold_pushes(true);
    check(&failure);
}
