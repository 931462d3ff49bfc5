//! Several accounts and many lineages in one configuration: targets of one lineage, patterns of paths.

use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use edgecert_sandbox::Sandbox;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    API_KEY, Fault, Hook, LISTING, Lineage, edgecert, is_bound_to, request_lines, requests_during, sandbox,
    sandbox_with, state_files, test_ca, upload_count, world,
};

/// A host with a configuration file, a state directory and certificates in `live`.
struct Host {
    root: TempDir,
    configuration: String,
}

impl Host {
    fn new() -> Self {
        Self { root: TempDir::new().unwrap(), configuration: String::new() }
    }

    /// A host with an entry for the lineage and each of these services.
    fn with_entries(lineage: &Lineage, services: [&Sandbox; 2]) -> Self {
        let mut host = Self::new();
        for service in services {
            host.entry(lineage.path(), service, API_KEY);
        }
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Issues a certificate to this directory.
    fn issue(&self, directory: &str, domain: &str) {
        let directory = self.path(directory);
        fs::create_dir_all(&directory).unwrap();
        let issued = test_ca().issue(&[domain]).unwrap();
        fs::write(directory.join("fullchain.pem"), issued.fullchain()).unwrap();
        let key = directory.join("privkey.pem");
        fs::write(&key, &issued.key).unwrap();
        fs::set_permissions(key, Permissions::from_mode(0o600)).unwrap();
    }

    /// Adds an entry for a path and an account of this service.
    fn entry(&mut self, path: &Path, service: &Sandbox, key: &str) {
        let file = self.path(&format!("key-{}", self.configuration.len()));
        fs::write(&file, key).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let endpoints = service.endpoints();
        let _ = write!(
            self.configuration,
            "[[lineage]]\npath = '{}'\nbase_url = '{}'\napi_key_file = '{}'\nedge_address = '{}'\n",
            path.display(),
            endpoints.api,
            file.display(),
            endpoints.edge
        );
    }

    /// A run with the configuration, and without variables that name a service.
    fn hook(&self) -> Hook {
        let config = self.path("config.toml");
        fs::write(&config, &self.configuration).unwrap();
        edgecert().env("EDGECERT_STATE_DIR", self.path("state")).env("EDGECERT_CONFIG", config)
    }

    fn sync(&self) -> Hook {
        self.hook().args(["sync", "--json"])
    }
}

/// The sites of a report, as `SERVICE DOMAIN OUTCOME`.
fn sites(report: &Value) -> Vec<String> {
    let sites = report["sites"].as_array().unwrap().iter();
    let text = |site: &Value, name: &str| site[name].as_str().unwrap_or_default().to_owned();
    sites.map(|site| ["service", "domain", "outcome"].map(|name| text(site, name)).join(" ")).collect()
}

#[test]
fn hook_deploys_to_each_account() {
    let (first, second) = (sandbox(&["a.example"]), sandbox(&["a.example", "b.example"]));
    let lineage = Lineage::issued_for(&["a.example"]);
    let host = Host::with_entries(&lineage, [&first, &second]);
    let output = host.hook().called_by_certbot(&lineage).args(["--json"]).succeeds();
    let served = [&first, &second].map(|service| format!("{} a.example served", service.endpoints().api));
    assert_eq!(sites(&output.json()), served, "{}", output.stderr);
    for service in [&first, &second] {
        assert!(is_bound_to(service, "a.example", &lineage));
    }
    assert_eq!(state_files(&host.path("state")).len(), 2);

    let again = host.hook().called_by_certbot(&lineage).args(["--json"]).succeeds();
    assert_eq!(again.json()["changed"], false);
    assert_eq!((upload_count(&first), upload_count(&second)), (1, 1));
    let shown = host.hook().called_by_certbot(&lineage).succeeds().stdout;
    assert!(shown.contains(&format!("a.example at {}", second.endpoints().api)), "{shown}");
}

#[test]
fn account_that_fails_is_finished_by_sync() {
    let (first, second) = (sandbox(&["a.example"]), sandbox(&["a.example"]));
    let lineage = Lineage::issued_for(&["a.example"]);
    let host = Host::with_entries(&lineage, [&first, &second]);
    second.add_fault(Fault::status("POST /api/certs/upload", 503).header("Retry-After", "3600").times(9));
    let failed = host.hook().called_by_certbot(&lineage).args(["--json"]).exits_with(75);
    let report = failed.json();
    let error = report["error"].as_str().unwrap();
    assert!(error.starts_with(&second.endpoints().api), "{error}");
    assert!(is_bound_to(&first, "a.example", &lineage));
    second.clear_faults();
    let (requests, output) = requests_during(&first, || host.sync().succeeds());
    assert_eq!(requests, LISTING, "nothing is left to do for this account");
    assert_eq!(output.json()["counts"]["deployed"], 1);
    assert!(is_bound_to(&second, "a.example", &lineage));
}

/// Whatever one service answers, `sync` deploys to the others.
#[test]
fn mad_service_stops_no_other_account() {
    let upload = |body: Value| Fault::status("POST /api/certs/upload", 200).body(body);
    let pause = |path: &str| Fault::status(path, 429).header("Retry-After", "18446744073709551615");
    let rows = [
        (pause("GET /api/me/sites"), 75),
        (Fault::status("GET /api/me/sites", 200).body("[".repeat(100_000)), 76),
        (upload(json!({"ok": true, "id": u64::MAX, "created": true, "not_after": -62_167_219_201_i64})), 69),
        (upload(json!({"ok": true, "id": 1e308})), 76),
    ];
    for (fault, code) in rows {
        let (first, second) = (sandbox(&["a.example"]), sandbox(&["a.example"]));
        let lineage = Lineage::issued_for(&["a.example"]);
        let host = Host::with_entries(&lineage, [&first, &second]);
        let name = format!("{fault:.200?}");
        first.add_fault(fault.times(99));
        let output = host.sync().args(["--timeout", "20", "--wait", "5"]).run();
        assert_eq!(output.code, code, "{name}: {}", output.stderr);
        assert!(is_bound_to(&second, "a.example", &lineage), "{name}");
    }
}

#[test]
fn finding_about_the_files_is_told_once() {
    let (first, second) = (sandbox(&["a.example"]), sandbox(&["a.example"]));
    let lineage = Lineage::issued_for(&["a.example"]);
    lineage.write("privkey.pem", &Lineage::issued_for(&["a.example"]).read("privkey.pem"));
    let host = Host::with_entries(&lineage, [&first, &second]);
    let output = host.hook().called_by_certbot(&lineage).exits_with(65);
    assert_eq!(output.stderr.matches("edgecert: error:").count(), 1, "{}", output.stderr);
}

#[test]
fn key_in_the_environment_stays_with_its_service() {
    let (first, second) = (sandbox(&["a.example"]), sandbox_with_key("other-key", &["a.example"]));
    let lineage = Lineage::issued_for(&["a.example"]);
    let mut host = Host::new();
    host.configuration = format!("base_url = {:?}\n", first.endpoints().api);
    host.entry(lineage.path(), &second, "other-key");
    let hook = || host.hook().called_by_certbot(&lineage).env("EDGECERT_API_KEY", API_KEY);
    hook().succeeds();
    assert!(is_bound_to(&second, "a.example", &lineage));
    // A variable that names the service comes before the entry, and brings its own key.
    let edge = &first.endpoints().edge;
    let overridden =
        hook().env("EDGECERT_BASE_URL", &first.endpoints().api).env("EDGECERT_EDGE_ADDRESS", edge);
    overridden.succeeds();
    assert!(is_bound_to(&first, "a.example", &lineage));
    assert_eq!(upload_count(&second), 1);
}

fn sandbox_with_key(key: &str, domains: &[&str]) -> Sandbox {
    let mut world = serde_json::to_value(world(json!({}))).unwrap();
    world["accounts"][0]["api_keys"] = json!([key]);
    let world = serde_json::from_value(world).unwrap();
    sandbox_with(crate::harness::Options { world, ..Default::default() }, domains)
}

#[test]
fn one_account_may_have_several_targets() {
    let service = sandbox(&["a.example", "b.example", "c.example"]);
    let lineage = Lineage::issued_for(&["a.example", "b.example", "c.example"]);
    let mut host = Host::new();
    for domains in ["['a.example']\nwait = 0", "['b.example']"] {
        host.entry(lineage.path(), &service, API_KEY);
        // The same key file, so that it is the same account.
        let file = host.path("key-0");
        let _ = writeln!(host.configuration, "domains = {domains}");
        let start = host.configuration.rfind("[[lineage]]").unwrap();
        let entry = host.configuration.split_off(start);
        let lines = entry.lines().map(|line| match line.split_once(" = ") {
            Some(("api_key_file", _)) => format!("api_key_file = '{}'\n", file.display()),
            _ => format!("{line}\n"),
        });
        host.configuration.extend(lines.collect::<Vec<_>>());
    }
    let report = host.hook().called_by_certbot(&lineage).args(["--json"]).succeeds().json();
    let sent: Vec<&Value> =
        report["uploads"].as_array().unwrap().iter().map(|upload| &upload["domain"]).collect();
    assert_eq!(sent, ["a.example"], "the service has bound the other site to the same record");
    let bound = ["a.example", "b.example"].map(|domain| is_bound_to(&service, domain, &lineage));
    assert_eq!(bound, [true, true]);
    assert_eq!(state_files(&host.path("state")).len(), 2);
}

#[test]
fn reports_tell_accounts_by_key_file() {
    let service = two_accounts(["a.example", "b.example"]);
    let lineage = Lineage::issued_for(&["a.example", "b.example"]);
    let mut host = Host::new();
    host.entry(lineage.path(), &service, API_KEY);
    host.entry(lineage.path(), &service, "other-key");
    let url = &service.endpoints().api;
    let files = fs::read_dir(host.root.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut labels: Vec<_> = files.map(|file| format!("{url} with {}", file.display())).collect();
    labels.sort_by_key(String::len);

    let plan = host.hook().called_by_certbot(&lineage).args(["plan", "--json"]).succeeds().json();
    let steps = plan["plan"].as_array().unwrap().iter();
    let steps: Vec<_> = steps.map(|step| (&step["service"], &step["domain"])).collect();
    let [first, second] = [0, 1].map(|at| json!(labels[at]));
    assert_eq!(steps, [(&first, &json!("a.example")), (&second, &json!("b.example"))]);
    let serving = plan["serving"].as_array().unwrap();
    assert_eq!([&serving[0]["service"], &serving[1]["service"]], [&first, &second]);
    let shown = host.hook().called_by_certbot(&lineage).args(["plan"]).succeeds().stdout;
    assert!(labels.iter().all(|label| shown.contains(&format!("; at {label}\n"))), "{shown}");

    let report = host.hook().called_by_certbot(&lineage).args(["--json"]).succeeds().json();
    let served = [(&labels[0], "a.example"), (&labels[1], "b.example")];
    assert_eq!(sites(&report), served.map(|(label, domain)| format!("{label} {domain} served")));
    let again = host.hook().called_by_certbot(&lineage).args(["plan"]).succeeds().stdout;
    assert!(labels.iter().all(|label| again.contains(&format!("; at {label}\n"))), "{again}");
}

/// A sandbox with a second account, whose key is `other-key`, and a site for each.
fn two_accounts([first, second]: [&str; 2]) -> Sandbox {
    let site = |id: u64, account: u64, domain: &str| json!({"id": id, "account": account, "domain": domain});
    let mut world = serde_json::to_value(world(json!({}))).unwrap();
    let mut other = world["accounts"][0].clone();
    other["id"] = json!(2);
    other["packages"][0]["id"] = json!(2);
    other["api_keys"] = json!(["other-key"]);
    world["accounts"].as_array_mut().unwrap().push(other);
    world["sites"] = json!([site(1, 1, first), site(2, 2, second)]);
    let world = serde_json::from_value(world).unwrap();
    sandbox_with(crate::harness::Options { world, ..Default::default() }, &[])
}

#[test]
fn unchanged_cert_deploys_where_it_was_never_deployed() {
    let (first, second) = (sandbox(&["a.example"]), sandbox(&["a.example"]));
    let lineage = Lineage::issued_for(&["a.example"]);
    let mut host = Host::new();
    host.entry(lineage.path(), &first, API_KEY);
    let call = |host: &Host, operation: &str| {
        let files = ["privkey.pem", "cert.pem", "fullchain.pem", "chain.pem"].map(|name| lineage.file(name));
        host.hook().args([operation, "a.example"]).args(files).args(["1700000000"])
    };
    call(&host, "deploy_cert").succeeds();
    host.entry(lineage.path(), &second, API_KEY);
    let (requests, _) = requests_during(&first, || call(&host, "unchanged_cert").succeeds());
    assert_eq!(requests, LISTING, "nothing is left to do for this account");
    assert!(is_bound_to(&second, "a.example", &lineage));
}

#[test]
fn failure_of_one_account_is_reported_once() {
    let (first, second) = (sandbox_with_key("first-key", &["a.example"]), sandbox(&["a.example"]));
    let lineage = Lineage::issued_for(&["a.example"]);
    let mut host = Host::new();
    let report = host.path("report");
    let program = host.path("on-failure");
    fs::write(&program, format!("#!/bin/sh\ncat >>{}\n", report.display())).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o700)).unwrap();
    host.configuration = format!("on_failure = [{:?}]\n", program.display().to_string());
    // The first service rejects this key.
    host.entry(lineage.path(), &first, "revoked-key");
    host.entry(lineage.path(), &second, API_KEY);
    let output = host.hook().called_by_certbot(&lineage).exits_with(77);
    assert!(is_bound_to(&second, "a.example", &lineage), "{}", output.stderr);
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    let error = report["error"].as_str().unwrap();
    assert!(error.starts_with(&first.endpoints().api), "{error}");
    assert_eq!(sites(&report), [format!("{} a.example served", second.endpoints().api)]);
    assert!(!output.stderr.contains("revoked-key") && !report.to_string().contains("revoked-key"));
}

