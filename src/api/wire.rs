//! The service's answers, read leniently: what the API document does not show may come in any sensible form.

use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::names::Domain;
use crate::secret::Redactor;
use crate::text::rfc3339;

/// A certificate stored by the service.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) id: u64,
    /// What it is called, where that is a domain: by default the one that it was uploaded for.
    pub(crate) name: Option<Domain>,
    /// The domain or domains that it is stored for, as far as they are names.
    pub(crate) domains: Vec<Domain>,
    pub(crate) kind: RecordType,
}

/// Who issues a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordType {
    /// `lets`: issued and renewed by the system itself.
    System,
    /// Anything else; the document names no other value.
    Other(String),
}

/// A domain that the service accelerates.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) id: u64,
    pub(crate) domain: Domain,
    /// `None`: no certificate is bound.
    pub(crate) cert_id: Option<u64>,
    /// Whether the configuration has reached the edge; absent counts as no.
    pub(crate) config_synced: bool,
    /// Host name of the edge for this site; untrusted text.
    pub(crate) cname: Option<String>,
    /// Whether acceleration is on; absent counts as yes.
    pub(crate) enabled: bool,
    /// Why it is off, where the system switched it off; untrusted text.
    pub(crate) disabled_reason: Option<String>,
}

/// The answer to an update of a site.
#[derive(Clone, Debug)]
pub(crate) struct Updated {
    /// Fields that were dropped; anything here is a failure (section 4.7).
    pub(crate) ignored_fields: Vec<String>,
}

/// The answer to an upload.
#[derive(Clone, Debug)]
pub(crate) struct Uploaded {
    pub(crate) id: u64,
    pub(crate) created: Option<bool>,
    /// RFC 3339 in UTC; `None` where it cannot be read.
    pub(crate) not_after: Option<OffsetDateTime>,
    pub(crate) key_match: Option<String>,
    /// As the service sent it.
    pub(crate) bound_sites: Value,
}

impl Site {
    /// Takes secrets out of what is shown as the service sent it; false where one stands in its domain.
    fn clean(&mut self, redactor: &Redactor) -> bool {
        for text in [&mut self.cname, &mut self.disabled_reason].into_iter().flatten() {
            *text = redactor.clean(text);
        }
        redactor.clean(self.domain.spelled()) == self.domain.spelled()
    }
}

impl Listing<Site> {
    /// The same for all sites; one that has a secret for a domain is left out.
    pub(super) fn clean(&mut self, redactor: &Redactor) {
        self.items.retain_mut(|site| site.clean(redactor));
    }
}

impl Listing<Record> {
    /// Leaves out names of records that are secrets.
    pub(super) fn clean(&mut self, redactor: &Redactor) {
        let is_clean = |domain: &Domain| redactor.clean(domain.spelled()) == domain.spelled();
        for record in &mut self.items {
            record.domains.retain(is_clean);
            record.name = record.name.take().filter(is_clean);
        }
    }
}

impl Updated {
    /// Takes secrets out of what is shown as the service sent it.
    pub(super) fn clean(&mut self, redactor: &Redactor) {
        for name in &mut self.ignored_fields {
            *name = redactor.clean(name);
        }
    }
}

impl Uploaded {
    /// Takes secrets out of what is shown as the service sent it.
    pub(super) fn clean(&mut self, redactor: &Redactor) {
        redactor.clean_json(&mut self.bound_sites);
        if let Some(text) = &mut self.key_match {
            *text = redactor.clean(text);
        }
    }
}

/// Parses a time as RFC 3339; one without an offset is taken for UTC.
fn parse_time(text: &str) -> Option<OffsetDateTime> {
    let text = text.trim().replacen(' ', "T", 1);
    let candidates = [text.clone(), format!("{text}Z"), format!("{text}T00:00:00Z")];
    candidates.iter().find_map(|text| rfc3339::parse(text).ok())
}

pub(super) fn uploaded(json: &Value) -> Option<Uploaded> {
    let fields = json.as_object()?;
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(Uploaded {
        id: number(fields.get("id")?)?,
        created: fields.get("created").and_then(Value::as_bool),
        not_after: text("not_after").and_then(|text| parse_time(&text)),
        key_match: text("key_match"),
        bound_sites: fields.get("bound_sites").cloned().unwrap_or_else(|| Value::Array(Vec::new())),
    })
}

