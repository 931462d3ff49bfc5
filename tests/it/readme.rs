//! What the README shows is run.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::{Lineage, edgecert, sandbox};

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

/// The code blocks of a language.
fn blocks(language: &str) -> Vec<String> {
    let readme = readme();
    let fence = format!("```{language}\n");
    let starts = readme.split(&fence).skip(1);
    starts.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn its_configuration_is_understood() {
    let lineage = Lineage::issued_for(&["a.example"]);
    let blocks = blocks("toml");
    assert_eq!(blocks.len(), 3);
    let hook = edgecert().called_by_certbot(&lineage);
    let file = hook.file("config.toml", &blocks.concat());
    // Without the machine's programs, because `on_failure` names one.
    let outcome = hook.env("EDGECERT_CONFIG", file).env("PATH", "/nowhere").fails_with(78);
    assert!(outcome.stderr.contains("cannot start mail, which on_failure names"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("cannot read /etc/edgecert/api-key"), "{}", outcome.stderr);
}

#[test]
fn its_commands_work() {
    let edge = sandbox(&["example.com"]);
    let lineage = Lineage::issued_for(&["example.com", "www.example.com"]);
    let live = "/etc/letsencrypt/live/example.com";
    let place = |word: &str| word.replace(live, lineage.path().to_str().unwrap());
    let mut run = 0;
    for line in blocks("sh").concat().lines().filter(|line| line.contains(live)) {
        let mut hook = edgecert().against(&edge);
        for word in line.split(' ') {
            hook = match word.split_once('=') {
                Some((name, value)) => hook.env(name, place(value)),
                None if word == "edgecert" => hook,
                None => hook.args([place(word)]),
            };
        }
        hook.succeeds();
        run += 1;
    }
    assert_eq!(run, 3);
}

#[test]
fn every_path_that_it_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let hooks =
        ["hooks/acme.sh/edgecert.sh", "hooks/systemd/edgecert-sync.service", "hooks/cron/edgecert-sync"];
    for path in ["tests/run", "tests/sandbox/README.md", "LICENSE"].into_iter().chain(hooks) {
        assert!(readme().contains(path) && root.join(path).exists(), "{path}");
    }
}

#[test]
fn the_hook_for_acme_sh_hands_over_what_was_renewed() {
    let edge = sandbox(&["a.example"]);
    let lineage = Lineage::issued_for(&["a.example"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/acme.sh/edgecert.sh");
    let mut hook = edgecert().against(&edge);
    let program = hook.command().get_program().to_owned();
    let variables: Vec<_> =
        hook.command().get_envs().map(|(name, value)| (name.to_owned(), value.unwrap().to_owned())).collect();
    let call = r#". "$0" && edgecert_deploy '*.example' "$1/privkey.pem" "$1/cert.pem" "$1/chain.pem" "$1/fullchain.pem" "$1/no.pfx""#;
    let mut shell = Command::new("sh");
    shell
        .args(["-c", call])
        .arg(&script)
        .arg(lineage.path())
        .env_clear()
        .envs(variables)
        .env("EDGECERT_BIN", program);
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(edge.certs()[0]["cert_pem"], lineage.read("fullchain.pem"));

    // acme.sh leaves the full chain alone when the CA sends no chain; it is then an earlier certificate's.
    let stale = lineage.read("fullchain.pem");
    lineage.renew(&["a.example"]);
    let renewed = lineage.read("fullchain.pem");
    lineage.write("fullchain.pem", &stale);
    assert!(shell.output().unwrap().status.success());
    assert_eq!(edge.certs()[0]["cert_pem"], renewed);
}
