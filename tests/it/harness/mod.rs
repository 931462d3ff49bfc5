//! What makes each test a sentence: a hook to call, a lineage to hand over, a sandbox to receive it.

pub(crate) mod der;
mod hook;
mod lineage;
mod openssl;
mod trace;

use serde_json::{Value, json};

pub(crate) use edgecert_sandbox::{Account, Fault, Options, Sandbox, World};
pub(crate) use hook::{Hook, Outcome, edgecert, edgecert_within, variable};
pub(crate) use lineage::{Lineage, authority, new_key};
pub(crate) use openssl::{openssl, sign_between};
pub(crate) use trace::system_calls;

/// The key of the sandbox's first account, unless a world says otherwise.
pub(crate) const API_KEY: &str = "sandbox-key";

/// A sandbox with these sites, none of which has a certificate.
pub(crate) fn sandbox(domains: &[&str]) -> Sandbox {
    sandbox_with(Options::default(), domains)
}

/// The same with options of its own.
pub(crate) fn sandbox_with(options: Options, domains: &[&str]) -> Sandbox {
    let sandbox = Sandbox::start(options).unwrap();
    for domain in domains {
        sandbox.add_site(domain);
    }
    sandbox
}

/// What was asked of the sandbox, as `METHOD /path`.
pub(crate) fn asked(sandbox: &Sandbox) -> Vec<String> {
    sandbox.requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

/// How many uploads the sandbox was asked for.
pub(crate) fn uploads(sandbox: &Sandbox) -> usize {
    asked(sandbox).iter().filter(|request| *request == "POST /api/certs/upload").count()
}

/// A world with the usual account.
pub(crate) fn world(mut rest: Value) -> World {
    rest["accounts"] = json!([{"id": 1, "api_keys": ["sandbox-key"], "packages": [
        {"id": 1, "expires_at": "2100-01-01T00:00:00Z", "traffic_limit": 1000, "traffic_used": 0}
    ]}]);
    serde_json::from_value(rest).unwrap()
}

/// A stored certificate for a domain.
pub(crate) fn record(id: u64, domain: &str, kind: &str) -> Value {
    let issued = authority().issue(&[domain]).unwrap();
    json!({
        "id": id, "account": 1, "domain": domain, "name": domain, "type": kind,
        "cert_pem": issued.fullchain(), "key_pem": issued.key,
    })
}
