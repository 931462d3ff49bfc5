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
    let (at, current, before) = (words.len() - 1, words[words.len() - 1], words[words.len() - 2]);
    let call = format!(
        "\ncompopt() {{ :; }}\nCOMP_WORDS=({}) COMP_CWORD={at}\n_edgecert edgecert '{current}' '{before}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        words.join(" ")
    );
    let text = run_shell("bash", &["--norc"], &(script("bash") + &call));
    text.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_and_flags() {
    assert_eq!(bash(&["edgecert", "sit"]), ["sites"]);
    assert_eq!(bash(&["edgecert", "sites", "up"]), ["update"]);
    assert_eq!(bash(&["edgecert", "sites", "delete", "--y"]), ["--yes"]);
    assert_eq!(bash(&["edgecert", "certs", "download", "--cert"]), ["--cert-only"]);
    assert_eq!(bash(&["edgecert", "completions", "z"]), ["zsh"]);
}

#[test]
fn zsh_and_fish_scripts_parse() {
    run_shell("zsh", &["-f", "-n"], &script("zsh"));
    run_shell("fish", &["--no-config", "--no-execute"], &script("fish"));
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
