//! `hooks/certbot/edgecert` in certbot's directory of deploy hooks, and the commands at its head, with both versions of
//! certbot.

use std::fs;
use std::process::Command;

use crate::harness::{Sandbox, sandbox, upload_count};

use super::certbot::{Certbot, NAME, VERSIONS};
use super::recipe_file::{command, commands};
use super::{only_record, served_record};

const RECIPE: &str = "certbot/edgecert";

/// Installs the directory hook with the command at its head.
fn with_directory_hook(certbot: Certbot) -> Certbot {
    let install =
        command(RECIPE, "install ").replace("/etc/letsencrypt", &certbot.client.path_text("config"));
    let mut shell = Command::new("sh");
    let status = shell.args(["-c", &install]).current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap();
    assert!(status.success(), "{install}");
    let program = certbot.client.hook();
    certbot.env("EDGECERT_BIN", &program)
}

/// Runs a command at the head of the recipe for the lineage of these tests.
fn run(certbot: &Certbot, command: &str, options: &[&str]) {
    let command = command.replace("\"$(command -v edgecert)\"", &certbot.client.hook());
    let command = command.replace("--cert-name example.com", &format!("--cert-name {NAME}"));
    let command = command.replace("example.com", "a.example");
    let words: Vec<&str> = command.split(' ').collect();
    certbot.run(&words[1..], options).succeeds();
}

/// How often certbot reports the output of a hook.
fn hook_count(output: &str) -> usize {
    output.matches("ran with output").count()
}

#[test]
fn two_hooks_upload_once() {
    for version in VERSIONS {
        let service = sandbox(&["a.example"]);
        let certbot = with_directory_hook(version(&service));
        let output = certbot.certonly(&[], &["a.example"]).succeeds();
        let runs_directory_at_first = certbot.version() >= (5, 3);
        assert_eq!(hook_count(&output.stdout), 1 + usize::from(runs_directory_at_first), "{}", output.stdout);
        assert_eq!(upload_count(&service), 1);
        let first = served_record(&service, &["a.example"]);

        let output = certbot.renew(&[]).succeeds();
        assert_eq!(hook_count(&output.stdout), 2, "{}", output.stdout);
        assert!(!output.stderr.contains("reported error"), "{}", output.stderr);
        assert_eq!(upload_count(&service), 2, "{}", output.stdout);
        let renewed = served_record(&service, &["a.example"]);
        assert_eq!((renewed.id, &renewed.chain), (first.id, &certbot.chain()));
    }
}

#[test]
fn directory_hook_skips_certificates_without_site() {
    for version in VERSIONS {
        let service = sandbox(&["a.example"]);
        let certbot = with_directory_hook(version(&service));
        let order = |name: &str| {
            certbot.certonly(&["--deploy-hook", "true", "--cert-name", name], &[name]).succeeds();
        };
        order("a.example");
        order("mail.example");
        let output = certbot.renew(&[]).succeeds();
        assert!(!output.stderr.contains("reported error"), "{}", output.stderr);
        assert_eq!(only_record(&service).chain, certbot.chain_of("a.example"));
        let uploads = upload_count(&service);

        // certbot ignores names that end in ~.
        let hook = certbot.client.path("config/renewal-hooks/deploy/edgecert");
        fs::rename(&hook, hook.with_file_name("edgecert~")).unwrap();
        let output = certbot.renew(&[]).succeeds();
        assert_eq!((hook_count(&output.stdout), upload_count(&service)), (0, uploads), "{}", output.stdout);
    }
}

/// A certificate that was ordered before, with another hook.
fn ordered_before(certbot: &Certbot) {
    certbot.certonly(&["--deploy-hook", "true"], &["a.example"]).succeeds();
}

#[test]
fn commands_attach_one_certificate() {
    let authenticate =
        ["--manual", "--preferred-challenges", "dns", "--manual-auth-hook", "true", "--cert-name", NAME];
    let attached = |certbot: &Certbot, service: &Sandbox| {
        certbot.renew(&[]).succeeds();
        assert_eq!(served_record(service, &["a.example"]).chain, certbot.chain());
    };
    assert_eq!(commands(RECIPE).len(), 5, "each of them is run here");
    for version in VERSIONS {
        let service = sandbox(&["a.example"]);
        let certbot = version(&service);
        let directory = certbot.directory();
        let account = ["--non-interactive", "--agree-tos", "--register-unsafely-without-email", "--server"];
        let order = [&account[..], &[&directory], &authenticate].concat();
        run(&certbot, &command(RECIPE, "certbot certonly "), &order);
        assert_eq!(upload_count(&service), 1);
        attached(&certbot, &service);

        let service = sandbox(&["a.example"]);
        let certbot = version(&service);
        ordered_before(&certbot);
        if certbot.version() >= (2, 3) {
            run(&certbot, &command(RECIPE, "certbot reconfigure "), &["--non-interactive"]);
            assert_eq!(upload_count(&service), 0);
        } else {
            run(&certbot, &command(RECIPE, "certbot renew "), &["--no-random-sleep-on-renew"]);
            assert_eq!(upload_count(&service), 1);
        }
        attached(&certbot, &service);

        let service = sandbox(&["a.example"]);
        let certbot = version(&service);
        ordered_before(&certbot);
        let by_hand = command(RECIPE, "edgecert ").replace("/etc/letsencrypt", "config");
        let by_hand = by_hand.replace("example.com", NAME);
        certbot.client.run_in_shell(&format!("./{by_hand}")).succeeds();
        assert_eq!(served_record(&service, &["a.example"]).chain, certbot.chain());
    }
}
