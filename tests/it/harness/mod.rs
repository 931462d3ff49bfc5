//! Building blocks of the tests: a hook to run, a lineage to deploy, and a sandbox that stands for the service and its
//! edge. Each test owns its sandbox, ports and files.

mod daemon;
mod hook;
mod host;
mod lineage;
mod log_socket;
mod nginx;
mod openssl;
mod runs;
mod scrub;
mod skip;
mod state_files;
mod terminal;
mod tls_server;
mod trace;

use serde_json::{Value, json};

pub(crate) use daemon::{Daemon, poll, read_head};
pub(crate) use edgecert_sandbox::{
    Account, Authority, EdgeAddress, EdgeMode, Fault, IssuedCert, Options, RecordedRequest, Sandbox, World,
};
pub(crate) use edgecert_workload::der;
pub(crate) use hook::{Hook, Output, binary, edgecert, edgecert_with_heap, edgecert_with_memory, env_var};
pub(crate) use host::record_sync;
pub(crate) use lineage::{Lineage, P256, RSA, fingerprint, generate_key, hex, test_ca, write_with_mode};
pub(crate) use log_socket::{JOURNAL, LogSocket, SYSLOG, run_with_sockets, run_with_syslog};
pub(crate) use nginx::Nginx;
pub(crate) use openssl::{openssl, sign_between};
pub(crate) use runs::{
    Fleet, Host, LISTING, at_once, bind, change, configured, deploy, fresh, in_parallel, is_bound_to,
    requests_during, sync, with_rejected_key,
};
pub(crate) use scrub::scrub_times;
use skip::require_isolation;
pub(crate) use skip::{
    PYTHON, cannot_run, print_uncaptured, require, require_from_pypi, require_python_module, require_root,
    require_tracer, require_trusted_root,
};
pub(crate) use state_files::{DAY, edit_state, set_back, set_back_file, state_files};
pub(crate) use terminal::screen;
pub(crate) use tls_server::TlsServer;
pub(crate) use trace::{PANIC_IN_SLEEP, open_count, system_calls};

/// The key of the sandbox's first account, unless a world says otherwise.
pub(crate) const API_KEY: &str = "sandbox-key";

/// Starts a sandbox with these sites, unbound.
pub(crate) fn sandbox(domains: &[&str]) -> Sandbox {
    sandbox_with(Options::default(), domains)
}

/// Starts a sandbox with these sites, and issues a certificate for all of them.
pub(crate) fn sandbox_and_lineage(domains: &[&str]) -> (Sandbox, Lineage) {
    (sandbox(domains), Lineage::issued_for(domains))
}

/// Starts a sandbox with these options and sites.
pub(crate) fn sandbox_with(options: Options, domains: &[&str]) -> Sandbox {
    let sandbox = Sandbox::start(options).unwrap();
    for domain in domains {
        sandbox.add_site(domain);
    }
    sandbox
}

/// Starts a sandbox with these sites whose API is reached over TLS.
pub(crate) fn tls_sandbox(domains: &[&str]) -> Sandbox {
    sandbox_with(Options { tls: true, ..Options::default() }, domains)
}

/// The requests that the sandbox received, as `METHOD /path`.
pub(crate) fn request_lines(service: &Sandbox) -> Vec<String> {
    service.requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

/// The number of upload requests that the sandbox received.
pub(crate) fn upload_count(service: &Sandbox) -> usize {
    request_lines(service).iter().filter(|line| *line == "POST /api/certs/upload").count()
}

/// Asserts that a JSON value has these fields, besides others.
#[track_caller]
pub(crate) fn assert_contains(value: &Value, expected: &Value) {
    assert!(contains(value, expected), "{expected:#} is wanted: {value:#}");
}

fn contains(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (_, Value::Object(fields)) => fields.iter().all(|(name, field)| contains(&value[name], field)),
        (Value::Array(found), Value::Array(items)) => {
            found.len() == items.len() && found.iter().zip(items).all(|(found, item)| contains(found, item))
        }
        _ => value == expected,
    }
}

/// Adds the default account to a world.
pub(crate) fn world(mut rest: Value) -> World {
    rest["accounts"] = json!([{"id": 1, "api_keys": [API_KEY], "packages": [
        {"id": 1, "expires_at": "2100-01-01T00:00:00Z", "traffic_limit": 1000, "traffic_used": 0}
    ]}]);
    serde_json::from_value(rest).unwrap()
}

/// Starts a sandbox without quirks, with sites (id, domain, certificate) and records.
pub(crate) fn account(sites: &[(u64, &str, Option<u64>)], records: &[Value]) -> Sandbox {
    let site = |(id, domain, cert_id): &(u64, &str, Option<u64>)| json!({"id": id, "account": 1, "domain": domain, "cert_id": cert_id});
    let sites: Vec<Value> = sites.iter().map(site).collect();
    let world = world(json!({"sites": sites, "certs": records}));
    sandbox_with(Options { world, quirks: 0, ..Options::default() }, &[])
}

/// A record of a new certificate for this domain, for a world.
pub(crate) fn record(id: u64, domain: &str, kind: &str) -> Value {
    let mut record = record_of(id, domain, &test_ca().issue(&[domain]).unwrap());
    record["type"] = json!(kind);
    record
}

/// A record that holds this certificate, for a world.
pub(crate) fn record_of(id: u64, domain: &str, issued: &IssuedCert) -> Value {
    json!({
        "id": id, "account": 1, "domain": domain, "name": domain, "type": "upload",
        "cert_pem": issued.fullchain(), "key_pem": issued.key,
    })
}

/// Names the next part of a test, in its output, which is captured and shown if it fails. Parts build on each other.
#[expect(clippy::print_stdout, reason = "captured, and shown if the test fails")]
pub(crate) fn step(name: &str) {
    println!("{name}");
}