/// Keys under which a list of certificates may stand.
pub(super) const RECORDS: [&str; 6] = ["certs", "certificates", "list", "items", "results", "data"];

/// Keys under which a list of sites may stand; the first is documented.
pub(super) const SITES: [&str; 5] = ["sites", "list", "items", "results", "data"];

/// A list and what was strange about it.
pub(super) struct Listing<T> {
    pub(super) items: Vec<T>,
    /// In words.
    pub(super) notes: Vec<String>,
    /// Records that are named by elements which cannot be read.
    pub(super) hidden: Vec<u64>,
}

pub(super) fn records(json: &Value) -> Option<Listing<Record>> {
    listing(json, "certificates", &RECORDS, record)
}

pub(super) fn sites(json: &Value) -> Option<Listing<Site>> {
    listing(json, "sites", &SITES, site)
}

/// An element that cannot be read does not hide the others; a list of nothing else is no list.
pub(super) fn listing<T>(
    json: &Value,
    noun: &str,
    keys: &[&str],
    read: impl Fn(&Value) -> Option<T>,
) -> Option<Listing<T>> {
    let items = list(json, keys, DEPTH)?;
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for item in items {
        match read(item) {
            Some(element) => found.push(element),
            None => unread.push(item),
        }
    }
    if found.is_empty() && !items.is_empty() {
        return None;
    }
    let mut notes = Vec::new();
    if !unread.is_empty() {
        notes.push(format!(
            "{} of the {} {noun} that the service lists cannot be read and are left out",
            unread.len(),
            items.len()
        ));
    }
    if let Some(total) = json.get("total").and_then(Value::as_u64).filter(|total| *total > items.len() as u64)
    {
        notes.push(format!(
            "the service lists {} of {total} {noun}; the others are not looked at",
            items.len()
        ));
    }
    let hidden = unread.into_iter().filter_map(cert_id).collect();
    Some(Listing { items: found, notes, hidden })
}

pub(super) fn record(json: &Value) -> Option<Record> {
    let fields = json.as_object()?;
    let kind = match fields.get("type").and_then(Value::as_str) {
        Some("lets") => RecordType::System,
        other => RecordType::Other(other.unwrap_or_default().to_owned()),
    };
    let name = fields.get("name").and_then(Value::as_str).and_then(|name| name.parse().ok());
    Some(Record { id: number(fields.get("id")?)?, name, domains: domains(fields), kind })
}

/// One name, several in one text, or an array.
fn domains(fields: &Map<String, Value>) -> Vec<Domain> {
    let texts: Vec<&str> = match fields.get("domain").or_else(|| fields.get("domains")) {
        Some(Value::String(text)) => text.split([',', ';', ' ', '\n']).collect(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    texts.into_iter().filter_map(|text| text.trim().parse().ok()).collect()
}

pub(super) fn site(json: &Value) -> Option<Site> {
    let fields = json.as_object()?;
    let text = |name: &str| fields.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    Some(Site {
        id: number(fields.get("id")?)?,
        domain: fields.get("domain")?.as_str()?.parse().ok()?,
        cert_id: cert_id(json),
        config_synced: fields.get("config_synced").and_then(Value::as_bool).unwrap_or(false),
        cname: text("cname"),
        enabled: fields.get("enabled").and_then(Value::as_bool).unwrap_or(true),
        disabled_reason: text("disabled_reason"),
    })
}

/// The record that a site is bound to; there are several ways to say that there is none.
fn cert_id(site: &Value) -> Option<u64> {
    site.get("cert_id").and_then(number).filter(|id| *id != 0)
}

pub(super) fn updated(json: &Value) -> Option<Updated> {
    json.as_object()?;
    Some(Updated { ignored_fields: ignored(json, DEPTH) })
}

/// The names of dropped fields, beside the site or in the wrapper that the site may stand in. One that is missed would
/// make a failure look like a success, so every form counts that says something.
fn ignored(json: &Value, depth: usize) -> Vec<String> {
    let name = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let names: Vec<String> = match json.get("ignored_fields") {
        None | Some(Value::Null | Value::Bool(false)) => Vec::new(),
        Some(Value::Array(items)) => items.iter().map(name).collect(),
        Some(Value::Object(map)) => map.keys().cloned().collect(),
        Some(Value::String(text)) => {
            text.split([',', ' ']).filter(|name| !name.is_empty()).map(str::to_owned).collect()
        }
        Some(other) => vec![other.to_string()],
    };
    if !names.is_empty() || depth == 0 {
        return names;
    }
    let inner = ["data", "result"].iter().filter_map(|wrapper| json.get(*wrapper));
    inner.map(|value| ignored(value, depth - 1)).find(|names| !names.is_empty()).unwrap_or_default()
}

/// How deep a list may be wrapped: `{"data":{"result":{"list":[…]}}}`.
const DEPTH: usize = 4;

/// The list in an answer: bare, under one of the keys, or under any other key if nothing else there is a list. `null` is
/// an empty list.
fn list<'a>(json: &'a Value, keys: &[&str], depth: usize) -> Option<&'a [Value]> {
    let is_list = |value: &Value| value.is_null() || value.is_array();
    match json {
        Value::Null => Some(&[]),
        Value::Array(items) => Some(items),
        Value::Object(map) => {
            if let Some(value) = keys.iter().filter_map(|key| map.get(*key)).find(|value| is_list(value)) {
                return list(value, keys, depth);
            }
            let objects = |items: &[Value]| items.iter().all(Value::is_object);
            let bare = map
                .values()
                .filter_map(Value::as_array)
                .filter(|items| objects(items))
                .max_by_key(|items| items.len());
            let deeper = || {
                map.values().filter(|value| value.is_object()).find_map(|value| list(value, keys, depth - 1))
            };
            let nested = if depth > 0 { deeper() } else { None };
            nested.or(bare.map(Vec::as_slice))
        }
        _ => None,
    }
}

