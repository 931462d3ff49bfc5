//! dehydrated with the hook as `HOOK`: one program for every operation, without arguments of its own.

use std::fs;

use crate::harness::{Sandbox, edgecert, sandbox};

use super::{Client, Pebble, Ran, certificates, only_record, served_record};

/// dehydrated with a base directory of its own, and the CA that it renews from.
struct Dehydrated {
    client: Client,
    _ca: Pebble,
}

impl Dehydrated {
    /// `hook` is the value of `HOOK`, relative to the client's home.
    fn deploying_to(service: &Sandbox, hook: &str) -> Self {
        let ca = Pebble::start();
        let client = Client::new("dehydrated", "dehydrated").env("CURL_CA_BUNDLE", ca.ca_file());
        let client = client.deploying_to(service);
        fs::create_dir(client.path("web")).unwrap();
        client.write("domains.txt", "a.example www.a.example\n");
        let (directory, base) = (ca.directory(), client.named(""));
        let (web, hook) = (client.named("web"), client.named(hook));
        client.write(
            "config",
            &format!(
                "CA={directory}\nBASEDIR={base}\nWELLKNOWN={web}\nHOOK={hook}\n\
                 KEYSIZE=2048\nACCOUNT_KEYSIZE=2048\n"
            ),
        );
        client.run(["--config", "config", "--register", "--accept-terms"]).succeeds();
        Self { client, _ca: ca }
    }

    fn with_the_service_down(self) -> Self {
        Self { client: self.client.with_the_service_down(), ..self }
    }

    /// What its daily timer runs.
    fn cron(&self) -> Ran {
        self.client.run(["--config", "config", "--cron"])
    }

    fn chain(&self) -> Vec<String> {
        certificates(&self.client.read("certs/a.example/fullchain.pem"))
    }
}

#[test]
fn dehydrated_deploys_a_new_certificate_and_looks_after_an_unchanged_one() {
    let service = sandbox(&["a.example", "www.a.example"]);
    let dehydrated = Dehydrated::deploying_to(&service, "edgecert");

    let ran = dehydrated.cron().succeeds();
    assert!(ran.stdout.contains("created: true"), "{}", ran.stdout);
    let first = served_record(&service, &["a.example", "www.a.example"]);
    assert_eq!(first.chain, dehydrated.chain());

    let ran = dehydrated.cron().succeeds();
    assert!(ran.stdout.contains("Skipping renew"), "{}", ran.stdout);
    assert_eq!(served_record(&service, &["a.example", "www.a.example"]), first);
}

#[test]
fn a_deployment_that_failed_under_dehydrated_is_made_good_by_its_next_run() {
    let service = sandbox(&["a.example", "www.a.example"]);
    let dehydrated = Dehydrated::deploying_to(&service, "edgecert");
    let up = service.endpoints().api.clone();
    let dehydrated = dehydrated.with_the_service_down();
    let ran = dehydrated.cron().exits_with(1);
    assert!(ran.stderr.contains("deploy_cert hook returned with non-zero exit code"), "{}", ran.stderr);

    let client = dehydrated.client.env("EDGECERT_BASE_URL", up).env("EDGECERT_TIMEOUT", "90");
    let dehydrated = Dehydrated { client, ..dehydrated };
    dehydrated.cron().succeeds();
    assert_eq!(served_record(&service, &["a.example", "www.a.example"]).chain, dehydrated.chain());
}

/// dehydrated stops where an operation fails, and takes what `generate_csr` prints for a request.
#[test]
fn every_other_operation_of_dehydrated_succeeds_in_silence() {
    let service = sandbox(&["a.example"]);
    let dehydrated = Dehydrated::deploying_to(&service, "observed");
    let (hook, calls) = (dehydrated.client.named("edgecert"), dehydrated.client.named("calls"));
    let call =
        format!("said=$({hook} \"$@\" 2>&1)\ncode=$?\necho \"$1 $code ${{#said}}\" >>{calls}\nexit $code\n");
    dehydrated.client.script("observed", &call);
    dehydrated.cron().succeeds();
    dehydrated.cron().succeeds();

    let calls = dehydrated.client.read("calls");
    let (ours, others): (Vec<&str>, Vec<&str>) = calls
        .lines()
        .partition(|call| call.starts_with("deploy_cert ") || call.starts_with("unchanged_cert "));
    assert_eq!(ours.len(), 2, "{calls}");
    assert!(ours[0].starts_with("deploy_cert 0 ") && ours[1].starts_with("unchanged_cert 0 "), "{calls}");
    assert_ne!(ours[0], "deploy_cert 0 0", "the report of the deployment");
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

#[test]
fn the_directory_that_dehydrated_keeps_is_a_lineage() {
    let service = sandbox(&["a.example"]);
    let dehydrated = Dehydrated::deploying_to(&service, "none");
    dehydrated.client.script("none", "");
    dehydrated.cron().succeeds();
    let directory = dehydrated.client.path("certs/a.example");
    let output =
        edgecert().against(&service).args(["--json", "--allow-untrusted", "--lineage"]).args([directory]);
    assert_eq!(output.succeeds().json()["source"]["client"], "dehydrated");
    assert_eq!(only_record(&service).chain, dehydrated.chain());
}