#[test]
fn target_without_an_entry_is_deployed_nowhere() {
    let (first, second) = (sandbox(&["a.example"]), sandbox_with_key("other-key", &["a.example"]));
    let lineage = Lineage::issued_for(&["a.example"]);
    let mut host = Host::new();
    let top =
        format!("base_url = {:?}\nedge_address = {:?}\n", first.endpoints().api, first.endpoints().edge);
    host.configuration.clone_from(&top);
    host.entry(lineage.path(), &second, "other-key");
    host.hook().called_by_certbot(&lineage).succeeds();
    assert!(is_bound_to(&second, "a.example", &lineage));

    host.configuration = top;
    lineage.renew(&["a.example"]);
    let output = host.sync().env("EDGECERT_API_KEY", API_KEY).succeeds();
    assert_eq!((upload_count(&first), upload_count(&second)), (0, 1), "{}", output.stdout);
    let warnings = output.json()["warnings"].to_string();
    assert!(warnings.contains("no [[lineage]]") && warnings.contains("--forget"), "{warnings}");
}

#[test]
fn lineage_moves_to_account_of_its_entry() {
    let (first, second) = (sandbox(&["a.example"]), sandbox_with_key("other-key", &["a.example"]));
    let lineage = Lineage::issued_for(&["a.example"]);
    let mut host = Host::new();
    host.configuration =
        format!("base_url = {:?}\nedge_address = {:?}\n", first.endpoints().api, first.endpoints().edge);
    host.hook().called_by_certbot(&lineage).env("EDGECERT_API_KEY", API_KEY).succeeds();
    assert!(is_bound_to(&first, "a.example", &lineage));

    host.entry(lineage.path(), &second, "other-key");
    lineage.renew(&["a.example"]);
    host.hook().called_by_certbot(&lineage).env("EDGECERT_API_KEY", API_KEY).succeeds();
    assert!(is_bound_to(&second, "a.example", &lineage));
    let output = host.sync().env("EDGECERT_API_KEY", API_KEY).succeeds();
    assert_eq!((upload_count(&first), upload_count(&second)), (1, 1), "sync does what the hook does");
    let warnings = output.json()["warnings"].to_string();
    assert!(warnings.contains("is left alone, because no [[lineage]]"), "{warnings}");
}

