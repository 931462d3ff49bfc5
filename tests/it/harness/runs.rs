//! Runs of `deploy` and `sync` that share a state directory, and what they do to the service.

use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

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

/// Runs all rows at the same time, because each waits most of its time, and returns their results in order.
pub(crate) fn at_once<T: Send, R: Send>(
    rows: impl IntoIterator<Item = T>,
    run: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    thread::scope(|scope| {
        let run = &run;
        let running: Vec<_> = rows.into_iter().map(|row| scope.spawn(move || run(row))).collect();
        let results = running.into_iter().map(|row| row.join().unwrap_or_else(|panic| resume_unwind(panic)));
        results.collect()
    })
}

/// Adds a configuration file with lineages.
pub(crate) fn configured(hook: Hook, lineages: &[&Lineage]) -> Hook {
    let entry = |lineage: &&Lineage| format!("[[lineage]]\npath = '{}'\n", lineage.path().display());
    let config = hook.write_file("config.toml", &lineages.iter().map(entry).collect::<String>());
    hook.args(["--config".as_ref(), config.as_os_str()])
}

/// Changes the service without edgecert.
pub(crate) fn change(service: &Sandbox, path: &str, body: &Value) {
    let ready = service.endpoints();
    let request = ureq::post(format!("{}{path}", ready.api));
    request.header("Authorization", format!("Bearer {}", ready.api_key)).send_json(body).unwrap();
}
