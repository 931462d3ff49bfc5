//! `edgecert completions`: runs each script in its shell.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::harness::{
    Lineage, Sandbox, binary, deploy, edgecert, edit_state, env_var, require, sandbox, state_files,
};

fn script(shell: &str) -> String {
    edgecert().args(["completions", shell]).succeeds().stdout
}

/// Runs a script in a shell and returns its output.
#[track_caller]
fn run_shell(shell: &str, arguments: &[&str], text: &str) -> String {
    run_shell_with(shell, arguments, &[], text)
}

/// Runs a shell with these variables.
#[track_caller]
fn run_shell_with(shell: &str, arguments: &[&str], variables: &[(&str, PathBuf)], text: &str) -> String {
    require(shell, shell);
    let mut child = Command::new(shell)
        .args(arguments)
        .env_clear()
        .env("PATH", env_var("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()))
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{shell}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The candidates that bash offers for the last of these words.
#[track_caller]
fn bash(words: &[&str]) -> Vec<String> {
    bash_with(&[], words)
}

#[track_caller]
fn bash_with(variables: &[(&str, PathBuf)], words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let (at, current, before) = (words.len() - 1, words[words.len() - 1], words[words.len() - 2]);
    let call = format!(
        "\ncompopt() {{ :; }}\nCOMP_WORDS=({}) COMP_CWORD={at}\n_edgecert_fields edgecert '{current}' '{before}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        quoted.join(" ")
    );
    let text = run_shell_with("bash", &["--norc"], variables, &(script("bash") + &call));
    text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_flags_and_fields() {
    assert_eq!(bash(&["edgecert", "sit"]), ["sites"]);
    assert_eq!(bash(&["edgecert", "sites", "up"]), ["update"]);
    assert_eq!(bash(&["edgecert", "sites", "delete", "--y"]), ["--yes"]);
    assert_eq!(bash(&["edgecert", "certs", "download", "--cert"]), ["--cert-only"]);
    assert_eq!(
        bash(&["edgecert", "sites", "update", "10", "--set", "force"]),
        ["force_https=true", "force_https=false"]
    );
    assert_eq!(bash(&["edgecert", "sites", "create", "a.example", "--set", "rem"]), ["remark="]);
    assert_eq!(bash(&["edgecert", "completions", "z"]), ["zsh"]);
}

#[test]
fn bash_completes_field_values() {
    let words = ["edgecert", "sites", "update", "10", "--set", "origin_protocol", "="];
    assert_eq!(bash(&words), ["http", "https", "follow"]);
    assert_eq!(bash(&[&words[..], &["f"]].concat()), ["follow"]);
}

#[test]
fn zsh_and_fish_scripts_parse() {
    run_shell("zsh", &["-f", "-n"], &script("zsh"));
    run_shell("fish", &["--no-config", "--no-execute"], &script("fish"));
}

#[test]
fn zsh_completes_fields() {
    let script = script("zsh");
    let start = script.find("(( $+functions[_edgecert_fields] )) ||").unwrap();
    let function = script[start..].split("\n}\n").next().unwrap().to_owned() + "\n}\n";
    // compadd works inside the completion system only; the replacement prints the arrays that it is passed.
    let call = "compadd() { print -rl -- ${(P)4} ${(P)2} }\n_edgecert_fields\n";
    let candidates = run_shell("zsh", &["-f"], &format!("{function}{call}"));
    assert!(candidates.contains("remark=") && candidates.contains("force_https=true"), "{candidates}");
    assert!(script.contains(":FIELD=VALUE:_edgecert_fields'") && !script.contains(":FIELD=VALUE:("));
}

#[test]
fn fish_completes_commands_flags_and_fields() {
    let candidates = |words: &str| {
        let call = format!("\ncomplete -C '{words}'\n");
        let lines = run_shell("fish", &["--no-config"], &(script("fish") + &call));
        lines.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(candidates("edgecert sites up"), ["update"]);
    assert_eq!(candidates("edgecert sites delete --y"), ["--yes"]);
    let mut fields = candidates("edgecert sites update 10 --set force");
    fields.sort();
    assert_eq!(fields, ["force_https=false", "force_https=true"]);
    assert_eq!(candidates("edgecert sites update 10 --set rem"), ["remark="]);
}

#[test]
fn every_script_contains_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = script(shell);
        for word in
            ["deploy", "certs", "download", "sites", "bind", "completions", "without-cert", "cert-only"]
        {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let json = edgecert().args(["completions", "bash", "--json"]).succeeds().json();
    assert_eq!(json["script"], script("bash"));
}

/// A host with three lineages: one deployed, to `a.example` and `b.example`, one configured, and one of acme.sh.
struct Host {
    home: TempDir,
    service: Sandbox,
    deployed: Lineage,
}

impl Host {
    fn new() -> Self {
        let (service, home) = (sandbox(&["a.example", "b.example"]), TempDir::new().unwrap());
        let deployed = Lineage::issued_for(&["a.example", "b.example"]);
        let host = Self { home, service, deployed };
        deploy(&host.service, &host.deployed, &host.path("state")).succeeds();
        for name in ["configured/$(touch pwned)", ".acme.sh/c.example_ecc"] {
            fs::create_dir_all(host.path(name)).unwrap();
        }
        for file in ["c.example.cer", "c.example.key", "fullchain.cer"] {
            fs::write(host.path(".acme.sh/c.example_ecc").join(file), "").unwrap();
        }
        let entry = format!(
            "[[lineage]]\npath = '{}'\ndomains = ['d.example']\n",
            host.path("configured/$(touch pwned)").display()
        );
        fs::write(host.path("config.toml"), entry).unwrap();
        fs::create_dir(host.path("bin")).unwrap();
        symlink(binary(), host.path("bin/edgecert")).unwrap();
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Where edgecert is, and what it reads. A completion gets no more of the service than its URL.
    fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        let path = format!("{}:/usr/bin:/bin", self.text("bin"));
        vec![
            ("PATH", path.into()),
            ("HOME", self.home.path().into()),
            ("EDGECERT_STATE_DIR", self.path("state")),
            ("EDGECERT_CONFIG", self.path("config.toml")),
            ("EDGECERT_BASE_URL", self.service.endpoints().api.clone().into()),
            ("EDGECERT_API_KEY", self.service.endpoints().api_key.clone().into()),
        ]
    }

    /// What the scripts ask for.
    #[track_caller]
    fn candidates(&self, kind: &str) -> Vec<String> {
        let variables = self.variables().into_iter();
        let hook = variables.fold(edgecert(), |hook, (name, value)| hook.env(name, value));
        let output = hook.args(["completions", kind]).succeeds();
        assert_eq!(output.stderr, "");
        output.stdout.lines().map(str::to_owned).collect()
    }

    fn deployed(&self) -> String {
        self.deployed.path().to_str().unwrap().to_owned()
    }
}

#[test]
fn candidates_come_from_this_host() {
    let host = Host::new();
    let before = host.service.requests().len();
    let mut lineages =
        [host.deployed(), host.text("configured/$(touch pwned)"), host.text(".acme.sh/c.example_ecc")];
    lineages.sort();
    assert_eq!(host.candidates("lineages"), lineages);
    assert_eq!(host.candidates("recorded"), [host.deployed()]);
    assert_eq!(host.candidates("domains"), ["a.example", "b.example", "d.example"]);
    assert_eq!(host.service.requests().len(), before);
    let variables = host.variables().into_iter();
    let hook = variables.fold(edgecert(), |hook, (name, value)| hook.env(name, value));
    let json = hook.args(["completions", "recorded", "--json"]).succeeds().json();
    assert_eq!(json["candidates"], serde_json::json!([host.deployed()]));
}

#[test]
fn candidates_are_sanitised_and_change_nothing() {
    let host = Host::new();
    edit_state(&state_files(&host.path("state"))[0], |state| {
        state["sites"][0]["domain"] = "\x1b]0;title\x07$(touch pwned)".into();
        state["lineage"]["directory"] = "/tmp/a\x1b[31mb".into();
    });
    fs::write(host.path("state/damaged.json"), "{").unwrap();
    fs::write(host.path("config.toml"), "wait = \"soon\"\n").unwrap();
    let listing = || {
        let files = fs::read_dir(host.path("state")).unwrap().map(|file| file.unwrap().file_name());
        let mut files: Vec<_> = files.collect();
        files.sort();
        files
    };
    let before = listing();
    assert_eq!(host.candidates("recorded"), [""; 0]);
    assert_eq!(host.candidates("domains"), ["b.example"]);
    assert_eq!(host.candidates("lineages"), [host.text(".acme.sh/c.example_ecc")]);
    assert_eq!(listing(), before);

    fs::remove_dir_all(host.path("state")).unwrap();
    assert_eq!(host.candidates("domains"), [""; 0]);
    assert!(!host.path("state").exists());
    fs::write(host.path("state"), "not a directory").unwrap();
    assert_eq!(host.candidates("domains"), [""; 0]);
}

#[test]
fn bash_offers_lineages_and_domains() {
    let host = Host::new();
    let bash = |words: &[&str]| bash_with(&host.variables(), words);
    let client = host.text(".acme.sh/c.example_ecc");
    assert_eq!(bash(&["edgecert", "deploy", "--lineage", &host.text(".acme")]), [client.as_str()]);
    assert_eq!(bash(&["edgecert", "--lineage", "=", &host.text(".acme")]), [client]);
    let quoted = host.text("configured/\\$\\(touch\\ pwned\\)");
    assert_eq!(bash(&["edgecert", "check", "--lineage", &host.text("conf")]), [quoted.as_str()]);
    assert_eq!(bash(&["edgecert", "check", "--lineage", &host.text("configured/\\$")]), [quoted]);
    let recorded = host.deployed();
    let offered = bash(&["edgecert", "status", "--forget", &recorded[..recorded.len() - 2]]);
    assert!(offered.contains(&recorded), "{offered:?}");
    assert_eq!(bash(&["edgecert", "plan", "--domain", "a"]), ["a.example"]);
    assert_eq!(bash(&["edgecert", "plan", "--domain", "="]), ["a.example", "b.example", "d.example"]);
    for command in ["get", "update", "bind", "enable", "disable", "delete"] {
        assert_eq!(bash(&["edgecert", "sites", command, "b"]), ["b.example"], "{command}");
    }
    assert_eq!(bash(&["edgecert", "sites", "create", "b"]), [""; 0]);
    assert!(!host.path("pwned").exists());
}

#[test]
fn fish_offers_lineages_and_domains() {
    let host = Host::new();
    let fish = |words: &str| {
        let call = format!("\ncd $HOME\ncomplete -C '{words}'\n");
        let text = script("fish") + &call;
        let lines = run_shell_with("fish", &["--no-config"], &host.variables(), &text);
        let mut lines: Vec<String> =
            lines.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect();
        lines.sort();
        lines
    };
    let offered = fish(&format!("edgecert deploy --lineage {}", host.text(".acme")));
    assert!(offered.contains(&host.text(".acme.sh/c.example_ecc")), "{offered:?}");
    assert!(fish("edgecert deploy --lineage ").contains(&host.deployed()));
    assert!(fish("edgecert status --forget ").contains(&host.deployed()));
    assert_eq!(fish("edgecert plan --domain a"), ["a.example"]);
    assert_eq!(fish("edgecert sites bind "), ["a.example", "b.example", "d.example"]);
    assert_eq!(fish("edgecert sites get b"), ["b.example"]);
    assert!(!host.path("pwned").exists());
}

/// The arguments of edgecert after zsh completes a line with Tab at its end.
#[track_caller]
fn zsh_completes(host: &Host, line: &str) -> String {
    fs::create_dir_all(host.path("zsh")).unwrap();
    fs::write(host.path("zsh/_edgecert"), script("zsh")).unwrap();
    // The function shows the arguments; completions call the program.
    let setup = format!(
        "PS1=; fpath=({} $fpath); autoload -Uz compinit; compinit -u -D; \
         edgecert() {{ if [[ $1 == completions ]]; then command edgecert $@; else print -r -- \"<${{(j:|:)@}}>\"; fi }}; print READY",
        host.text("zsh")
    );
    let text = format!(
        "zmodload zsh/zpty; zpty -b z zsh -f -i; zpty -w z {}; zpty -r z shown '*READY*READY*'\n\
         zpty -w -n z $'{line}\\t\\n'; zpty -r z shown '*<*>*'; print -r -- $shown; zpty -d z\n",
        quote(&setup)
    );
    let shown = run_shell_with("zsh", &["-f"], &host.variables(), &text);
    let start = shown.rfind('<').expect("the arguments are shown");
    shown[start + 1..].split('>').next().unwrap().to_owned()
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[test]
fn zsh_offers_lineages_and_domains() {
    let host = Host::new();
    assert_eq!(zsh_completes(&host, "edgecert sites get b"), "sites|get|b.example");
    assert_eq!(zsh_completes(&host, "edgecert plan --domain a"), "plan|--domain|a.example");
    let client = host.text(".acme.sh/c.example_ecc");
    let typed = format!("edgecert deploy --lineage {}", &client[..client.len() - 5]);
    assert_eq!(zsh_completes(&host, &typed).trim_end_matches('/'), format!("deploy|--lineage|{client}"));
    let recorded = host.deployed();
    let typed = format!("edgecert status --forget {}", &recorded[..recorded.len() - 2]);
    assert_eq!(zsh_completes(&host, &typed).trim_end_matches('/'), format!("status|--forget|{recorded}"));
    assert!(!host.path("pwned").exists());
}
