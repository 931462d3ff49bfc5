//! The manifests of `hooks/kubernetes`: kubectl builds the Kustomize bases, Go's template language renders the chart,
//! kubernetes-validate compares the result with the schemas, and the hook runs with the arguments of the containers.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::chart;
use crate::harness::{Sandbox, edgecert, require, require_from_pypi, sandbox, test_ca, upload_count};
use crate::monitoring::promtool;
use crate::readme::{REFERENCE, blocks, read, root};

const DIRECTORY: &str = "hooks/kubernetes";
const VALIDATE: &str = include_str!("validate.py");

/// Tests of the alerts, for promtool.
const ALERTS: &str = include_str!("alerts.test.yml");

/// Checks YAML documents against the schemas; returns the objects, or why one is invalid.
pub(super) fn validate(yaml: &str) -> Result<Vec<Value>, String> {
    let python = require_from_pypi("kubernetes-validate").with_file_name("python");
    let mut command = Command::new(python);
    command.args(["-c", VALIDATE]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(yaml.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    if output.status.success() {
        Ok(serde_json::from_slice(&output.stdout).unwrap())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

/// The objects of a Kustomize base.
fn build(name: &str) -> Vec<Value> {
    build_in(root(), &format!("{DIRECTORY}/{name}"))
}

fn build_in(directory: &Path, name: &str) -> Vec<Value> {
    require("kubectl", "kubernetes-client");
    let mut command = Command::new("kubectl");
    let output = command.args(["kustomize", name]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    validate(&String::from_utf8(output.stdout).unwrap()).unwrap()
}

fn object<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let mut matches = objects.iter().filter(|object| object["kind"] == kind);
    matches.next().unwrap_or_else(|| panic!("no {kind}"))
}

fn pod(objects: &[Value]) -> &Value {
    &object(objects, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
}

/// The arguments of the container in the pod of an index. They start at once.
fn arguments(objects: &[Value], index: usize) -> Vec<String> {
    let arguments = pod(objects)["containers"][0]["args"].as_array().unwrap();
    let arguments = arguments.iter().map(|argument| argument.as_str().unwrap());
    let expand = |argument: &str| match argument {
        "300" => "0".to_owned(),
        _ => argument.replace("$(JOB_COMPLETION_INDEX)", &index.to_string()),
    };
    arguments.map(expand).collect()
}

/// The arguments in each pod of the indexed Job.
pub(super) fn indexed_job() -> Vec<Vec<String>> {
    let objects = build("shards");
    let job = &object(&objects, "CronJob")["spec"]["jobTemplate"]["spec"];
    assert_eq!(job["completionMode"], "Indexed");
    let pods = usize::try_from(job["completions"].as_u64().unwrap()).unwrap();
    (0..pods).map(|index| arguments(&objects, index)).collect()
}

/// Deploys a mounted secret with the configuration and the arguments of the manifests.
fn deploy_mounted(objects: &[Value], service: &Sandbox, secret: &str) {
    let home = TempDir::new().unwrap();
    let certs = home.path().join("certs").join(secret);
    fs::create_dir_all(&certs).unwrap();
    let issued = test_ca().issue(&["a.example"]).unwrap();
    fs::write(certs.join("tls.crt"), issued.fullchain()).unwrap();
    fs::write(certs.join("tls.key"), &issued.key).unwrap();
    let config = object(objects, "ConfigMap")["data"]["config.toml"].as_str().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let config = config.replace("/certs/*", &path("certs/*")).replace("/var/lib/edgecert", &path("state"));
    fs::write(home.path().join("config.toml"), config).unwrap();
    let hook = edgecert().against(service).env("EDGECERT_CONFIG", home.path().join("config.toml"));
    hook.args(arguments(objects, 0)).succeeds();
    assert_eq!(upload_count(service), 1);
}

/// Whether a pod runs with the least privileges that it needs.
fn assert_confined(objects: &[Value]) {
    let pod = pod(objects);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let container = &pod["containers"][0];
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
    assert_eq!(container["securityContext"]["capabilities"]["drop"][0], "ALL");
    assert!(container["resources"]["limits"]["memory"].is_string());
    // The key file may be readable by its group, not by others.
    for volume in pod["volumes"].as_array().unwrap().iter().filter(|volume| volume["secret"].is_object()) {
        assert_eq!(volume["secret"]["defaultMode"], 0o440, "{volume}");
    }
    let policy = &object(objects, "NetworkPolicy")["spec"];
    assert_eq!(policy["policyTypes"], serde_json::json!(["Ingress", "Egress"]));
    assert!(policy["ingress"].is_null());
}

#[test]
fn misspelt_field_is_invalid() {
    let manifest = read(&format!("{DIRECTORY}/base/cron-job.yaml")).replace("schedule:", "shedule:");
    assert!(validate(&manifest).unwrap_err().contains("shedule"));
}

#[test]
fn bases_are_valid_and_confined() {
    for name in ["base", "shards", "mounted"] {
        assert_confined(&build(name));
    }
    let base = build("base");
    let rules = &object(&base, "Role")["rules"];
    let wanted = serde_json::json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}]);
    assert_eq!(rules, &wanted);
}

#[test]
fn overlay_of_the_reference_is_valid() {
    let home = TempDir::new().unwrap();
    let copy = home.path().join("edgecert/hooks");
    fs::create_dir_all(&copy).unwrap();
    let source = root().join(DIRECTORY);
    assert!(Command::new("cp").arg("-r").arg(source).arg(&copy).status().unwrap().success());
    let blocks = blocks(REFERENCE, "yaml");
    let overlay = blocks.iter().find(|block| block.starts_with("resources: [edgecert/")).unwrap();
    fs::write(home.path().join("kustomization.yaml"), overlay).unwrap();
    let objects = build_in(home.path(), ".");
    assert_eq!(object(&objects, "CronJob")["metadata"]["namespace"], "certificates");
    assert_eq!(pod(&objects)["containers"][0]["image"], "registry.example.com/edgecert:0.1.0");
    let config = &object(&objects, "ConfigMap")["data"]["config.toml"];
    let config = config.as_str().unwrap();
    let base = build("base");
    assert_eq!(
        object(&base, "ConfigMap")["data"]["config.toml"].as_str().unwrap().trim_end(),
        config.trim_end()
    );
}

#[test]
fn mounted_base_deploys_its_secret() {
    let service = sandbox(&["a.example"]);
    let objects = build("mounted");
    assert!(!objects.iter().any(|object| object["kind"] == "Role"));
    assert_eq!(pod(&objects)["automountServiceAccountToken"], false);
    let mounts = pod(&objects)["containers"][0]["volumeMounts"].as_array().unwrap();
    assert!(mounts.iter().any(|mount| mount["mountPath"] == "/certs/example.com"));
    deploy_mounted(&objects, &service, "example.com");
}

#[test]
fn chart_is_valid_with_all_values() {
    let values = [
        "{}",
        "shards: 4\nnamespaces: [a, b]\nselector: edge=yes\nconfig: |\n  timeout = 30\n  wait = 60",
        "mountedSecrets: [example-com-tls]\nnetworkPolicy: true\nprometheusRule: true",
        "tolerations: [{key: edge, operator: Exists}]\nnodeSelector: {zone: a}\nnetworkPolicy: false",
    ];
    for values in values {
        let objects = validate(&chart::render(values)).unwrap();
        if !values.contains("networkPolicy: false") {
            assert_confined(&objects);
        }
    }
    let objects = validate(&chart::render(values[1])).unwrap();
    let namespaces = objects.iter().filter(|object| object["kind"] == "Role");
    let namespaces: Vec<_> = namespaces.map(|role| &role["metadata"]["namespace"]).collect();
    assert_eq!(namespaces, ["a", "b"]);
    let wanted = "sync --splay 0 --shard 3/4 --kubernetes --namespace a --namespace b --selector edge=yes";
    assert_eq!(arguments(&objects, 3).join(" "), wanted);
    let config = object(&objects, "ConfigMap")["data"]["config.toml"].as_str().unwrap();
    assert!(config.contains("\ntimeout = 30\nwait = 60\n"), "{config}");
}

#[test]
fn chart_deploys_mounted_secrets() {
    let service = sandbox(&["a.example"]);
    let objects = validate(&chart::render("mountedSecrets: [example-com-tls]")).unwrap();
    assert!(!objects.iter().any(|object| object["kind"] == "Role"));
    deploy_mounted(&objects, &service, "example-com-tls");
}

#[test]
fn failed_shard_ends_no_other() {
    for objects in [build("shards"), validate(&chart::render("shards: 4")).unwrap()] {
        let job = &object(&objects, "CronJob")["spec"]["jobTemplate"]["spec"];
        assert_eq!((&job["backoffLimitPerIndex"], &job["backoffLimit"]), (&0.into(), &Value::Null));
    }
}

#[test]
fn promtool_accepts_the_alerts() {
    let plain = validate(&read(&format!("{DIRECTORY}/monitoring/prometheus-rule.yaml"))).unwrap();
    let charted = validate(&chart::render("prometheusRule: true")).unwrap();
    for objects in [&plain, &charted] {
        let home = TempDir::new().unwrap();
        let file = home.path().join("rules.json");
        fs::write(file, object(objects, "PrometheusRule")["spec"].to_string()).unwrap();
        let output = promtool(home.path(), &["check", "rules", "--lint-fatal", "rules.json"]);
        assert!(output.contains("SUCCESS: 2 rules found"), "{output}");
        fs::write(home.path().join("test.yml"), ALERTS).unwrap();
        promtool(home.path(), &["test", "rules", "test.yml"]);
    }
}

#[test]
fn long_release_names_fit_cron_jobs() {
    // Helm's own limit is 53 characters.
    for (release, name) in [
        ("a".repeat(53), "a".repeat(52)),
        (format!("{}-b", "a".repeat(51)), "a".repeat(51)),
        (format!("{}.b", "a".repeat(51)), "a".repeat(51)),
        ("edgecert".into(), "edgecert".into()),
    ] {
        let objects = validate(&chart::render_release(&release, "prometheusRule: true")).unwrap();
        let names: BTreeSet<_> = objects.iter().map(|object| object["metadata"]["name"].as_str()).collect();
        assert_eq!(names, BTreeSet::from([Some(name.as_str())]));
        let rule = objects.iter().find(|object| object["kind"] == "PrometheusRule").unwrap();
        assert!(rule["spec"].to_string().contains(&format!("{name}-[0-9]+\\\"")), "{rule}");
    }
}

#[test]
fn values_that_cannot_work_are_refused() {
    for (yaml, error) in [
        ("shard: 3", "'shard' was unexpected"),
        ("mountedSecrets: [a-tls]\nshards: 3", "$.shards 1 was expected"),
        ("mountedSecrets: [a-tls]\nnamespaces: [a]", "$.namespaces ['a'] is too long"),
        ("mountedSecrets: [a-tls]\nselector: edge=yes", "$.selector '' was expected"),
        ("mountedSecrets: a-tls", "$.mountedSecrets 'a-tls' is not of type 'array'"),
        ("mountedSecrets: [example.com]", "$.mountedSecrets[0] 'example.com' does not match"),
        ("mountedSecrets: [a-tls, a-tls]", "$.mountedSecrets ['a-tls', 'a-tls'] has non-unique elements"),
        ("shards: 0", "$.shards 0 is less than the minimum"),
        ("shards: '3'", "$.shards '3' is not of type 'integer'"),
        ("baseUrl: http://cdn.example.com", "$.baseUrl"),
        ("nodeSelector: {ssd: true}", "$.nodeSelector.ssd True is not of type 'string'"),
    ] {
        let errors = chart::values(yaml).1;
        assert!(errors.contains(error), "{yaml}: {errors}");
    }
    for yaml in ["shards: 3", "mountedSecrets: [a-tls]", "global: {region: a}", "enabled: true"] {
        assert_eq!(chart::values(yaml).1, "", "{yaml}");
    }
}
