//! Compares the response to an upload with what was uploaded.
//!
//! A field that the response omits is not a contradiction, except `ok`, which says that the upload was carried out.

use serde_json::Value;

use crate::api::{Record, Timestamp, Uploaded};
use crate::cert::Certificate;
use crate::names::{Domain, Names, distinct};
use crate::text::{list, rfc3339, sanitize};

/// Values of `key_match` with which the service accepts a key: it cannot verify every type (section 4.2).
const KEY_MATCHES: [&str; 2] = ["ok", "unverified"];

/// Why a response does not confirm the upload of a leaf for a domain; `None` if it does. `other` is the record that it
/// names if that was listed for other domains.
pub(super) fn contradiction(
    response: &Uploaded,
    domain: &Domain,
    leaf: &Certificate,
    other: Option<&Record>,
) -> Option<String> {
    let contradictions: Vec<String> = [
        (!response.is_ok).then(|| "`ok` is not true".to_owned()),
        other.map(other_record),
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

/// Whether a response says that the upload for a domain created this record, which was listed before for other domains. If
/// it says that the record was replaced, the certificate in it may have covered the domain.
pub(super) fn is_of_others(response: &Uploaded, domain: &Domain, listed: &Record) -> bool {
    let mut domains = listed.domains.iter().chain(&listed.name).peekable();
    let has_others = domains.peek().is_some() && !Names::of(domains.map(Domain::host)).cover(domain);
    response.created == Some(true) && has_others
}

fn other_record(listed: &Record) -> String {
    let domains: Vec<Domain> = listed.domains.iter().chain(&listed.name).cloned().collect();
    let domains: Vec<String> = distinct(&domains).iter().map(ToString::to_string).collect();
    format!("`created` is true for `id` {}, which was listed before for {}", listed.id, list(&domains))
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

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    use super::*;
    use crate::api::List;

    /// A leaf for `a.example` and `*.b.example` that expires on 2030-01-01.
    const LEAF: &str = "MIH0MIGnoAMCAQICAQEwBQYDK2VwMA0xCzAJBgNVBAMMAkNBMB4XDTI5MDEwMTAwMDAwMFoXDTMwMDEwMTAw\
        MDAwMFowFDESMBAGA1UEAwwJYS5leGFtcGxlMCowBQYDK2VwAyEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
        AAAAAAAAAACjJTAjMCEGA1UdEQQaMBiCCWEuZXhhbXBsZYILKi5iLmV4YW1wbGUwBQYDK2VwA0EAAAAAAAAA\
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==";

    /// The response to an upload, with these fields in place of its own.
    fn response(edits: &Value) -> Uploaded {
        let mut response = json!({
            "ok": true, "id": "5", "created": false, "domain": "a.example", "not_after": "2030-01-01T00:00:00Z",
            "key_match": "unverified", "bound_sites": [],
        });
        for (field, value) in edits.as_object().unwrap() {
            response[field] = value.clone();
        }
        Uploaded::from_json(&response).unwrap()
    }

    fn contradiction_of(response: &Uploaded, domain: &str) -> Option<String> {
        let leaf = Certificate::from_der(&STANDARD.decode(LEAF).unwrap()).unwrap();
        contradiction(response, &domain.parse().unwrap(), &leaf, None)
    }

    #[test]
    fn contradictions_name_the_fields() {
        for (edits, found) in [
            (json!({"ok": null}), "`ok` is not true"),
            (json!({"ok": "no"}), "`ok` is not true"),
            (json!({"domain": "other.example"}), "`domain` is other.example"),
            (json!({"domain": "b.example, c.example"}), "`domain` is b.example and c.example"),
            (json!({"domain": ["*.example"]}), "`domain` is *.example"),
            (json!({"domain": ["*.b.example"]}), "`domain` is *.b.example"),
            (json!({"domain": {"name": "\u{1b}"}}), "`domain` is {\"name\":\"\\u001b\"}"),
            (
                json!({"not_after": "2020-01-01T00:00:00Z"}),
                "`not_after` is 2020-01-01T00:00:00Z, not 2030-01-01T00:00:00Z",
            ),
            (
                json!({"not_after": "2020-01-01"}),
                "`not_after` is 2020-01-01T00:00:00Z, not 2030-01-01T00:00:00Z",
            ),
            (json!({"not_after": "so\u{1b}on"}), "`not_after` is so on, not 2030-01-01T00:00:00Z"),
            (json!({"key_match": "mismatch"}), "`key_match` is mismatch"),
            (json!({"key_match": false}), "`key_match` is false"),
            (
                json!({"domain": "other.example", "key_match": "no"}),
                "`domain` is other.example and `key_match` is no",
            ),
        ] {
            let found = format!("the response contradicts the upload: {found}");
            assert_eq!(contradiction_of(&response(&edits), "a.example"), Some(found), "{edits}");
        }
        // Of all fields, only `ok` is required.
        let bare = Uploaded::from_json(&json!({"id": "5"})).unwrap();
        let found = "the response contradicts the upload: `ok` is not true";
        assert_eq!(contradiction_of(&bare, "a.example").as_deref(), Some(found));
    }

    /// Forms of times are tested in `Timestamp`.
    #[test]
    fn sensible_responses_confirm_the_upload() {
        for (edits, domain) in [
            (json!({}), "a.example"),
            (json!({"domain": "A.Example."}), "a.example"),
            (json!({"domain": "b.example,a.example"}), "a.example"),
            (json!({"domain": ["b.example", "a.example"]}), "a.example"),
            (json!({"domain": "xn--bcher-kva.example"}), "B\u{fc}cher.Example"),
            (json!({"domain": "*.b.example"}), "x.b.example"),
            (json!({"domain": null, "not_after": null, "key_match": null, "created": null}), "a.example"),
            (json!({"domain": "", "not_after": "", "key_match": ""}), "a.example"),
            (json!({"key_match": "OK"}), "a.example"),
            (json!({"not_after": "2030-01-01T00:00:00.5+00:00"}), "a.example"),
            (json!({"not_after": "2030-01-01"}), "a.example"),
        ] {
            assert_eq!(contradiction_of(&response(&edits), domain), None, "{edits}");
        }
    }

    #[test]
    fn created_record_must_be_used() {
        let domain = "a.example".parse().unwrap();
        for (bound_sites, expected) in [
            (json!([]), true),
            (json!(null), true),
            (json!(0), true),
            (json!(false), true),
            (json!(" "), true),
            (json!({}), true),
            (json!([null]), true),
            (json!([{"id": 11, "domain": "b.example"}]), true),
            (json!([{"id": 11, "name": "b.example"}]), true),
            (json!(["b.example"]), true),
            (json!([10]), false),
            (json!(["10"]), false),
            (json!([{"site_id": 10}]), false),
            (json!(["A.Example."]), false),
            (json!([{"id": 11, "domain": "b.example"}, {"id": 10, "domain": "a.example"}]), false),
            (json!(true), false),
            (json!(1), false),
            (json!("a.example"), false),
            (json!({"a.example": 10}), false),
        ] {
            let created = json!({"created": true, "bound_sites": bound_sites});
            assert_eq!(is_unused(&response(&created), &domain), expected, "{bound_sites}");
            let replaced = json!({"created": false, "bound_sites": bound_sites});
            assert!(!is_unused(&response(&replaced), &domain), "{bound_sites}");
        }
    }

    #[test]
    fn record_of_other_domains_is_recognised() {
        for (created, listed, expected) in [
            (json!(true), json!({"domain": "b.example"}), true),
            (json!(true), json!({"name": "b.example"}), true),
            (json!(true), json!({"domain": "*.a.example"}), true),
            (json!(true), json!({"domain": "*.example"}), false),
            (json!(true), json!({"domain": ["b.example", "a.example"]}), false),
            (json!(true), json!({"domain": "b.example", "name": "a.example"}), false),
            (json!(true), json!({"domain": "A.Example."}), false),
            (json!(true), json!({"name": "my certificate"}), false),
            (json!(false), json!({"domain": "b.example"}), false),
            (json!(null), json!({"domain": "b.example"}), false),
        ] {
            let mut record = listed.clone();
            record["id"] = json!(5);
            let records: List<Record> = List::of(&json!([record])).unwrap();
            let response = Uploaded::from_json(&json!({"id": 5, "created": created})).unwrap();
            let is_of_others = is_of_others(&response, &"a.example".parse().unwrap(), &records.items[0]);
            assert_eq!(is_of_others, expected, "{created} {listed}");
        }
    }
}
