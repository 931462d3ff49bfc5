//! `edgecert completions`: runs each script in its shell.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::harness::{edgecert, env_var, require};

fn script(shell: &str) -> String {
    edgecert().args(["completions", shell]).succeeds().stdout
}

/// Runs a script in a shell and returns its output.
#[track_caller]
fn run_shell(shell: &str, arguments: &[&str], text: &str) -> String {
    require(shell, shell);
    let mut child = Command::new(shell)
        .args(arguments)
        .env_clear()
        .env("PATH", env_var("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()))
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
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let (at, current, before) = (words.len() - 1, words[words.len() - 1], words[words.len() - 2]);
    let call = format!(
        "\nCOMP_WORDS=({}) COMP_CWORD={at}\n_edgecert_fields edgecert '{current}' '{before}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        quoted.join(" ")
    );
    run_shell("bash", &["--norc"], &(script("bash") + &call)).lines().map(str::to_owned).collect()
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
