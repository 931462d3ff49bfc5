//! Several accounts and many lineages in one configuration: targets of one lineage, patterns of paths.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{
    API_KEY, Fault, Hook, LISTING, Lineage, Options, Sandbox, assert_contains, edgecert, is_bound_to,
    request_lines, requests_during, sandbox, sandbox_and_lineage, sandbox_with, state_files, step, test_ca,
    upload_count, world, write_with_mode,
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

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Issues a certificate to this directory.
    fn issue(&self, directory: &str, domain: &str) {
        let directory = self.path(directory);
        let issued = test_ca().issue(&[domain]).unwrap();
        write_with_mode(directory.join("fullchain.pem"), issued.fullchain(), 0o644);
        write_with_mode(directory.join("privkey.pem"), &issued.key, 0o600);
    }

    /// Adds an entry for a path and an account of this service.
    fn entry(&mut self, path: &Path, service: &Sandbox, key: &str) {
        let file = self.path(&format!("key-{}", self.configuration.len()));
        write_with_mode(&file, key, 0o600);
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
        edgecert().with_state(self.path("state")).env("EDGECERT_CONFIG", config)
    }

    fn sync(&self) -> Hook {
        self.hook().args(["sync", "--json"])
    }
}

/// A host with a certificate for `a.example`, a site of two services. The second one has another API key.
struct Pair {
    host: Host,
    lineage: Lineage,
    first: Sandbox,
    second: Sandbox,
}

const OTHER_KEY: &str = "other-key";

impl Pair {
    /// The configuration is empty.
    fn new() -> Self {
        let mut world = serde_json::to_value(world(json!({}))).unwrap();
        world["accounts"][0]["api_keys"] = json!([OTHER_KEY]);
        let world = serde_json::from_value(world).unwrap();
        let second = sandbox_with(Options { world, ..Options::default() }, &["a.example"]);
        let (first, lineage) = sandbox_and_lineage(&["a.example"]);
        Self { host: Host::new(), lineage, first, second }
    }

    /// Each service has an entry.
    fn with_entries() -> Self {
        let mut pair = Self::new();
        pair.host.entry(pair.lineage.path(), &pair.first, API_KEY);
        pair.enter_second();
        pair
    }

    /// The first service is that of all lineages without an entry.
    fn with_default() -> Self {
        let mut pair = Self::new();
        let ready = pair.first.endpoints();
        pair.host.configuration = format!("base_url = {:?}\nedge_address = {:?}\n", ready.api, ready.edge);
        pair
    }

    fn enter_second(&mut self) {
        self.host.entry(self.lineage.path(), &self.second, OTHER_KEY);
    }

    fn hook(&self) -> Hook {
        self.host.hook().called_by_certbot(&self.lineage)
    }

    /// A `sync` whose environment has the key of the first service.
    fn sync(&self) -> Hook {
        self.host.sync().env("EDGECERT_API_KEY", API_KEY)
    }

    fn is_bound_to(&self, service: &Sandbox) -> bool {
        is_bound_to(service, "a.example", &self.lineage)
    }

    fn upload_counts(&self) -> [usize; 2] {
        [&self.first, &self.second].map(upload_count)
    }

    fn urls(&self) -> [&str; 2] {
        [&self.first, &self.second].map(|service| service.endpoints().api.as_str())
    }
}

/// The sites of a report, as `SERVICE DOMAIN OUTCOME`.
fn sites(report: &Value) -> Vec<String> {
    let sites = report["sites"].as_array().unwrap().iter();
    let text = |site: &Value, name: &str| site[name].as_str().unwrap_or_default().to_owned();
    sites.map(|site| ["service", "domain", "outcome"].map(|name| text(site, name)).join(" ")).collect()
}

