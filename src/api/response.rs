//! The service's own objects, passed on as they came, with what edgecert understands of each.
//!
//! No private key stands in one: where the service sends a key, it is taken out before anything else is done.

use serde_json::{Map, Value};

use super::wire::{self, Listing, Record, Site};
use crate::secret::{Redactor, Secret};

/// An object of the service.
#[derive(Clone, Debug)]
pub(crate) struct ApiObject<T> {
    pub(crate) known: T,
    /// As the service sent it, without keys and secrets.
    pub(crate) json: Map<String, Value>,
}

/// The answer to a site that was created or updated.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    /// `None` where the answer does not show it.
    pub(crate) site: Option<ApiObject<Site>>,
    /// Fields that were dropped; anything here is a failure (section 4.7).
    pub(crate) ignored_fields: Vec<String>,
}

/// A certificate record with its bundle (section 2.2).
#[derive(Debug)]
pub(crate) struct Download {
    pub(crate) name: Option<String>,
    pub(crate) domain: Option<String>,
    pub(crate) cert_pem: String,
    /// `None` where the service keeps it to itself.
    pub(crate) key_pem: Option<Secret>,
    /// The rest of the record, for scripts.
    pub(crate) json: Map<String, Value>,
}

/// Under which names a key stands in a record.
const KEYS: [&str; 3] = ["key_pem", "private_key", "privkey"];
/// Under which names a single object may stand.
const WRAPPERS: [&str; 7] = ["site", "cert", "certificate", "data", "result", "item", "record"];
/// How deep a single object may be wrapped.
const DEPTH: usize = 3;

impl<T> ApiObject<T> {
    fn read(json: &Value, redactor: &Redactor, read: impl Fn(&Value) -> Option<T>) -> Option<Self> {
        let json = clean(json, redactor);
        let known = read(&json)?;
        match json {
            Value::Object(json) => Some(Self { known, json }),
            _ => None,
        }
    }
}

/// `GET /api/me/sites`.
pub(super) fn sites(json: &Value, redactor: &Redactor) -> Option<Listing<ApiObject<Site>>> {
    wire::listing(json, "sites", &wire::SITES, |item| ApiObject::read(item, redactor, wire::site))
}

/// `GET /api/certs`.
pub(super) fn records(json: &Value, redactor: &Redactor) -> Option<Listing<ApiObject<Record>>> {
    wire::listing(json, "certificates", &wire::RECORDS, |item| ApiObject::read(item, redactor, wire::record))
}

/// `GET /api/sites/{id}`: bare or in a wrapper.
pub(super) fn site(json: &Value, redactor: &Redactor) -> Option<ApiObject<Site>> {
    let is_site = |value: &Value| wire::site(value).is_some();
    ApiObject::read(one(json, &is_site, DEPTH)?, redactor, wire::site)
}

/// The answer of create and update. An object that shows no site is one all the same.
pub(super) fn saved(json: &Value, redactor: &Redactor) -> Option<Saved> {
    let mut ignored_fields = wire::updated(json)?.ignored_fields;
    for name in &mut ignored_fields {
        *name = redactor.clean(name);
    }
    Some(Saved { site: site(json, redactor), ignored_fields })
}

/// `GET /api/certs/{id}/download`.
pub(super) fn download(json: &Value, redactor: &Redactor) -> Option<Download> {
    let has_material = |value: &Value| value.get("cert_pem").is_some_and(Value::is_string);
    let record = one(json, &has_material, DEPTH)?;
    let text = |name: &str| record.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let key_pem = text("key_pem").map(|key| Secret::new(key.to_owned()));
    let mut of_this_key = Redactor::default();
    if let Some(key) = &key_pem {
        of_this_key.hide(key);
    }
    let Value::Object(mut json) = clean(&clean(record, redactor), &of_this_key) else { return None };
    json.remove("ok");
    let shown = |name: &str| json.get(name).and_then(Value::as_str).map(str::to_owned);
    let (name, domain) = (shown("name"), shown("domain"));
    Some(Download { name, domain, cert_pem: text("cert_pem")?.to_owned(), key_pem, json })
}

/// The object that fits: this one, or the one in a wrapper.
fn one<'a>(json: &'a Value, fits: &dyn Fn(&Value) -> bool, depth: usize) -> Option<&'a Value> {
    if fits(json) {
        return Some(json);
    }
    let inner = WRAPPERS.iter().filter_map(|name| json.get(*name));
    inner.filter(|_| depth > 0).find_map(|value| one(value, fits, depth - 1))
}

/// The same without keys and secrets.
fn clean(json: &Value, redactor: &Redactor) -> Value {
    let mut json = json.clone();
    withhold_keys(&mut json);
    redactor.clean_json(&mut json);
    json
}

fn withhold_keys(json: &mut Value) {
    match json {
        Value::String(text) if text.contains("PRIVATE KEY") => *text = "[private key]".into(),
        Value::Array(items) => items.iter_mut().for_each(withhold_keys),
        Value::Object(map) => {
            map.retain(|name, _| !KEYS.contains(&name.as_str()));
            map.values_mut().for_each(withhold_keys);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_site_is_found_bare_and_in_a_wrapper() {
        let bare = json!({"id": 10, "domain": "a.example", "remark": "x"});
        for json in [
            bare.clone(),
            json!({"site": bare}),
            json!({"ok": true, "site": bare, "meta": {"id": 1, "ok": false, "domain": "other.invalid"}}),
            json!({"data": {"site": bare}}),
        ] {
            let shown = site(&json, &Redactor::default()).unwrap();
            assert_eq!((shown.known.id, &shown.json["remark"]), (10, &json!("x")), "{json}");
        }
        for json in [json!([]), json!({"meta": bare}), json!({"id": 10}), json!("x")] {
            assert!(site(&json, &Redactor::default()).is_none(), "{json}");
        }
    }

    #[test]
    fn no_key_stands_in_an_object_that_is_shown() {
        const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----\n";
        let json = json!({
            "ok": true, "id": 5, "domain": "a.example", "name": "MIGHAgEAMBMGByqGSM49", "cert_pem": "c",
            "key_pem": KEY, "more": [{"key_pem": "x", "copy": KEY, "line": "MIGHAgEAMBMGByqGSM49"}],
        });
        let download = download(&json, &Redactor::default()).unwrap();
        assert_eq!(download.key_pem.unwrap().expose(), KEY);
        let shown = Value::Object(download.json).to_string();
        assert!(!shown.contains("MIGH") && !shown.contains("key_pem"), "{shown}");
    }

    #[test]
    fn an_answer_that_shows_no_site_may_still_name_what_was_ignored() {
        let saved = saved(&json!({"ok": true, "ignored_fields": ["a", 1]}), &Redactor::default()).unwrap();
        assert!(saved.site.is_none());
        assert_eq!(saved.ignored_fields, ["a", "1"]);
    }
}
