//! `edgecert status` for people, scripts, monitoring and Prometheus, and `--forget`.

mod check;

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use tempfile::TempDir;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::harness::{
    EdgeAddress, EdgeMode, Hook, Host, Lineage, P256, PYTHON, RSA, assert_contains, configured, edgecert,
    request_lines, require_python_module, state_files,
};

/// A call without the URL of the service and without the API key.
fn status(state: &Path, arguments: &[&str]) -> Hook {
    edgecert().args(["status"]).args(arguments).with_state(state)
}

/// The only lineage in the JSON report.
#[track_caller]
fn lineage_status(host: &Host, arguments: &[&str]) -> Value {
    let json = host.status(arguments).args(["--json"]).succeeds().json();
    assert_eq!(json["lineages"].as_array().unwrap().len(), 1, "{json}");
    json["lineages"][0].clone()
}

#[test]
fn status_follows_a_lineage_through_its_life() {
    let host = Host::new();
    let new = configured(host.status(&["--json"]), &[&host.lineage]).succeeds().json();
    assert_eq!(new["lineages"][0]["state"], "new");

    let done = host.hook().args(["--json"]).succeeds().json();
    let lineage_status = || lineage_status(&host, &[]);
    let deployed = lineage_status();
    let cert_id = &done["sites"][0]["cert_id"];
    let expected = json!({
        "name": host.name(), "client": "certbot", "state": "deployed", "last_error": null, "pending_since": null,
        "on_disk": {"fingerprint": done["certificate"]["fingerprint"]},
        "sites": [{"cert_id": cert_id, "outcome": "served", "on_record": true}],
    });
    assert_contains(&deployed, &expected);
    assert_eq!(deployed["on_disk"], deployed["deployed"]);

    host.lineage.renew(&["a.example"]);
    let renewed = lineage_status();
    assert_contains(&renewed, &json!({"state": "renewed", "sites": [{"on_record": false}]}));
    assert_eq!(renewed["deployed"], deployed["deployed"]);
    assert!(renewed["pending_since"].is_string());

    host.hook().env("EDGECERT_BASE_URL", "http://127.0.0.1:1").args(["--timeout", "1"]).exits_with(75);
    let pending = lineage_status();
    let expected = json!({
        "state": "pending", "generation": 2, "last_error": {"exit_code": 75}, "sites": [{"on_record": false}],
    });
    assert_contains(&pending, &expected);
    assert_eq!(pending["deployed"], deployed["deployed"], "that is what visitors still get");
    assert!(pending["last_error"]["error"].as_str().unwrap().contains("cannot reach the service at"));

    host.hook().succeeds();
    assert_eq!(lineage_status()["state"], "deployed");
    fs::remove_file(host.lineage.file("fullchain.pem")).unwrap();
    let gone = lineage_status();
    assert_eq!((&gone["state"], &gone["on_disk"]), (&json!("gone"), &json!(null)));
}

#[test]
fn status_of_a_fresh_host_creates_nothing() {
    let missing = TempDir::new().unwrap().path().join("none");
    let nothing = status(&missing, &[]).succeeds();
    assert!(nothing.stdout.starts_with("no lineage is known"), "{}", nothing.stdout);
    assert!(!missing.exists());
}

#[test]
fn status_needs_neither_key_nor_service() {
    let host = Host::deployed();
    let before = request_lines(&host.service).len();
    fs::remove_file(host.lineage.file("privkey.pem")).unwrap();
    fs::create_dir(host.lineage.file("privkey.pem")).unwrap();
    let lineage_status = lineage_status(&host, &["--verify"]);
    assert_eq!(lineage_status["state"], "deployed");
    assert_eq!(lineage_status["on_disk"], lineage_status["deployed"]);
    assert_eq!(request_lines(&host.service).len(), before);
}

#[test]
fn verify_shows_what_is_served() {
    let host = Host::deployed();
    // The edge address is the one given to the deployment.
    let served = |arguments: &[&str]| lineage_status(&host, arguments)["sites"][0]["served"].clone();
    assert_eq!(served(&[]), json!(null));
    let seen = served(&["--verify"]);
    assert_contains(&seen, &json!({"outcome": "served", "served": 1, "addresses": 1}));
    assert!(host.status(&["--verify"]).succeeds().stdout.contains("* a.example  served 1/1  "));

    let old = lineage_status(&host, &[])["on_disk"]["not_after"].clone();
    host.lineage.renew(&["a.example"]);
    let seen = served(&["--verify"]);
    assert_eq!((&seen["outcome"], &seen["not_after"]), (&json!("stale"), &old));
    assert!(seen["stale"][0].as_str().unwrap().contains("still serves the certificate of"), "{seen}");
    assert!(host.status(&["--verify"]).succeeds().stdout.contains("~ a.example  stale 0/1, "));

    let seen = served(&["--verify", "--edge-address", "127.0.0.1:1"]);
    let unreachable = json!({"outcome": "unreachable", "unreachable": ["127.0.0.1:1 refuses connections"]});
    assert_contains(&seen, &unreachable);
    host.status(&["--verify", "--edge-address", "nonsense"]).exits_with(2).says("expected HOST:PORT");
}