#[test]
fn each_account_is_known() {
    let pair = Pair::with_entries();

    step("hook_deploys_to_each_account");
    pair.second.add_site("b.example");
    let output = pair.hook().args(["--json"]).succeeds();
    let served = pair.urls().map(|url| format!("{url} a.example served"));
    assert_eq!(sites(&output.json()), served, "{}", output.stderr);
    assert!(pair.is_bound_to(&pair.first) && pair.is_bound_to(&pair.second));
    assert_eq!(state_files(&pair.host.path("state")).len(), 2);

    assert_eq!(pair.hook().args(["--json"]).succeeds().json()["changed"], false);
    assert_eq!(pair.upload_counts(), [1, 1]);
    pair.hook().succeeds().prints(format!("a.example at {}", pair.urls()[1]));

    step("lineages_to_forget_name_their_accounts");
    let output = pair.host.hook().args(["status", "--forget"]).args([pair.lineage.path()]).exits_with(66);
    for url in pair.urls() {
        output.says(format!(" (for {url} "));
    }

    step("doctor_and_status_know_each_account");
    let status = pair.host.hook().args(["status", "--json"]).succeeds().json();
    assert_eq!(status["lineages"].as_array().unwrap().len(), 2, "{status:#}");

    let findings = |hook: Hook| -> Vec<String> {
        let report = hook.args(["doctor", "--json"]).run().json();
        let details = report["findings"].as_array().unwrap().iter().map(|finding| &finding["detail"]);
        details.map(|detail| detail.as_str().unwrap().to_owned()).collect()
    };
    let has = |all: &[String], parts: [&str; 2]| {
        all.iter().any(|detail| parts.iter().all(|part| detail.contains(part)))
    };
    let all = findings(pair.host.hook());
    let [first, second] = pair.urls();
    for parts in [[first, "reachable; 1 site"], [second, "reachable; 2 sites"], [second, "b.example"]] {
        assert!(has(&all, parts), "{parts:?}: {all:#?}");
    }
    assert!(!has(&all, ["no base URL is set", ""]), "{all:#?}");

    step("finding_about_the_files_is_reported_once");
    pair.lineage.write("privkey.pem", &Lineage::issued_for(&["a.example"]).read("privkey.pem"));
    let output = pair.hook().exits_with(65);
    assert_eq!(output.stderr.matches("edgecert: error:").count(), 1, "{}", output.stderr);
}

#[test]
fn account_that_fails_is_finished_by_sync() {
    let pair = Pair::with_entries();
    let failed =
        pair.hook().args(["--json"]).fails_temporarily_at(&pair.second, "POST /api/certs/upload").json();
    assert!(failed["error"].as_str().unwrap().starts_with(pair.urls()[1]), "{failed}");
    assert!(pair.is_bound_to(&pair.first));
    let output = pair.host.sync().only_lists(&pair.first);
    assert_eq!(output.json()["counts"]["deployed"], 1);
    assert!(pair.is_bound_to(&pair.second));
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
        let pair = Pair::with_entries();
        let name = format!("{fault:.200?}");
        pair.first.add_fault(fault.times(99));
        let output = pair.host.sync().args(["--timeout", "20", "--wait", "5"]).run();
        assert_eq!(output.code, code, "{name}: {}", output.stderr);
        assert!(pair.is_bound_to(&pair.second), "{name}");
    }
}

#[test]
fn key_in_the_environment_stays_with_its_service() {
    let mut pair = Pair::new();
    pair.host.configuration = format!("base_url = {:?}\n", pair.urls()[0]);
    pair.enter_second();
    let hook = || pair.hook().env("EDGECERT_API_KEY", API_KEY);
    hook().succeeds();
    assert!(pair.is_bound_to(&pair.second));
    // A variable that names the service comes before the entry, and brings its own key.
    let ready = pair.first.endpoints();
    hook().env("EDGECERT_BASE_URL", &ready.api).facing(&ready.edge).succeeds();
    assert!(pair.is_bound_to(&pair.first));
    assert_eq!(upload_count(&pair.second), 1);
}

