//! `edgecert completions`: the scripts are read by the shells that they are for.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::harness::{edgecert, env_var};

fn script(shell: &str) -> String {
    edgecert().args(["completions", shell]).succeeds().stdout
}

/// What a shell prints when it is fed this.
#[track_caller]
fn fed(shell: &str, arguments: &[&str], text: &str) -> String {
    let mut child = Command::new(shell)
        .args(arguments)
        .env_clear()
        .env("PATH", env_var("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{shell} must be installed (Debian package {shell}): {error}"));
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{shell}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// What bash offers behind these words, of which the last one is being typed.
#[track_caller]
fn bash(words: &[&str]) -> Vec<String> {
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let (at, current, before) = (words.len() - 1, words[words.len() - 1], words[words.len() - 2]);
    let call = format!(
        "\nCOMP_WORDS=({}) COMP_CWORD={at}\n_edgecert_fields edgecert '{current}' '{before}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        quoted.join(" ")
    );
    fed("bash", &["--norc"], &(script("bash") + &call)).lines().map(str::to_owned).collect()
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
fn bash_completes_the_value_of_a_field_whose_sign_parts_the_word() {
    let typed = ["edgecert", "sites", "update", "10", "--set", "origin_protocol", "="];
    assert_eq!(bash(&typed), ["http", "https", "follow"]);
    assert_eq!(bash(&[&typed[..], &["f"]].concat()), ["follow"]);
}

#[test]
fn zsh_and_fish_can_read_their_scripts() {
    fed("zsh", &["-f", "-n"], &script("zsh"));
    fed("fish", &["--no-config", "--no-execute"], &script("fish"));
}

#[test]
fn zsh_knows_the_fields() {
    let call = "\ncompadd() { print -rl -- \"$@\"; }\n_edgecert_fields() { }; unfunction _edgecert_fields\n";
    let script = script("zsh");
    let start = script.find("(( $+functions[_edgecert_fields] )) ||").unwrap();
    let function = script[start..].split("\n}\n").next().unwrap().to_owned() + "\n}\n";
    let shown = "local_names() { local -a fields values; compadd() { print -rl -- ${(P)4} ${(P)2} }; _edgecert_fields }\nlocal_names\n";
    let offered = fed("zsh", &["-f"], &format!("{function}{call}{function}{shown}"));
    assert!(offered.contains("remark=") && offered.contains("force_https=true"), "{offered}");
    assert!(script.contains(":FIELD=VALUE:_edgecert_fields'") && !script.contains(":FIELD=VALUE:("));
}

#[test]
fn fish_completes_commands_flags_and_fields() {
    let offered = |typed: &str| {
        let call = format!("\ncomplete -C '{typed}'\n");
        let lines = fed("fish", &["--no-config"], &(script("fish") + &call));
        lines.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(offered("edgecert sites up"), ["update"]);
    assert_eq!(offered("edgecert sites delete --y"), ["--yes"]);
    let mut fields = offered("edgecert sites update 10 --set force");
    fields.sort();
    assert_eq!(fields, ["force_https=false", "force_https=true"]);
    assert_eq!(offered("edgecert sites update 10 --set rem"), ["remark="]);
}

#[test]
fn every_command_is_in_every_script() {
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