#[test]
fn spelling_of_key_file_does_not_matter() {
    let service = sandbox(&["a.example"]);
    let lineage = Lineage::issued_for(&["a.example"]);
    let mut host = Host::new();
    host.entry(lineage.path(), &service, API_KEY);
    host.sync().succeeds();
    host.configuration = host.configuration.replace("/key-", "/.//key-");
    let output = host.sync().succeeds();
    assert_eq!(
        (output.json()["counts"]["unchanged"].as_u64(), output.json()["warnings"].as_array()),
        (Some(1), Some(&vec![]))
    );
    assert_eq!(state_files(&host.path("state")).len(), 1);
}

#[test]
fn lineages_to_forget_name_their_accounts() {
    let (first, second) = (sandbox(&["a.example"]), sandbox(&["a.example"]));
    let lineage = Lineage::issued_for(&["a.example"]);
    let host = Host::with_entries(&lineage, [&first, &second]);
    host.hook().called_by_certbot(&lineage).succeeds();
    let stderr = host.hook().args(["status", "--forget"]).args([lineage.path()]).exits_with(66).stderr;
    for service in [&first, &second] {
        assert!(stderr.contains(&format!(" (for {} ", service.endpoints().api)), "{stderr}");
    }
}

/// An account whose service does not respond must not delay the others.
#[test]
fn accounts_are_listed_at_once() {
    let service = sandbox(&["a.example", "b.example"]);
    let mut host = Host::new();
    for domain in ["a.example", "b.example"] {
        host.issue(&format!("live/{domain}"), domain);
        host.entry(&host.path(&format!("live/{domain}")), &service, API_KEY);
    }
    // The same service under two names, and so with one log of both accounts.
    let (first, second) = host.configuration.split_at(host.configuration.rfind("[[lineage]]").unwrap());
    host.configuration = format!("{first}{}", second.replacen("127.0.0.1", "localhost", 1));
    service.add_fault(Fault::status("GET /api/me/sites", 503).times(4));
    host.sync().succeeds();
    let requests = request_lines(&service);
    let place = |line: &str, number: usize| {
        let mut places = requests.iter().enumerate().filter(|(_, request)| *request == line);
        places.nth(number).unwrap().0
    };
    assert!(place("GET /api/certs", 1) < place("GET /api/me/sites", 4), "{requests:?}");
}

