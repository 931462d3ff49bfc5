//! The command line: help, usage errors, and calls without a subcommand.

use std::io::Write as _;
use std::process::Stdio;

use expect_test::expect;
use serde_json::json;

use crate::harness::{Lineage, edgecert, fresh, sandbox_and_lineage, step};

#[test]
fn no_command_prints_help_and_exits_2() {
    let output = edgecert().exits_with(2);
    assert_eq!(output.stdout, "");
    output.says("Usage: edgecert");
}

#[test]
fn flag_of_deploy_must_follow_its_command() {
    for command in ["deploy", "sync"] {
        let output = edgecert().args(["--domain", "a.example", command]).exits_with(2);
        output.says(format!("--domain must follow `{command}`"));
    }
}

#[test]
fn variables_of_a_hook_imply_deploy() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);

    step("hook_environment_implies_deploy");
    let implicit = fresh(&service, &lineage).args(["--json"]).succeeds();
    let explicit = fresh(&service, &lineage).args(["deploy", "--json"]).succeeds();
    for output in [implicit, explicit] {
        assert_eq!(output.json()["command"], "deploy");
        assert_eq!(output.json()["source"]["client"], "certbot");
    }

    step("largest_timeouts_do_not_overflow");
    for flag in ["--timeout", "--wait"] {
        fresh(&service, &lineage).args([flag, "18446744073709551615"]).succeeds();
    }
}

#[test]
fn deploy_without_certificate_exits_2() {
    expect![[r#"
        ---
        edgecert: error: no certificate is named, and no ACME client's variables are set
        edgecert: hint: run edgecert as the deploy hook of an ACME client, or pass --lineage DIR, or --cert FILE and --key FILE
    "#]].assert_eq(&edgecert().args(["deploy"]).exits_with(2).snapshot());
}

#[test]
fn usage_errors_exit_2() {
    let unknown = ["--no-such-flag", "no-such-command", "deploy_crt a.example", "--domain a.example check"];
    let invalid = ["check --at yesterday", "check --key k", "--lineage a --cert b", "--domain not/a/domain"];
    for line in unknown.iter().chain(&invalid) {
        let output = edgecert().args(line.split(' ')).exits_with(2);
        assert_eq!(output.stdout, "", "{line}");
        assert!(output.stderr.starts_with("edgecert: error: "), "{line}: {}", output.stderr);
        let json = edgecert().args(line.split(' ')).args(["--json"]).exits_with(2).json();
        assert_eq!((&json["ok"], &json["exit_code"]), (&json!(false), &json!(2)), "{line}");
        assert_ne!(json["error"], json!(null));
    }
}

#[test]
fn json_is_always_one_object() {
    let of_check = ["check --json", "check --json --lineage /nonexistent", "check --json --key k"];
    let others =
        ["--json", "deploy --json", "deploy --json --no-such-flag", "plan --json --domain not/a/domain"];
    for line in of_check.iter().chain(&others) {
        let json = edgecert().args(line.split(' ')).run().json();
        let fields: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
        assert!(fields.len() == 12 && json["version"] == 1, "{line}: {fields:?}");
    }
}

#[test]
fn help_and_version_print_to_stdout() {
    for arguments in [&["--help"][..], &["-h"], &["deploy", "--help"], &["check", "--help"], &["--version"]] {
        let output = edgecert().args(arguments).succeeds();
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn json_usage_error_names_its_command() {
    let json = edgecert().args(["sites", "update", "--json"]).exits_with(2).json();
    let message = "the following required arguments were not provided: <ID|DOMAIN>";
    assert_eq!((&json["command"], &json["error"]), (&json!("sites update"), &json!(message)));
    for (arguments, command) in [
        ("--config c sites get --json -x", "sites get"),
        ("sites --config c get --json -x", "sites get"),
        ("certs --json download", "certs download"),
    ] {
        let json = edgecert().args(arguments.split(' ')).exits_with(2).json();
        assert_eq!((&json["command"], &json["exit_code"]), (&json!(command), &json!(2)), "{arguments}");
    }
}

#[test]
fn help_hides_environment_values() {
    let hook =
        edgecert().env("EDGECERT_API_KEY", "canary-value").env("EDGECERT_BASE_URL", "https://canary-value");
    let help = hook.args(["--help"]).succeeds().stdout;
    for word in ["deploy", "check", "EDGECERT_API_KEY"] {
        assert!(help.contains(word), "{word}");
    }
    for code in [65, 66, 69, 70, 75, 76, 77, 78] {
        assert!(help.contains(&format!(" {code} ")), "{code}");
    }
    assert!(!help.contains("canary-value"));
}

#[test]
fn other_dehydrated_operations_succeed_silently() {
    let calls = "startup_hook
        this_hookscript_is_broken__dehydrated_is_working_fine__please_ignore_unknown_hooks_in_your_script
        generate_csr a.example /certs a.example
        deploy_challenge a.example token value
        clean_challenge a.example token value
        sync_cert k c f ch csr
        exit_hook
        invalid_challenge a.example response
        request_failure 500 reason type headers";
    for call in calls.lines() {
        let output = edgecert().args(call.split_whitespace()).succeeds();
        assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""), "{call}");
    }
    edgecert().args(["deploy_cert", "a.example"]).exits_with(2);
}

#[test]
fn control_characters_are_stripped_from_paths() {
    let output = edgecert().args(["check", "--cert", "y\u{1b}]0;t\u{7}\nedgecert: ok"]).exits_with(66);
    assert!(!output.stderr.contains('\u{1b}') && output.stderr.lines().count() == 2, "{:?}", output.stderr);
}

#[test]
fn standard_input_holds_certificate_and_key() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let both = lineage.file("both.pem");
    std::fs::write(&both, lineage.read("fullchain.pem") + &lineage.read("privkey.pem")).unwrap();
    let piped = || {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&std::fs::read(&both).unwrap()).unwrap();
        Stdio::from(reader)
    };
    let inputs: [&dyn Fn() -> Stdio; 2] = [&|| std::fs::File::open(&both).unwrap().into(), &piped];
    for (flags, input) in [&["--cert", "-"][..], &["--cert", "-", "--key", "-"]]
        .into_iter()
        .flat_map(|flags| inputs.map(|input| (flags, input)))
    {
        let mut hook = edgecert().against(&service).args(flags).args(["--force"]);
        hook.command().stdin(input());
        let output = hook.succeeds();
        output.says("not recorded: it is from standard input");
        assert_eq!(output.state, "", "a later run could not read it");
    }
    let chain = lineage.file("fullchain.pem");
    let mut hook = edgecert().against(&service).args(["--force", "--key", "-", "--cert"]).args([chain]);
    hook.command().stdin(std::fs::File::open(lineage.file("privkey.pem")).unwrap());
    hook.succeeds();
    assert_eq!(service.certs().len(), 1);

    let other = Lineage::issued_for(&["a.example"]);
    std::fs::write(&both, lineage.read("fullchain.pem") + &other.read("privkey.pem")).unwrap();
    let mut check = edgecert().args(["check", "--cert", "-", "--key", "-"]);
    check.command().stdin(piped());
    check.exits_with(65).prints("is not the private key");
}