#[test]
fn refused_name_is_critical() {
    let host = Host::deployed();
    let refusing = host.service.open_edge_address(&EdgeAddress::new(EdgeMode::Refuse));
    let verify = ["--verify", "--edge-address", &refusing];
    let output = host.status(&verify).args(["--check"]).exits_with(2);
    output.prints(": no valid certificate served (a.example, as its edge was last seen)\n");
    let expected = format!("a.example: {refusing} rejects the handshake for this name");
    output.prints(&expected);
    assert_eq!(lineage_status(&host, &verify)["sites"][0]["served"]["outcome"], "stale");
}

#[test]
fn deployed_leaf_is_recognised_without_file() {
    for key in [RSA, P256] {
        let host = Host { lineage: Lineage::from_openssl(&key), ..Host::new() };
        host.hook().succeeds();
        fs::remove_file(host.lineage.file("fullchain.pem")).unwrap();
        let seen = lineage_status(&host, &["--verify"])["sites"][0]["served"].clone();
        assert_eq!(seen["outcome"], "served", "{key:?}: {seen}");
    }
}

#[test]
fn check_prints_one_line() {
    let host = Host::deployed();
    let check = |arguments: &[&str], code: i32, line: &str| {
        let output = host.status(arguments).args(["--check"]).exits_with(code);
        let line = line.replace("NAME", &host.name());
        assert!(output.stdout.starts_with(&line), "{line:?} is wanted: {}", output.stdout);
        let lines = if code == 0 { 1 } else { 2 };
        assert_eq!((output.stdout.lines().count(), output.stderr.as_str()), (lines, ""));
        let json = host.status(arguments).args(["--check", "--json"]).exits_with(code).json();
        let lineages = json!([{"name": host.name()}]);
        assert_contains(&json, &json!({"exit_code": code, "ok": code == 0, "lineages": lineages}));
    };
    check(&[], 0, "EDGECERT OK - 1 lineage, nothing pending, ");
    check(&["-w", "10000"], 1, "EDGECERT WARNING - NAME: certificate expires in ");

    host.lineage.renew(&["a.example"]);
    host.hook().fails_temporarily(&host.service);
    check(&[], 0, "EDGECERT OK - 1 lineage, 1 pending within the limit, ");
    host.edit(|recorded| recorded["pending_since"] = json!("2026-01-01T00:00:00Z"));
    check(&[], 2, "EDGECERT CRITICAL - NAME: pending for ");
}

#[test]
fn unseen_renewal_is_pending_since_written() {
    let host = Host { lineage: Lineage::issued_days_ago(10, "x", &["a.example"]), ..Host::new() };
    host.hook().succeeds();
    host.lineage.renew_between(&["a.example"], [-5, 85]);
    host.status(&["--check"]).succeeds();
    let path = host.lineage.file("fullchain.pem");
    let written = fs::metadata(&path).unwrap().modified().unwrap() - Duration::from_secs(2 * 86_400);
    let set_written = |at| File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
    set_written(written);
    let pending_since = |status: &Value| {
        let since = status["pending_since"].as_str().unwrap();
        OffsetDateTime::parse(since, &Rfc3339).unwrap().unix_timestamp()
    };
    let seconds = written.duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert_eq!(pending_since(&lineage_status(&host, &[])), i64::try_from(seconds).unwrap());
    let output = host.status(&["--check"]).exits_with(2);
    output.prints("(no run has seen this certificate); run `edgecert sync`\n");
    // The file's time may be lost, for example in an archive. The file cannot have been written before the certificate
    // was issued.
    set_written(UNIX_EPOCH);
    let lineage_status = lineage_status(&host, &[]);
    assert_eq!(lineage_status["pending_since"], lineage_status["on_disk"]["not_before"]);
}