/// The wildcard is in the entry, not in the directory of the configuration file.
#[test]
fn pattern_is_relative_to_configuration_file() {
    let service = sandbox(&["a.example", "b.example"]);
    let mut host = Host::new();
    host.issue("[ab]*/live/a.example", "a.example");
    host.issue("a/live/b.example", "b.example");
    host.entry(Path::new("live/*"), &service, API_KEY);
    host.hook();
    let config = host.path("[ab]*/config.toml");
    fs::rename(host.path("config.toml"), &config).unwrap();
    host.sync().env("EDGECERT_CONFIG", config).succeeds();
    assert_eq!(upload_count(&service), 1);
    assert_eq!(service.certs()[0]["domain"], "a.example");
}

#[test]
fn invalid_configuration_adds_no_account() {
    let (first, second) = (sandbox(&["a.example"]), sandbox_with_key("other-key", &["a.example"]));
    let lineage = Lineage::issued_for(&["a.example"]);
    let mut host = Host::new();
    host.configuration =
        format!("base_url = {:?}\nedge_address = {:?}\n", first.endpoints().api, first.endpoints().edge);
    host.entry(lineage.path(), &second, "other-key");
    let valid = host.configuration.clone();
    host.configuration += "basurl = 1\n";
    host.hook().called_by_certbot(&lineage).exits_with(78);
    host.configuration = valid;
    let output = host.sync().env("EDGECERT_API_KEY", API_KEY).succeeds();
    assert!(is_bound_to(&second, "a.example", &lineage), "{}", output.stdout);
    assert_eq!(upload_count(&first), 0, "{}", output.stdout);
}