/// An identifier, as a number (`5.0` is one too) or as digits in a string.
pub(super) fn number(json: &Value) -> Option<u64> {
    let whole = || json.as_f64().filter(|number| number.fract() == 0.0)?.to_string().parse().ok();
    json.as_u64().or_else(whole).or_else(|| json.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_list_of_certificates_is_found_in_any_wrapper() {
        let record = json!({"id": 5, "name": "n", "domain": "a.example", "type": "lets"});
        for wrapped in [
            json!([record]),
            json!({"certs": [record], "total": 1}),
            json!({"ok": true, "data": {"items": [record]}, "warnings": []}),
            json!({"result": [record]}),
            json!({"data": {"result": {"list": [record]}}}),
            json!({"certs": [record], "packages": [{"id": 1}, {"id": 2}]}),
            json!({"ok": true, "found": [record], "codes": [1, 2]}),
        ] {
            let found = records(&wrapped).unwrap().items;
            assert_eq!((found.len(), found[0].id, &found[0].kind), (1, 5, &RecordType::System), "{wrapped}");
        }
        for empty in [
            json!([]),
            json!({"certs": []}),
            json!({"certs": null, "total": 0}),
            json!(null),
            json!({"certs": [], "sites": [record]}),
        ] {
            assert_eq!(records(&empty).unwrap().items.len(), 0);
        }
        for strange in
            [json!("x"), json!(1), json!({"ok": true}), json!([1, 2]), json!([{"name": "without id"}])]
        {
            assert!(records(&strange).is_none(), "{strange}");
        }
    }

    #[test]
    fn identifiers_are_numbers_or_digits() {
        let upload =
            |id: Value| uploaded(&json!({"ok": true, "id": id, "created": true})).map(|uploaded| uploaded.id);
        assert_eq!(upload(json!("1042")), Some(1042));
        assert_eq!(upload(json!(1042)), Some(1042));
        assert_eq!(upload(json!("x")), None);
        assert_eq!(upload(Value::Null), None);
    }

    #[test]
    fn a_site_without_certificate_says_so_in_several_ways() {
        for cert_id in [json!(null), json!(0), json!("0"), json!("")] {
            let found = sites(&json!({"sites": [{"id": 1, "domain": "a.example", "cert_id": cert_id}]}))
                .unwrap()
                .items;
            assert_eq!(found[0].cert_id, None);
            assert!(!found[0].config_synced);
        }
    }

    #[test]
    fn several_names_of_a_record_come_in_several_forms() {
        for domain in
            [json!("a.example,b.example"), json!("a.example b.example"), json!(["a.example", "b.example"])]
        {
            let found = records(&json!([{"id": 1, "domain": domain}])).unwrap().items;
            assert_eq!(found[0].domains.len(), 2);
        }
    }
}