#[test]
fn unusable_state_file_is_a_failure() {
    let host = Host::deployed();
    let expect = |code: i32, reason: &str| {
        let json = host.status(&["--json"]).exits_with(code).json();
        assert!(json["error"].as_str().unwrap().contains(reason), "{json}");
        // The others are shown.
        assert_contains(&json, &json!({"ok": false, "lineages": [{"sites": [{"outcome": "served"}]}]}));
        assert!(host.status(&[]).exits_with(code).stdout.contains("a.example"));
    };
    let other = host.state().join("other-0123456789.json");
    fs::create_dir(&other).unwrap();
    expect(66, "it is a directory");
    fs::remove_dir(&other).unwrap();
    fs::write(&other, r#"{"version": 99}"#).unwrap();
    expect(78, "has version 99");
    fs::write(&other, "{").unwrap();
    expect(78, "is not a valid state file");
    expect(78, "is an invalid state file");
}

/// Parses a metrics file with Prometheus' own library: metric, lineage, site, value.
fn parse_metrics(file: &Path) -> Vec<(String, String, String, i64)> {
    let script = "
import json, sys
from prometheus_client.parser import text_string_to_metric_families as families
found = [f for f in families(open(sys.argv[1]).read())]
assert all(f.type == 'gauge' and f.documentation for f in found)
print(json.dumps([[s.name, s.labels.get('lineage', ''), s.labels.get('site', ''), int(s.value)] for f in found for s in f.samples]))";
    require_python_module("prometheus_client.parser", "python3-prometheus-client");
    let output = Command::new(PYTHON).args(["-c", script]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn prometheus_parses_the_metrics() {
    let host = Host::with(&["a.example", "b.example"], &["a.example", "b.example"]);
    host.hook().succeeds();
    host.edit(|recorded| {
        recorded["last_success"] = json!("2026-01-01T00:00:00Z");
    });
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("edgecert.prom");
    fs::write(&file, "an earlier one").unwrap();
    assert_eq!(host.status(&["--metrics", file.to_str().unwrap()]).succeeds().stdout, "");
    let samples = parse_metrics(&file);
    assert_eq!(samples.len(), 18, "{samples:?}");
    for site in ["a.example", "b.example"] {
        let value = |metric: &str| {
            let found = samples.iter().find(|(name, _, other, _)| name == metric && other == site);
            let (_, lineage, _, value) = found.unwrap_or_else(|| panic!("{metric} of {site}: {samples:?}"));
            assert_eq!(*lineage, host.name());
            *value
        };
        assert_eq!((value("edgecert_pending"), value("edgecert_deploy_lag_seconds")), (0, 0));
        assert_eq!(value("edgecert_last_success_timestamp_seconds"), 1_767_225_600);
        let [from, until] = ["before", "after"]
            .map(|end| value(&format!("edgecert_certificate_not_{end}_timestamp_seconds")));
        assert!(from < until && until > 1_790_000_000, "{from} {until}");
    }
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn metrics_replace_only_regular_files() {
    let (state, directory) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let link = directory.path().join("link");
    symlink("/dev/null", &link).unwrap();
    for file in [link.clone(), directory.path().to_owned(), directory.path().join("none/x.prom")] {
        let output = status(state.path(), &["--metrics", file.to_str().unwrap()]).exits_with(78);
        output.says("cannot write the metrics file");
        let check = ["--check", "--allow-empty", "--metrics", file.to_str().unwrap()];
        let output = status(state.path(), &check).exits_with(3);
        assert!(output.stdout.starts_with("EDGECERT UNKNOWN - cannot write"), "{}", output.stdout);
    }
    assert!(link.is_symlink());
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn lineage_is_forgotten_by_name_or_path() {
    let host = Host::new();
    let other = Lineage::issued_for(&["a.example"]);
    let link = host.state().join("link");
    symlink(host.lineage.path(), &link).unwrap();
    host.hook().succeeds();
    let known = host.name();
    let path = |path: PathBuf| path.to_str().unwrap().to_owned();
    let names = [
        known.clone(),
        path(host.lineage.path().into()),
        path(host.lineage.file("fullchain.pem")),
        path(link),
    ];
    for wanted in names {
        let output = host.status(&["--forget", other.path().to_str().unwrap()]).exits_with(66);
        output.says(format!("known lineages: {known}"));
        let output = host.status(&["--forget", &wanted, "--json"]).succeeds();
        assert_eq!((&output.json()["forgotten"], &output.json()["warnings"]), (&json!(known), &json!([])));
        assert_eq!(state_files(host.state()), [] as [PathBuf; 0]);
        host.status(&["--forget", &wanted]).exits_with(66);
        host.hook().succeeds();
    }
    assert_eq!(host.status(&["--forget", &known]).succeeds().stdout, format!("forgot {known}\n"));
}

#[test]
fn locked_lineage_is_not_forgotten() {
    let host = Host::deployed();
    let name = host.name();
    let lock = File::options().write(true).open(host.state().join(format!("{name}.lock"))).unwrap();
    lock.lock().unwrap();
    host.status(&["--forget", &name]).exits_with(75).says(format!("still deploying {name}"));
    drop(lock);
    assert_eq!(lineage_status(&host, &[])["name"], *name);
}

#[test]
fn ambiguous_path_forgets_nothing() {
    let host = Host::new();
    for name in ["one", "two"] {
        for (from, ending) in [("fullchain.pem", "crt"), ("privkey.pem", "key")] {
            fs::copy(host.lineage.file(from), host.lineage.file(&format!("{name}.{ending}"))).unwrap();
        }
        let hook = host.call();
        let [cert, key] = ["crt", "key"].map(|ending| host.lineage.file(&format!("{name}.{ending}")));
        hook.env("LEGO_CERT_PATH", cert).env("LEGO_CERT_KEY_PATH", key).succeeds();
    }
    let output = host.status(&["--forget", host.lineage.path().to_str().unwrap()]).exits_with(66);
    output.says("nothing was forgotten");
    assert_eq!(state_files(host.state()).len(), 2);
}