#[test]
fn doctor_and_status_know_each_account() {
    let (first, second) = (sandbox(&["a.example"]), sandbox(&["a.example", "b.example"]));
    let lineage = Lineage::issued_for(&["a.example"]);
    let host = Host::with_entries(&lineage, [&first, &second]);
    host.hook().called_by_certbot(&lineage).succeeds();
    let status = host.hook().args(["status", "--json"]).succeeds().json();
    assert_eq!(status["lineages"].as_array().unwrap().len(), 2, "{status:#}");

    let doctor = |hook: Hook| {
        let report = hook.args(["doctor", "--json"]).run().json();
        let findings = report["findings"].as_array().unwrap().clone();
        let of = |url: &str| -> Vec<String> {
            let own = findings.iter().filter(|finding| finding["detail"].as_str().unwrap().contains(url));
            own.map(|finding| format!("{} {}", finding["status"], finding["detail"])).collect()
        };
        (of(&first.endpoints().api), of(&second.endpoints().api), findings)
    };
    let (one, two, all) = doctor(host.hook());
    assert!(one.iter().any(|finding| finding.contains("reachable; 1 site")), "{all:#?}");
    assert!(two.iter().any(|finding| finding.contains("reachable; 2 sites")), "{all:#?}");
    assert!(two.iter().any(|finding| finding.contains("b.example")), "the uncovered site: {all:#?}");
    assert!(!all.iter().any(|finding| finding["detail"] == "no base URL is set"), "{all:#?}");
    let (.., all) = doctor(host.hook().env("EDGECERT_BASE_URL", &first.endpoints().api));
    let is_told = |finding: &Value| {
        finding["detail"].as_str().unwrap().contains("overrides the base_url in 1 of the [[lineage]] entries")
    };
    assert!(all.iter().any(is_told), "{all:#?}");
}

