//! Runs of `deploy` and `sync` that share a state directory, and what they do to the service.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{Hook, Lineage, Sandbox, edgecert, request_lines};

/// The requests of a run that has nothing to send, sorted.
pub(crate) const LISTING: [&str; 2] = ["GET /api/certs", "GET /api/me/sites"];

/// A hook whose state directory outlives it.
pub(crate) fn deploy(service: &Sandbox, lineage: &Lineage, state: &Path) -> Hook {
    edgecert().called_by_certbot(lineage).against(service).env("EDGECERT_STATE_DIR", state)
}

/// A `sync` with the same state directory.
pub(crate) fn sync(service: &Sandbox, state: &Path) -> Hook {
    edgecert().against(service).env("EDGECERT_STATE_DIR", state).args(["sync"])
}

/// Whether a site is bound to a record that holds the lineage's leaf.
pub(crate) fn is_bound_to(service: &Sandbox, domain: &str, lineage: &Lineage) -> bool {
    let site = service.sites().into_iter().find(|site| site["domain"] == domain).unwrap();
    let record = service.certs().into_iter().find(|record| record["id"] == site["cert_id"]);
    record.is_some_and(|record| record["cert_pem"] == lineage.read("fullchain.pem"))
}

/// The requests that a sandbox receives during an action.
pub(crate) fn requests_during<T>(service: &Sandbox, action: impl FnOnce() -> T) -> (Vec<String>, T) {
    let before = request_lines(service).len();
    let result = action();
    let mut requests = request_lines(service).split_off(before);
    requests.sort();
    (requests, result)
}

/// Adds a configuration file with lineages.
pub(crate) fn configured(hook: Hook, lineages: &[&Lineage]) -> Hook {
    let entry = |lineage: &&Lineage| format!("[[lineage]]\npath = '{}'\n", lineage.path().display());
    let config = hook.write_file("config.toml", &lineages.iter().map(entry).collect::<String>());
    hook.args(["--config".as_ref(), config.as_os_str()])
}

/// Changes the service without edgecert.
pub(crate) fn change(service: &Sandbox, path: &str, body: &Value) {
    let (ready, body) = (service.endpoints(), body.to_string());
    let mut curl = Command::new("/usr/bin/curl");
    curl.args(["-sf", "-X", "POST", "-H", "Content-Type: application/json", "-d", &body]);
    curl.args(["-H", &format!("Authorization: Bearer {}", ready.api_key), &format!("{}{path}", ready.api)]);
    assert!(
        curl.output().expect("cannot run here: curl is not installed (Debian package curl)").status.success(),
        "{path}"
    );
}
