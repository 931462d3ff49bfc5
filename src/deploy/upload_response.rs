//! Compares the response to an upload with what was uploaded.
//!
//! A field that the response omits is not a contradiction, except `ok`, which says that the upload was carried out.

use serde_json::Value;

use crate::api::{Timestamp, Uploaded};
use crate::cert::Certificate;
use crate::names::{Domain, Names};
use crate::text::{list, rfc3339, sanitize};

/// Values of `key_match` with which the service accepts a key: it cannot verify every type (section 4.2).
const KEY_MATCHES: [&str; 2] = ["ok", "unverified"];

/// Why a response does not confirm the upload of a leaf for a domain; `None` if it does.
pub(super) fn contradiction(response: &Uploaded, domain: &Domain, leaf: &Certificate) -> Option<String> {
    let contradictions: Vec<String> = [
        (!response.is_ok).then(|| "`ok` is not true".to_owned()),
        other_domain(&response.domains, domain, leaf),
        other_expiry(response.not_after.as_ref(), leaf),
        refused_key(response.key_match.as_deref()),
    ]
    .into_iter()
    .flatten()
    .collect();
    let any = !contradictions.is_empty();
    any.then(|| format!("the response contradicts the upload: {}", list(&contradictions)))
}

/// A record may be stored for several domains, or for a wildcard of the leaf that covers this one.
fn other_domain(shown: &[String], domain: &Domain, leaf: &Certificate) -> Option<String> {
    let names: Vec<Domain> = shown.iter().filter_map(|text| text.parse().ok()).collect();
    let is_of_leaf =
        |name: &&Domain| leaf.dns_names().any(|own| own.parse().is_ok_and(|own: Domain| own == **name));
    let covering = Names::of(names.iter().filter(is_of_leaf).map(Domain::host));
    if shown.is_empty() || names.contains(domain) || covering.cover(domain) {
        return None;
    }
    let shown: Vec<String> = shown.iter().map(|text| sanitize(text)).collect();
    Some(format!("`domain` is {}", list(&shown)))
}

fn other_expiry(shown: Option<&Timestamp>, leaf: &Certificate) -> Option<String> {
    let shown = shown.filter(|shown| !shown.may_be(leaf.not_after))?;
    let shown = match shown {
        Timestamp::Unreadable(text) => sanitize(text),
        shown => shown.at().map(rfc3339).unwrap_or_default(),
    };
    Some(format!("`not_after` is {shown}, not {}", rfc3339(leaf.not_after)))
}

fn refused_key(shown: Option<&str>) -> Option<String> {
    let shown =
        shown.filter(|shown| !KEY_MATCHES.iter().any(|known| shown.trim().eq_ignore_ascii_case(known)))?;
    Some(format!("`key_match` is {}", sanitize(shown)))
}

/// Whether the response says that the service created a record and did not bind the site of this domain to it. Numbers
/// among the bound sites may stand for any site.
pub(super) fn is_unused(response: &Uploaded, domain: &Domain) -> bool {
    let may_be_site = |bound: &Value| {
        let named = bound.get("domain").or_else(|| bound.get("name")).unwrap_or(bound);
        let name = named.as_str().filter(|text| text.contains('.'));
        !bound.is_null() && name.is_none_or(|name| name.parse::<Domain>().is_ok_and(|name| name == *domain))
    };
    let is_bound = match &response.bound_sites {
        Value::Array(items) => items.iter().any(may_be_site),
        Value::Null | Value::Bool(false) => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::String(text) => !text.trim().is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Bool(true) => true,
    };
    response.created == Some(true) && !is_bound
}
