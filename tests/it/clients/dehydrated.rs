//! dehydrated with edgecert as `HOOK`, the program that it calls for every operation, set by the command of the README.

use crate::harness::{Sandbox, sandbox, upload_count};
use crate::readme::{README, attach_command};

use super::{
    Client, ClientCertificate, Pebble, assert_later_wins, assert_sequence, client_of, served_record,
};

const DOMAINS: [&str; 2] = ["a.example", "www.a.example"];

/// A host with dehydrated, and the CA that issues to it.
struct Host {
    client: Client,
    _ca: Pebble,
}

impl Host {
    fn deploying_to(service: &Sandbox) -> Self {
        let ca = Pebble::start();
        let client = Client::new("dehydrated", "dehydrated").env("CURL_CA_BUNDLE", ca.ca_file());
        let client = client.deploying_to(service);
        client.write("web/empty", "");
        let (directory, base) = (ca.directory(), client.path_text("."));
        client.write(
            "config",
            &format!(
                "CA={directory}\nBASEDIR={base}\nWELLKNOWN={base}/web\n\
                 KEYSIZE=2048\nACCOUNT_KEYSIZE=2048\n"
            ),
        );
        let command = attach_command(README, "dehydrated").replace("/etc/dehydrated/config", "config");
        let client = client.with_hook_in_path();
        client.run_in_shell(&command).succeeds();
        // The path is stored: dehydrated's cron job may have another PATH.
        let client = client.with_short_pauses();
        client.run(["--config", "config", "--register", "--accept-terms"]).succeeds();
        Self { client, _ca: ca }
    }

    /// A certificate with its own alias, which names its directory.
    fn certificate(&self, alias: &'static str, algorithm: &'static str) -> ClientCertificate<'_> {
        let client = &self.client;
        let cron = move |options: &[&str]| {
            let domains = DOMAINS.join(" ");
            let arguments = ["--config", "config", "--cron", "--domain", &domains, "--alias", alias];
            client.run([&arguments, &["--algo", algorithm][..], options].concat())
        };
        let directory = client.path("certs").join(alias);
        ClientCertificate {
            client,
            files: ["fullchain.pem", "privkey.pem"].map(|name| directory.join(name)),
            issue: Box::new(move || cron(&[])),
            renew: Box::new(move || cron(&["--force"])),
        }
    }
}

#[test]
fn dehydrated_survives_failed_renewal() {
    let service = sandbox(&DOMAINS);
    let host = Host::deploying_to(&service);
    let certificate = host.certificate("a.example", "secp384r1");
    let failed = assert_sequence(&service, &certificate, &DOMAINS, "P-384", 1);
    let message = "deploy_cert hook returned with non-zero exit code";
    assert!(failed.stderr.contains(message), "{}", failed.stderr);
}

#[test]
fn dehydrated_keys_of_both_types_share_site() {
    let service = sandbox(&DOMAINS);
    let host = Host::deploying_to(&service);
    let certificates = [host.certificate("rsa", "rsa"), host.certificate("ec", "prime256v1")];
    assert_later_wins(&service, [&certificates[0], &certificates[1]], &DOMAINS);

    let uploads = upload_count(&service);
    for certificate in &certificates {
        // `unchanged_cert` of either.
        let output = certificate.issue().succeeds();
        assert!(output.stdout.contains("Skipping renew"), "{}", output.stdout);
    }
    assert_eq!(upload_count(&service), uploads, "unchanged_cert leaves the earlier certificate alone");
}

#[test]
fn next_dehydrated_run_retries_deployment() {
    let service = sandbox(&DOMAINS);
    let mut host = Host::deploying_to(&service);
    host.client = host.client.with_service_down();
    host.certificate("a.example", "rsa").issue().exits_with(1);
    assert_eq!(client_of(&host.client, "certs/a.example"), "dehydrated");

    let api = &service.endpoints().api;
    host.client = host.client.env("EDGECERT_BASE_URL", api).env("EDGECERT_TIMEOUT", "90");
    let certificate = host.certificate("a.example", "rsa");
    certificate.issue().succeeds();
    assert_eq!(served_record(&service, &DOMAINS).chain, certificate.chain());
}

/// dehydrated aborts if any operation fails, and treats the output of `generate_csr` as a CSR.
#[test]
fn other_dehydrated_operations_are_silent() {
    let service = sandbox(&DOMAINS);
    let host = Host::deploying_to(&service);
    let (hook, calls) = (host.client.hook(), host.client.path_text("calls"));
    let observed = host.client.script(
        "observed",
        &format!(
            "output=$({hook} \"$@\" 2>&1)\ncode=$?\necho \"$1 $code ${{#output}}\" >>{calls}\nexit $code\n"
        ),
    );
    let config = host.client.read("config");
    host.client.write("config", &format!("{config}\nHOOK={observed}\n"));
    for _ in 0..2 {
        host.certificate("a.example", "rsa").issue().succeeds();
    }

    let calls = host.client.read("calls");
    let (deployments, others): (Vec<&str>, Vec<&str>) = calls
        .lines()
        .partition(|call| call.starts_with("deploy_cert ") || call.starts_with("unchanged_cert "));
    let [first, second] = deployments.try_into().expect("two deployments");
    assert!(first.starts_with("deploy_cert 0 ") && second.starts_with("unchanged_cert 0 "), "{calls}");
    assert_ne!(first, "deploy_cert 0 0", "the report of the deployment");
    assert!(others.iter().all(|call| call.ends_with(" 0 0")), "{calls}");
    for operation in [
        "this_hookscript_is_broken__dehydrated_is_working_fine__please_ignore_unknown_hooks_in_your_script",
        "startup_hook",
        "generate_csr",
        "deploy_challenge",
        "clean_challenge",
        "sync_cert",
        "exit_hook",
    ] {
        assert!(others.iter().any(|call| call.starts_with(&format!("{operation} "))), "{operation}: {calls}");
    }
}
