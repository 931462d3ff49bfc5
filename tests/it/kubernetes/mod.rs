//! `sync --kubernetes`: secrets that an API server lists. No cluster can run here; the API server is one of the tests'
//! own, with the list endpoint only.

mod api_server;
mod chart;
mod manifests;

use std::fs;
use std::sync::MutexGuard;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{API_KEY, Hook, Sandbox, edgecert, sandbox, step, test_ca, upload_count};

use api_server::{ApiServer, Cluster, Response, status};

/// Mounts a directory as the service account of a pod, in a namespace of the program's own.
const IN_POD: &str = r#"
mount -t tmpfs none /run
mkdir -p /run/secrets/kubernetes.io/serviceaccount
mount --bind "$1" /run/secrets/kubernetes.io/serviceaccount
shift
exec "$@"
"#;

const LABEL: (&str, &str) = ("edge", "yes");

/// A pod with a service account, in the namespace `default`.
struct Pod {
    account: TempDir,
    server: ApiServer,
}

impl Pod {
    fn new(server: &ApiServer) -> Self {
        let pod = Self { account: TempDir::new().unwrap(), server: server.clone() };
        pod.mount("token", "token\n");
        pod.mount("namespace", "default");
        pod.mount("ca.crt", test_ca().root());
        pod
    }

    fn mount(&self, name: &str, text: &str) {
        fs::write(self.account.path().join(name), text).unwrap();
    }

    /// The pod of a cluster with a secret `a` for `a.example`, whose site the service has.
    fn with_secret() -> (Sandbox, Self) {
        let (service, pod) = (sandbox(&["a.example"]), Self::new(&ApiServer::start()));
        pod.server.apply("default", "a", LABEL, &test_ca().issue(&["a.example"]).unwrap());
        (service, pod)
    }

    fn cluster(&self) -> MutexGuard<'_, Cluster> {
        self.server.cluster()
    }

    /// A run of `sync --kubernetes` in a container without state.
    fn sync(&self, service: &Sandbox, arguments: &[&str]) -> Hook {
        let hook = edgecert().against(service).args(["sync", "--kubernetes"]).args(arguments);
        self.contain(hook)
    }

    fn contain(&self, hook: Hook) -> Hook {
        let address = self.server.address();
        let hook = hook.env("KUBERNETES_SERVICE_HOST", address.ip().to_string());
        let hook = hook.env("KUBERNETES_SERVICE_PORT", address.port().to_string());
        let account = self.account.path().to_str().unwrap();
        hook.under(&["unshare", "--mount", "sh", "-ec", IN_POD, "sh", account])
    }
}

fn count(output: &Value, name: &str) -> u64 {
    output["counts"][name].as_u64().unwrap()
}

#[test]
fn secrets_are_deployed_without_state() {
    let (service, server) = (sandbox(&["a.example", "b.example"]), ApiServer::start());
    let pod = Pod::new(&server);
    let secrets = ["a.example", "b.example"].map(|domain| {
        let issued = test_ca().issue(&[domain]).unwrap();
        server.apply("default", domain, LABEL, &issued);
        issued
    });
    let output = pod.sync(&service, &["-vv"]).succeeds();
    assert!(output.stdout.contains("2 lineages: 2 deployed"), "{}", output.stdout);
    for text in [&output.stdout, &output.stderr, &output.state] {
        for secret in [&secrets[0].key, &secrets[1].key, "Bearer token", API_KEY] {
            let line = secret.lines().nth(1).unwrap_or(secret);
            assert!(!text.contains(line), "{text}");
        }
    }
    // A later run, in a new container.
    let output = pod.sync(&service, &["--json"]).succeeds();
    assert_eq!(output.json()["changed"], false);
    assert_eq!(upload_count(&service), 2);

    let renewed = test_ca().issue_now(&["a.example"]).unwrap();
    server.apply("default", "a.example", LABEL, &renewed);
    pod.sync(&service, &[]).succeeds();
    assert_eq!(upload_count(&service), 3);
}

#[test]
fn state_of_a_volume_is_used() {
    let ((service, pod), volume) = (Pod::with_secret(), TempDir::new().unwrap());
    let sync = |arguments: &[&str]| {
        let hook = edgecert().against(&service).args(["sync", "--json"]).args(arguments);
        pod.contain(hook.with_state(volume.path())).succeeds().json()
    };
    assert_eq!(count(&sync(&["--kubernetes"]), "deployed"), 1);
    assert_eq!(count(&sync(&["--kubernetes"]), "unchanged"), 1);
    // Without the flag, and after the secret was deleted, the lineage is left alone.
    assert_eq!(count(&sync(&[]), "total"), 0);
    let other = Pod::new(&ApiServer::start());
    let hook = edgecert().against(&service).args(["sync", "--kubernetes"]);
    other.contain(hook.with_state(volume.path())).succeeds();
    let none = "edgecert: warning: no secret of type kubernetes.io/tls was found\n";
    assert_eq!(other.sync(&service, &[]).succeeds().stderr, none);
    assert_eq!(other.sync(&service, &["--shard", "1/2"]).succeeds().stderr, "", "a shard may have none");
    assert_eq!(upload_count(&service), 1);
}

