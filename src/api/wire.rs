//! The service's answers, read leniently: what the API document does not show may come in any sensible form.

use serde_json::{Map, Value};

use crate::names::Domain;
use crate::secret::Redactor;

/// A certificate stored by the service.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) id: u64,
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
}

/// The answer to an upload.
#[derive(Clone, Debug)]
pub(crate) struct Uploaded {
    pub(crate) id: u64,
    pub(crate) created: Option<bool>,
    pub(crate) not_after: Option<String>,
    pub(crate) key_match: Option<String>,
    /// As the service sent it.
    pub(crate) bound_sites: Value,
}

impl Uploaded {
    /// Takes secrets out of what is shown as the service sent it.
    pub(super) fn clean(&mut self, redactor: &Redactor) {
        redactor.clean_json(&mut self.bound_sites);
        for text in [&mut self.not_after, &mut self.key_match].into_iter().flatten() {
            *text = redactor.clean(text);
        }
    }
}

pub(super) fn uploaded(json: &Value) -> Option<Uploaded> {
    let fields = json.as_object()?;
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(Uploaded {
        id: number(fields.get("id")?)?,
        created: fields.get("created").and_then(Value::as_bool),
        not_after: text("not_after"),
        key_match: text("key_match"),
        bound_sites: fields.get("bound_sites").cloned().unwrap_or_else(|| Value::Array(Vec::new())),
    })
}

pub(super) fn records(json: &Value) -> Option<Vec<Record>> {
    list(json)?.iter().map(record).collect()
}

pub(super) fn sites(json: &Value) -> Option<Vec<Site>> {
    let sites = list(json)?;
    if let Some(total) = json.get("total").and_then(Value::as_u64).filter(|total| *total > sites.len() as u64)
    {
        log::warn!("the service lists {} of {total} sites", sites.len());
    }
    let read: Option<Vec<Option<Site>>> = sites.iter().map(site).collect();
    Some(read?.into_iter().flatten().collect())
}

fn record(json: &Value) -> Option<Record> {
    let fields = json.as_object()?;
    let kind = match fields.get("type").and_then(Value::as_str) {
        Some("lets") => RecordType::System,
        other => RecordType::Other(other.unwrap_or_default().to_owned()),
    };
    Some(Record { id: number(fields.get("id")?)?, domains: domains(fields), kind })
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

/// `Some(None)` for a site whose domain is no name: nothing can cover it, and it must not hide the others.
#[expect(clippy::option_option, reason = "unreadable, nameless and readable are three things")]
fn site(json: &Value) -> Option<Option<Site>> {
    let fields = json.as_object()?;
    let id = number(fields.get("id")?)?;
    let Ok(domain) = fields.get("domain")?.as_str()?.parse() else {
        log::warn!("site {id} is left out: its domain is not a domain name");
        return Some(None);
    };
    Some(Some(Site {
        id,
        domain,
        cert_id: fields.get("cert_id").and_then(number).filter(|id| *id != 0),
        config_synced: fields.get("config_synced").and_then(Value::as_bool).unwrap_or(false),
    }))
}

/// The list in an answer: bare, or under any key, or one level deeper (`{"data":{"items":[…]}}`).
fn list(json: &Value) -> Option<&Vec<Value>> {
    fn arrays(json: &Value, depth: usize) -> Vec<&Vec<Value>> {
        match json {
            Value::Array(items) if items.iter().all(Value::is_object) => vec![items],
            Value::Object(map) if depth > 0 => {
                map.values().flat_map(|value| arrays(value, depth - 1)).collect()
            }
            _ => Vec::new(),
        }
    }
    let found = arrays(json, 2);
    let longest =
        found.iter().max_by_key(|items| items.iter().filter(|item| item.get("id").is_some()).count())?;
    Some(*longest)
}

/// An identifier, as a number or as digits in a string.
fn number(json: &Value) -> Option<u64> {
    json.as_u64().or_else(|| json.as_str()?.parse().ok())
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
        ] {
            let found = records(&wrapped).unwrap();
            assert_eq!((found.len(), found[0].id, &found[0].kind), (1, 5, &RecordType::System), "{wrapped}");
        }
        for empty in [json!([]), json!({"certs": []})] {
            assert_eq!(records(&empty).unwrap().len(), 0);
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
            let found =
                sites(&json!({"sites": [{"id": 1, "domain": "a.example", "cert_id": cert_id}]})).unwrap();
            assert_eq!(found[0].cert_id, None);
            assert!(!found[0].config_synced);
        }
    }

    #[test]
    fn several_names_of_a_record_come_in_several_forms() {
        for domain in
            [json!("a.example,b.example"), json!("a.example b.example"), json!(["a.example", "b.example"])]
        {
            let found = records(&json!([{"id": 1, "domain": domain}])).unwrap();
            assert_eq!(found[0].domains.len(), 2);
        }
    }
}
