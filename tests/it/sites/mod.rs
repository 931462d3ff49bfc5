//! `edgecert sites`: the rules about sites in sections 3, 4 and 7 of the API document.

mod bind;
mod create;
mod delete;
mod examples;
mod list;
mod lost;
mod seeds;
mod switch;
mod update;

use serde_json::{Value, json};

use crate::harness::{Hook, Options, Sandbox, World, edgecert, record};

/// A sandbox with two accounts. The first has `shop.example.com` (10) with certificate 5 and `plain.example.com` (11)
/// without one; the second has `other.example.net` (20), certificate 6 and package 2.
pub(crate) fn shop() -> Sandbox {
    shop_of(Options::default())
}

/// Starts the sandbox of [`shop`] with options.
pub(crate) fn shop_of(options: Options) -> Sandbox {
    Sandbox::start(Options { world: world(), ..options }).unwrap()
}

fn world() -> World {
    let package = |id: u64| json!({"id": id, "expires_at": "2100-01-01T00:00:00Z", "traffic_limit": 1000});
    let mut other = record(6, "other.example.net", "upload");
    other["account"] = json!(2);
    let world = json!({
        "accounts": [
            {"id": 1, "api_keys": ["sandbox-key"], "packages": [package(1)]},
            {"id": 2, "api_keys": ["other-key"], "packages": [package(2)]},
        ],
        "sites": [
            {"id": 10, "account": 1, "domain": "shop.example.com", "cert_id": 5, "origin_protocol": "http"},
            {"id": 11, "account": 1, "domain": "plain.example.com"},
            {"id": 20, "account": 2, "domain": "other.example.net"},
        ],
        "certs": [record(5, "shop.example.com", "upload"), other],
    });
    serde_json::from_value(world).unwrap()
}

/// `edgecert sites …` against a sandbox.
pub(crate) fn sites(service: &Sandbox, arguments: &[&str]) -> Hook {
    edgecert().against(service).args(["sites"]).args(arguments)
}

/// A site as the service has it.
pub(crate) fn site(service: &Sandbox, id: u64) -> Value {
    service.sites().into_iter().find(|site| site["id"] == id).unwrap_or_default()
}

/// The body of the last request to a path with an ending.
pub(crate) fn last_body(service: &Sandbox, ending: &str) -> Value {
    let requests = service.requests();
    let last =
        requests.iter().rev().find(|request| request.method == "POST" && request.path.ends_with(ending));
    last.map(|request| request.body.clone()).unwrap_or_default()
}

/// Sets the traffic used in package 1.
pub(crate) fn set_traffic(service: &Sandbox, used: u64) {
    let url = format!("{}/packages/1", service.endpoints().control);
    ureq::post(url).send_json(json!({"traffic_used": used})).unwrap();
}

/// Whether any request was not a GET.
pub(crate) fn changed_anything(service: &Sandbox) -> bool {
    service.requests().iter().any(|request| request.method != "GET")
}