#[test]
fn pages_are_followed() {
    let (service, server) = (sandbox(&["a.example"]), ApiServer::start());
    let pod = Pod::new(&server);
    let issued = test_ca().issue(&["a.example"]).unwrap();
    for number in 0..7 {
        server.apply("default", &format!("s{number}"), LABEL, &issued);
    }
    server.cluster().page_size = 3;
    let output = pod.sync(&service, &["--json"]).succeeds().json();
    assert_eq!(count(&output, "total"), 7);
    assert_eq!(server.cluster().requests.len(), 3);
    // A list that changes faster than it can be read.
    server.cluster().is_expired = true;
    pod.sync(&service, &[]).exits_with(75).says("(410)");
}

#[test]
fn odd_responses_of_the_server_are_explained() {
    let (service, pod) = Pod::with_secret();

    step("only_a_list_of_secrets_is_one");
    let secret = r#"{"items": [{"metadata": {"name": "a"}, "data": "a secret"}]}"#;
    for (body, found) in [
        (&*status(200, "the cache is not ready").body, "list of secrets: it is a Status"),
        (r#"{"kind": "PodList", "items": []}"#, "it is a PodList"),
        (r#"{"items": []}"#, "not a list of secrets at line 1, column 13"),
        ("[]", "not a list of secrets at line 1, column 2"),
        (secret, "not a list of secrets at line 1, column 57"),
    ] {
        pod.cluster().faults.push_back(Response { status: 200, headers: "", body: body.to_owned() });
        pod.sync(&service, &[]).exits_with(76).says(found);
    }

    step("forbidden_namespace_does_not_stop_others");
    let output = pod.sync(&service, &["--namespace", "other", "--namespace", "default"]).exits_with(78);
    assert_eq!(upload_count(&service), 1);
    assert!(output.stderr.contains("refused to list the secrets in other: "), "{}", output.stderr);
    assert!(!output.stderr.contains("warning"), "{}", output.stderr);
    assert!(output.stderr.contains("bind a role"), "{}", output.stderr);

    step("unavailable_server_is_asked_again");
    pod.cluster().faults.push_back(status(429, "too many requests"));
    pod.sync(&service, &[]).succeeds();
    for _ in 0..4 {
        pod.cluster().faults.push_back(status(503, "etcd has no leader"));
    }
    pod.sync(&service, &[]).exits_with(75).says("etcd has no leader (503)");

    step("endless_list_ends_at_the_deadline");
    pod.cluster().is_endless = true;
    let output = pod.sync(&service, &["--timeout", "1"]).under(&["timeout", "20"]).exits_with(75);
    assert!(output.stderr.contains("the API server is unavailable"), "{}", output.stderr);
    assert_eq!(upload_count(&service), 1, "what was listed is deployed");
}

#[test]
fn rotated_token_is_read_again() {
    let (service, pod) = Pod::with_secret();
    // The server no longer accepts the token of the first attempt, and would accept that of the second.
    pod.cluster().faults.push_back(status(401, "Unauthorized"));
    pod.sync(&service, &[]).succeeds();
    assert_eq!(pod.cluster().requests.len(), 2);

    pod.cluster().tokens.clear();
    pod.sync(&service, &[]).exits_with(78).says("rejected the token of the service account (401)");
}

#[test]
fn selector_and_type_choose_secrets() {
    let (service, pod) = Pod::with_secret();
    service.add_site("b.example");
    pod.server.apply("default", "b", ("edge", "no"), &test_ca().issue(&["b.example"]).unwrap());
    pod.sync(&service, &["--selector", "edge=yes"]).succeeds();
    let bound: Vec<_> = service.sites().into_iter().filter(|site| !site["cert_id"].is_null()).collect();
    assert_eq!(bound.iter().map(|site| &site["domain"]).collect::<Vec<_>>(), ["a.example"]);
}

#[test]
fn broken_secret_is_a_failure() {
    let (service, pod) = Pod::with_secret();
    pod.server.apply_data("default", "broken", LABEL, &[("tls.crt", "no certificate".into())]);
    pod.server.apply_data("default", "empty", LABEL, &[]);
    pod.cluster().clear_key("default", "empty");
    let output = pod.sync(&service, &[]).exits_with(65);
    assert!(output.stdout.contains("3 lineages: 1 deployed, 2 failed"), "{}", output.stdout);
    assert!(output.stderr.contains("/kubernetes:/default/broken/tls.crt"), "{}", output.stderr);
}

#[test]
fn outside_a_pod_says_what_is_missing() {
    let service = sandbox(&[]);
    let output = edgecert().against(&service).args(["sync", "--kubernetes"]).exits_with(78);
    output.says("works only in a pod: KUBERNETES_SERVICE_HOST is not set");
    edgecert().args(["sync", "--namespace", "default"]).exits_with(2);
    edgecert().args(["sync", "--kubernetes", "--namespace", "../x"]).exits_with(2);
}

#[test]
fn indexed_job_deploys_each_secret_once() {
    const SECRETS: usize = 200;
    let domains: Vec<String> = (0..SECRETS).map(|number| format!("s{number}.example")).collect();
    let domains: Vec<&str> = domains.iter().map(String::as_str).collect();
    let (service, server) = (sandbox(&domains), ApiServer::start());
    let pod = Pod::new(&server);
    for domain in &domains {
        server.apply("default", domain, LABEL, &test_ca().issue(&[domain]).unwrap());
    }
    let mut deployed = 0;
    for arguments in manifests::indexed_job() {
        let hook = edgecert().against(&service).args(&arguments).args(["--json"]);
        let output = pod.contain(hook).succeeds();
        deployed += count(&output.json(), "deployed");
        assert_eq!(count(&output.json(), "total"), count(&output.json(), "deployed"));
    }
    assert_eq!((deployed, upload_count(&service)), (SECRETS as u64, SECRETS));
}
