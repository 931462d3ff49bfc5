//! dehydrated with the hook as `HOOK`, the program that it calls for every operation.

use std::fs;

use crate::harness::{Sandbox, edgecert, sandbox};

use super::{Client, ClientOutput, Pebble, certificates, only_record, served_record};

/// dehydrated with its own base directory, and the CA that issues to it.
struct Dehydrated {
    client: Client,
    _ca: Pebble,
}

impl Dehydrated {
    /// Registers an account; `hook` is the value of `HOOK`, relative to the client's home.
    fn deploying_to(service: &Sandbox, hook: &str) -> Self {
        let ca = Pebble::start();
        let client = Client::new("dehydrated", "dehydrated").env("CURL_CA_BUNDLE", ca.ca_file());
        let client = client.deploying_to(service);
        fs::create_dir(client.path("web")).unwrap();
        client.write("domains.txt", "a.example www.a.example\n");
        let (directory, base) = (ca.directory(), client.path_text(""));
        let (web, hook) = (client.path_text("web"), client.path_text(hook));
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

    fn with_service_down(self) -> Self {
        Self { client: self.client.with_service_down(), ..self }
    }

    /// Runs `dehydrated --cron`.
    fn cron(&self) -> ClientOutput {
        self.client.run(["--config", "config", "--cron"])
    }

    fn chain(&self) -> Vec<String> {
        certificates(&self.client.read("certs/a.example/fullchain.pem"))
    }
}

#[test]
fn dehydrated_deploys_and_keeps_unchanged() {
    let service = sandbox(&["a.example", "www.a.example"]);
    let dehydrated = Dehydrated::deploying_to(&service, "edgecert");

    let output = dehydrated.cron().succeeds();
    assert!(output.stdout.contains("(created), bound to "), "{}", output.stdout);
    let first = served_record(&service, &["a.example", "www.a.example"]);
    assert_eq!(first.chain, dehydrated.chain());

    let output = dehydrated.cron().succeeds();
    assert!(output.stdout.contains("Skipping renew"), "{}", output.stdout);
    assert_eq!(served_record(&service, &["a.example", "www.a.example"]), first);
}

#[test]
fn next_dehydrated_run_retries_deployment() {
    let service = sandbox(&["a.example", "www.a.example"]);
    let dehydrated = Dehydrated::deploying_to(&service, "edgecert");
    let api = service.endpoints().api.clone();
    let dehydrated = dehydrated.with_service_down();
    let output = dehydrated.cron().exits_with(1);
    assert!(output.stderr.contains("deploy_cert hook returned with non-zero exit code"), "{}", output.stderr);

    let client = dehydrated.client.env("EDGECERT_BASE_URL", api).env("EDGECERT_TIMEOUT", "90");
    let dehydrated = Dehydrated { client, ..dehydrated };
    dehydrated.cron().succeeds();
    assert_eq!(served_record(&service, &["a.example", "www.a.example"]).chain, dehydrated.chain());
}

/// dehydrated aborts if any operation fails, and treats the output of `generate_csr` as a CSR.
#[test]
fn other_dehydrated_operations_are_silent() {
    let service = sandbox(&["a.example"]);
    let dehydrated = Dehydrated::deploying_to(&service, "observed");
    let (hook, calls) = (dehydrated.client.hook(), dehydrated.client.path_text("calls"));
    let call = format!(
        "output=$({hook} \"$@\" 2>&1)\ncode=$?\necho \"$1 $code ${{#output}}\" >>{calls}\nexit $code\n"
    );
    dehydrated.client.script("observed", &call);
    dehydrated.cron().succeeds();
    dehydrated.cron().succeeds();

    let calls = dehydrated.client.read("calls");
    let (deployments, others): (Vec<&str>, Vec<&str>) = calls
        .lines()
        .partition(|call| call.starts_with("deploy_cert ") || call.starts_with("unchanged_cert "));
    assert_eq!(deployments.len(), 2, "{calls}");
    assert!(
        deployments[0].starts_with("deploy_cert 0 ") && deployments[1].starts_with("unchanged_cert 0 "),
        "{calls}"
    );
    assert_ne!(deployments[0], "deploy_cert 0 0", "the report of the deployment");
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
fn dehydrated_directory_is_a_lineage() {
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