#[test]
fn one_account_may_have_several_targets() {
    let (service, lineage) = sandbox_and_lineage(&["a.example", "b.example", "c.example"]);
    let mut host = Host::new();
    host.entry(lineage.path(), &service, API_KEY);
    let entry = &host.configuration;
    host.configuration =
        format!("{entry}domains = ['a.example']\nwait = 0\n{entry}domains = ['b.example']\n");
    let report = host.hook().called_by_certbot(&lineage).args(["--json"]).succeeds().json();
    // The service has bound the other site to the same record.
    assert_contains(&report["uploads"], &json!([{"domain": "a.example"}]));
    assert!(["a.example", "b.example"].iter().all(|domain| is_bound_to(&service, domain, &lineage)));
    assert_eq!(state_files(&host.path("state")).len(), 2);
}

#[test]
fn reports_tell_accounts_by_key_file() {
    let service = two_accounts(["a.example", "b.example"]);
    let lineage = Lineage::issued_for(&["a.example", "b.example"]);
    let mut host = Host::new();
    host.entry(lineage.path(), &service, API_KEY);
    host.entry(lineage.path(), &service, OTHER_KEY);
    let url = &service.endpoints().api;
    let files = fs::read_dir(host.root.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut labels: Vec<_> = files.map(|file| format!("{url} with {}", file.display())).collect();
    labels.sort_by_key(String::len);

    let hook = |arguments: &[&str]| host.hook().called_by_certbot(&lineage).args(arguments).succeeds();
    let plan = hook(&["plan", "--json"]).json();
    let steps = json!([
        {"service": labels[0], "domain": "a.example"}, {"service": labels[1], "domain": "b.example"},
    ]);
    assert_contains(&plan, &json!({"plan": steps, "serving": steps}));
    let assert_labelled = || {
        let plan = hook(&["plan"]);
        for label in &labels {
            plan.prints(format!("; at {label}\n"));
        }
    };
    assert_labelled();
    let served = [(&labels[0], "a.example"), (&labels[1], "b.example")];
    let served = served.map(|(label, domain)| format!("{label} {domain} served"));
    assert_eq!(sites(&hook(&["--json"]).json()), served);
    assert_labelled();
}

/// A sandbox with a second account, whose key is `other-key`, and a site for each.
fn two_accounts([first, second]: [&str; 2]) -> Sandbox {
    let site = |id: u64, account: u64, domain: &str| json!({"id": id, "account": account, "domain": domain});
    let mut world = serde_json::to_value(world(json!({}))).unwrap();
    let mut other = world["accounts"][0].clone();
    other["id"] = json!(2);
    other["packages"][0]["id"] = json!(2);
    other["api_keys"] = json!([OTHER_KEY]);
    world["accounts"].as_array_mut().unwrap().push(other);
    world["sites"] = json!([site(1, 1, first), site(2, 2, second)]);
    let world = serde_json::from_value(world).unwrap();
    sandbox_with(Options { world, ..Options::default() }, &[])
}

#[test]
fn unchanged_cert_deploys_where_it_was_never_deployed() {
    let mut pair = Pair::new();
    pair.host.entry(pair.lineage.path(), &pair.first, API_KEY);
    pair.host.hook().called_by_dehydrated("deploy_cert", &pair.lineage).succeeds();
    pair.enter_second();
    pair.host.hook().called_by_dehydrated("unchanged_cert", &pair.lineage).only_lists(&pair.first);
    assert!(pair.is_bound_to(&pair.second));
}

#[test]
fn failure_of_one_account_is_reported_once() {
    let mut pair = Pair::new();
    let (report, program) = (pair.host.path("report"), pair.host.path("on-failure"));
    write_with_mode(&program, format!("#!/bin/sh\ncat >>{}\n", report.display()), 0o700);
    pair.host.configuration = format!("on_failure = [{:?}]\n", program.display().to_string());
    // The first service rejects this key.
    pair.host.entry(pair.lineage.path(), &pair.first, "revoked-key");
    pair.enter_second();
    let output = pair.hook().exits_with(77);
    assert!(pair.is_bound_to(&pair.second), "{}", output.stderr);
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    let [first, second] = pair.urls();
    assert!(report["error"].as_str().unwrap().starts_with(first), "{report}");
    assert_eq!(sites(&report), [format!("{second} a.example served")]);
    assert!(!output.stderr.contains("revoked-key") && !report.to_string().contains("revoked-key"));
}

#[test]
fn target_without_an_entry_is_deployed_nowhere() {
    let mut pair = Pair::with_default();
    let top = pair.host.configuration.clone();
    pair.enter_second();
    pair.hook().succeeds();
    assert!(pair.is_bound_to(&pair.second));

    pair.host.configuration = top;
    pair.lineage.renew(&["a.example"]);
    let output = pair.sync().succeeds();
    assert_eq!(pair.upload_counts(), [0, 1], "{}", output.stdout);
    let warnings = output.json()["warnings"].to_string();
    assert!(warnings.contains("no [[lineage]]") && warnings.contains("--forget"), "{warnings}");
}

#[test]
fn lineage_moves_to_account_of_its_entry() {
    let mut pair = Pair::with_default();
    pair.hook().env("EDGECERT_API_KEY", API_KEY).succeeds();
    assert!(pair.is_bound_to(&pair.first));

    pair.enter_second();
    pair.lineage.renew(&["a.example"]);
    pair.hook().env("EDGECERT_API_KEY", API_KEY).succeeds();
    assert!(pair.is_bound_to(&pair.second));
    let output = pair.sync().succeeds();
    assert_eq!(pair.upload_counts(), [1, 1], "sync does what the hook does");
    let warnings = output.json()["warnings"].to_string();
    assert!(warnings.contains("is left alone, because no [[lineage]]"), "{warnings}");
}

#[test]
fn spelling_of_key_file_does_not_matter() {
    let (service, lineage) = sandbox_and_lineage(&["a.example"]);
    let mut host = Host::new();
    host.entry(lineage.path(), &service, API_KEY);
    host.sync().succeeds();
    host.configuration = host.configuration.replace("/key-", "/.//key-");
    let json = host.sync().succeeds().json();
    assert_eq!((&json["counts"]["unchanged"], &json["warnings"]), (&json!(1), &json!([])));
    assert_eq!(state_files(&host.path("state")).len(), 1);
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
    let mut pair = Pair::with_default();
    pair.enter_second();
    let valid = pair.host.configuration.clone();
    pair.host.configuration += "basurl = 1\n";
    pair.hook().exits_with(78);
    pair.host.configuration = valid;
    let output = pair.sync().succeeds();
    assert!(pair.is_bound_to(&pair.second), "{}", output.stdout);
    assert_eq!(upload_count(&pair.first), 0, "{}", output.stdout);
}

#[test]
fn key_file_is_for_its_own_base_url() {
    let mut pair = Pair::new();
    let key = pair.host.path("key");
    write_with_mode(&key, API_KEY, 0o600);
    let ready = pair.first.endpoints();
    let (api, edge) = (ready.api.clone(), ready.edge.clone());
    pair.host.configuration =
        format!("base_url = {api:?}\napi_key_file = '{}'\nedge_address = {edge:?}\n", key.display());
    let [_, second] = pair.urls().map(str::to_owned);
    let call = || pair.hook().env("EDGECERT_BASE_URL", &second);
    let (requests, output) = requests_during(&pair.second, || call().exits_with(78));
    assert_eq!(requests, Vec::<String>::new());
    output.says(format!("the configured API key is for {api}, not for {second}"));
}

#[test]
fn doctor_names_the_account_of_a_lineage() {
    let mut pair = Pair::with_entries();
    pair.host.issue("live/other", "other.example");
    let [from, to] =
        [pair.lineage.path(), &pair.host.path("live/other")].map(|path| path.display().to_string());
    pair.host.configuration = pair.host.configuration.replace(&from, &to);
    let shown = pair.host.hook().args(["doctor"]).run().stdout;
    for url in pair.urls() {
        let is_named = |line: &&str| line.contains(url) && line.contains("none of the account's");
        assert_eq!(shown.lines().filter(is_named).count(), 1, "{url}: {shown}");
    }
}

#[test]
fn doctor_plans_for_no_account_without_its_key() {
    // The key of the run is for an account without the lineage's site.
    let (service, mut host) = (sandbox(&["other.example"]), Host::new());
    host.issue("live/a", "a.example");
    let [key, lineage] = ["key", "live/a"].map(|name| host.path(name).display().to_string());
    write_with_mode(&key, API_KEY, 0o600);
    host.configuration = format!(
        "base_url = '{}'\napi_key_file = '{key}'\n[[lineage]]\npath = '{lineage}'\napi_key_file = '{key}-2'\n",
        service.endpoints().api
    );
    let shown = host.hook().args(["doctor"]).run().stdout;
    assert!(shown.contains("key-2") && !shown.contains("none of the account's"), "{shown}");
}

#[test]
fn doctor_warns_of_key_for_other_service() {
    let mut pair = Pair::new();
    pair.enter_second();
    let key = pair.host.path("key-0");
    let entry = pair.host.configuration.replace("api_key_file", "# api_key_file");
    let [first, second] = pair.urls().map(str::to_owned);
    let top = format!("base_url = {first:?}\napi_key_file = {:?}\n", key.display().to_string());
    let warned = format!("sends the API key in {} to {second}", key.display());
    for (entry, is_warned) in [(pair.host.configuration.clone(), false), (entry, true)] {
        pair.host.configuration = format!("{top}{entry}");
        let shown = pair.host.hook().args(["doctor"]).run().stdout;
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
    // Other directories are left out.
    assert_contains(&host.sync().succeeds().json(), &json!({"counts": {"total": 1}, "warnings": []}));

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
    let url = &service.endpoints().api;
    host.configuration = format!(
        "base_url = {url:?}\n[[lineage]]\npath = 'live/*'\n[[lineage]]\npath = 'live/a'\ndomains = ['none.example']\n"
    );
    host.sync().env("EDGECERT_API_KEY", API_KEY).run().prints("none.example");
    assert_eq!(upload_count(&service), 0);
}

#[test]
fn directory_named_like_a_pattern_is_no_pattern() {
    let service = sandbox(&["a.example", "b.a.example"]);
    let mut host = Host::new();
    host.issue("acme/*.a.example_ecc", "*.a.example");
    host.issue("acme/b.a.example_ecc", "a.example");
    host.entry(&host.path("acme/*.a.example_ecc"), &service, API_KEY);
    assert_eq!(host.sync().succeeds().json()["counts"]["total"], 1);
    assert_eq!(upload_count(&service), 1);
}

/// A way in which a server that renews certificates itself writes them: its name, a directory, and the files for
/// certificate and key there. If both are the same, it holds both.
type Dump = (&'static str, &'static str, [&'static str; 2]);

/// In the order of the reference's table.
const DUMPS: [Dump; 7] = [
    ("certbot", "etc/letsencrypt/live/a.example", ["fullchain.pem", "privkey.pem"]),
    (
        "Caddy",
        "var/lib/caddy/.local/share/caddy/certificates/ca/a.example",
        ["a.example.crt", "a.example.key"],
    ),
    ("Traefik", "DIR", ["certs/a.example.crt", "private/a.example.key"]),
    ("Traefik", "DIR/a.example", ["certificate.crt", "privatekey.key"]),
    ("HAProxy", "DIR", ["a.example.pem", "a.example.pem"]),
    ("nginx", "DIR/acme_le", ["a.example-1f.crt", "a.example-1f.key"]),
    ("mounted", "certs/a.example", ["tls.crt", "tls.key"]),
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
    for ((server, pattern), (name, directory, files)) in patterns.into_iter().zip(DUMPS) {
        assert!(server.starts_with(name), "{server}");
        let [cert, key] = &files.map(|file| format!("{directory}/{file}"));
        let service = sandbox(&["a.example"]);
        let mut host = Host::new();
        let issued = test_ca().issue(&["a.example"]).unwrap();
        let write = |name: &str, text: &str| write_with_mode(host.path(name), text, 0o600);
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
        assert_contains(&host.sync().succeeds().json()["counts"], &json!({"unchanged": 1, "total": 1}));
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