#[test]
fn doctor_warns_of_key_for_other_service() {
    let (first, second) = (sandbox(&["a.example"]), sandbox(&["a.example"]));
    let lineage = Lineage::issued_for(&["a.example"]);
    let mut host = Host::new();
    host.entry(lineage.path(), &second, API_KEY);
    let key = host.path("key-0");
    let entry = host.configuration.replace("api_key_file", "# api_key_file");
    let top =
        format!("base_url = {:?}\napi_key_file = {:?}\n", first.endpoints().api, key.display().to_string());
    let warned = format!("sends the API key in {} to {}", key.display(), second.endpoints().api);
    for (entry, is_warned) in [(host.configuration.clone(), false), (entry, true)] {
        host.configuration = format!("{top}{entry}");
        let shown = host.hook().args(["doctor"]).run().stdout;
        assert_eq!(shown.contains(&warned), is_warned, "{shown}");
    }
}

#[test]
fn pattern_deploys_new_lineages() {
    let service = sandbox(&["a.example", "b.example", "c.example"]);
    let mut host = Host::new();
    host.issue("live/a", "a.example");
    fs::write(host.path("live/README"), "This directory contains your keys and certificates.\n").unwrap();
    fs::create_dir(host.path("live/empty")).unwrap();
    host.entry(&host.path("live/*"), &service, API_KEY);
    let output = host.sync().succeeds();
    assert_eq!(output.json()["counts"]["total"], 1, "what is no lineage is left out: {}", output.stderr);
    assert_eq!(output.json()["warnings"], json!([]));

    host.issue("live/b", "b.example");
    let output = host.sync().succeeds();
    let counts = json!({"total": 2, "unchanged": 1, "deployed": 1, "failed": 0, "gone": 0, "superseded": 0});
    assert_eq!(output.json()["counts"], counts);

    // The hook takes the settings of the pattern.
    host.issue("live/c", "c.example");
    host.hook().env("RENEWED_LINEAGE", host.path("live/c")).env("RENEWED_DOMAINS", "c.example").succeeds();
    assert_eq!(upload_count(&service), 3);

    fs::remove_file(host.path("live/a/privkey.pem")).unwrap();
    fs::write(host.path("live/a/fullchain.pem"), "broken").unwrap();
    let broken = host.sync().run();
    assert_ne!(broken.code, 0, "{}", broken.stdout);
    assert_eq!(broken.json()["counts"]["failed"], 1);
}

#[test]
fn entry_of_one_lineage_comes_before_a_pattern() {
    let service = sandbox(&["a.example", "www.a.example"]);
    let mut host = Host::new();
    host.issue("live/a", "*.a.example");
    host.configuration = format!("base_url = {:?}\n", service.endpoints().api);
    let _ = writeln!(host.configuration, "edge_address = {:?}", service.endpoints().edge);
    let live = host.path("live");
    let _ = write!(host.configuration, "[[lineage]]\npath = '{}/*'\n", live.display());
    let _ = write!(
        host.configuration,
        "[[lineage]]\npath = '{}/a'\ndomains = ['none.example']\n",
        live.display()
    );
    let failed = host.sync().env("EDGECERT_API_KEY", API_KEY).run();
    assert!(failed.stdout.contains("none.example"), "{}", failed.stdout);
    assert_eq!(upload_count(&service), 0);
}

#[test]
fn directory_named_like_a_pattern_is_no_pattern() {
    let service = sandbox(&["a.example", "b.a.example"]);
    let mut host = Host::new();
    host.issue("acme/*.a.example_ecc", "*.a.example");
    host.issue("acme/b.a.example_ecc", "a.example");
    host.entry(&host.path("acme/*.a.example_ecc"), &service, API_KEY);
    let output = host.sync().succeeds();
    assert_eq!(output.json()["counts"]["total"], 1);
    assert_eq!(upload_count(&service), 1);
}

/// A way in which a server that renews certificates itself writes them: its name, and the files for certificate and key.
/// If both are the same, it holds both.
type Dump = (&'static str, [&'static str; 2]);

/// In the order of the reference's table.
const DUMPS: [Dump; 7] = [
    (
        "certbot",
        ["etc/letsencrypt/live/a.example/fullchain.pem", "etc/letsencrypt/live/a.example/privkey.pem"],
    ),
    (
        "Caddy",
        [
            "var/lib/caddy/.local/share/caddy/certificates/ca/a.example/a.example.crt",
            "var/lib/caddy/.local/share/caddy/certificates/ca/a.example/a.example.key",
        ],
    ),
    ("Traefik", ["DIR/certs/a.example.crt", "DIR/private/a.example.key"]),
    ("Traefik", ["DIR/a.example/certificate.crt", "DIR/a.example/privatekey.key"]),
    ("HAProxy", ["DIR/a.example.pem", "DIR/a.example.pem"]),
    ("nginx", ["DIR/acme_le/a.example-1f.crt", "DIR/acme_le/a.example-1f.key"]),
    ("mounted", ["certs/a.example/tls.crt", "certs/a.example/tls.key"]),
];

/// The servers and patterns in the reference's table, each pattern below the directory of the test's host.
fn patterns_of_reference() -> Vec<(String, String)> {
    let reference = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/hooks/README.md")).unwrap();
    let table = reference.split("| Server | `path` |\n|---|---|\n").nth(1).unwrap();
    let rows = table.lines().map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let patterns = rows.flat_map(|(server, cell)| {
        let spans = cell.split('`').skip(1).step_by(2).filter(|span| span.contains('/'));
        spans.map(|span| (server.to_owned(), span.trim_start_matches('/').to_owned()))
    });
    patterns.collect()
}

#[test]
fn dumps_of_servers_are_lineages() {
    let patterns = patterns_of_reference();
    assert_eq!(patterns.len(), DUMPS.len(), "{patterns:?}");
    for ((server, pattern), (name, [cert, key])) in patterns.into_iter().zip(DUMPS) {
        assert!(server.starts_with(name), "{server}");
        let service = sandbox(&["a.example"]);
        let mut host = Host::new();
        let issued = test_ca().issue(&["a.example"]).unwrap();
        let write = |name: &str, text: &str| {
            let path = host.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
        };
        write(key, &issued.key);
        write(cert, &if cert == key { issued.fullchain() + &issued.key } else { issued.fullchain() });
        // The key of the ACME account, an issuer without a key, and a file of another kind.
        for name in ["DIR/private/letsencrypt.key", "DIR/acme_le/account.key", "DIR/README.txt"] {
            write(name, &issued.key);
        }
        for name in ["DIR/ca.pem", "DIR/acme_le/ca.crt", "DIR/certs/ca.crt"] {
            write(name, test_ca().root());
        }
        host.entry(&host.path(&pattern), &service, API_KEY);
        let output = host.sync().succeeds();
        assert_eq!(output.json()["counts"]["deployed"], 1, "{pattern}: {}", output.stdout);
        let again = host.sync().succeeds();
        assert_eq!(again.json()["counts"]["unchanged"], 1, "{pattern}");
        assert_eq!(again.json()["counts"]["total"], 1, "{pattern}");
    }
}

#[test]
fn five_hundred_lineages_cost_two_listings() {
    const LINEAGES: usize = 250;
    let domains: Vec<String> = (0..LINEAGES).map(|number| format!("s{number}.example")).collect();
    let names: Vec<&str> = domains.iter().map(String::as_str).collect();
    let services = [sandbox(&names), sandbox(&names)];
    let mut host = Host::new();
    for (account, service) in ["one", "two"].iter().zip(&services) {
        for domain in &domains {
            host.issue(&format!("{account}/{domain}"), domain);
        }
        host.entry(&host.path(&format!("{account}/*")), service, API_KEY);
    }
    let sync = || host.sync().env("EDGECERT_TIMEOUT", "600").succeeds();
    assert_eq!(sync().json()["counts"]["deployed"], 2 * LINEAGES);
    let [one, two] = &services;
    let (first, (second, output)) = requests_during(one, || requests_during(two, sync));
    assert_eq!((first, second), (LISTING.map(str::to_owned).to_vec(), LISTING.map(str::to_owned).to_vec()));
    assert_eq!(output.json()["counts"]["unchanged"], 2 * LINEAGES);
}
