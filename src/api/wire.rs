//! The objects of the API, read leniently: what the API document does not show is accepted in every sensible form.
//!
//! Elements of lists are cleaned of secrets here, all other responses in `response.rs`.

use serde::Deserialize;
use serde_json::{Map, Value};
use smol_str::SmolStr;

use super::envelope::{ListKind, find_object, is_set};
use super::listing::{Element, Unreadable, memory};
use super::timestamp::Timestamp;
use crate::names::{self, Domain};
use crate::secret::{Redactor, WITHHELD};
use crate::text::sanitize;

/// Longest name in DNS, with the final dot (RFC 1035, section 2.3.4).
const MAX_HOST_NAME: usize = 254;

/// A certificate stored by the service (section 2.1). Compact, like [`Site`]: an account may have a million.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) id: u64,
    /// The record's name if that is a domain; by default the domain of the upload.
    pub(crate) name: Option<Domain>,
    /// The domains that it is stored for; other values are left out.
    pub(crate) domains: Box<[Domain]>,
    /// Whether the system itself issues and renews the certificate: type `lets`.
    pub(crate) is_system_issued: bool,
}

/// A domain that the service accelerates (section 2.3).
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) id: u64,
    pub(crate) domain: Domain,
    /// The record that it is bound to; `None`: no record, or the binding is unreadable.
    pub(crate) cert_id: Option<u64>,
    /// The JSON of a binding that is unreadable; untrusted text.
    pub(crate) unreadable_cert_id: Option<Box<str>>,
    /// Whether the service reports the configuration as pushed to the edge; absent means false.
    pub(crate) config_synced: bool,
    /// Host name of the site's edge; untrusted text, but not longer than a host name can be.
    pub(crate) cname: Option<SmolStr>,
    /// Whether acceleration is on; absent means true.
    pub(crate) enabled: bool,
    /// Whether its edge listens on HTTPS; absent means true.
    pub(crate) https_enabled: bool,
    /// Why the system switched it off; untrusted text.
    pub(crate) disabled_reason: Option<Box<str>>,
}

#[cfg(test)]
impl Site {
    /// A site whose configuration is pushed and whose edge serves HTTPS.
    pub(crate) fn example(id: u64, domain: &str, cert_id: Option<u64>) -> Self {
        Self {
            id,
            domain: domain.parse().unwrap(),
            cert_id,
            unreadable_cert_id: None,
            config_synced: true,
            cname: None,
            enabled: true,
            https_enabled: true,
            disabled_reason: None,
        }
    }
}

/// An object together with its JSON, for commands that show all of it.
#[derive(Clone, Debug)]
pub(crate) struct ApiObject<T> {
    pub(crate) known: T,
    pub(crate) json: Map<String, Value>,
}

/// The response to creating or updating a site.
#[derive(Clone, Debug)]
pub(crate) struct SavedSite {
    /// `None` if the response does not show it.
    pub(crate) site: Option<ApiObject<Site>>,
    /// Fields that were dropped; any entry is a failure (section 4.7).
    pub(crate) ignored_fields: Vec<String>,
}

/// The response to an upload (section 4.2).
#[derive(Clone, Debug)]
pub(crate) struct Uploaded {
    /// Whether it says `ok: true`.
    pub(crate) is_ok: bool,
    pub(crate) id: u64,
    pub(crate) created: Option<bool>,
    /// The domains that it shows; untrusted text.
    pub(crate) domains: Vec<String>,
    /// `None` if it is not shown.
    pub(crate) not_after: Option<Timestamp>,
    /// `None` if it is not shown; untrusted text.
    pub(crate) key_match: Option<String>,
    /// As the service sent it; its shape is not documented.
    pub(crate) bound_sites: Value,
}

/// An element of a list: the object alone, or with its JSON.
pub(crate) trait Listed: Sized {
    const KIND: ListKind;

    /// Whether all of its JSON is kept.
    const KEEPS_JSON: bool = false;

    /// Reads an element from its fields and, if that is kept, its JSON; both are free of secrets.
    fn read(fields: &Fields, json: Value) -> Option<Self>;

    fn id(&self) -> u64;

    /// The memory that it takes, apart from its own size and its JSON.
    fn heap_bytes(&self) -> usize;
}

/// The fields that sites and records are read from; `null` is the same as an absent one.
#[derive(Deserialize)]
pub(crate) struct Fields {
    id: Option<Value>,
    domain: Option<Value>,
    domains: Option<Value>,
    name: Option<Value>,
    #[serde(rename = "type")]
    kind: Option<Value>,
    cert_id: Option<Value>,
    config_synced: Option<Value>,
    cname: Option<Value>,
    enabled: Option<Value>,
    https_enabled: Option<Value>,
    disabled_reason: Option<Value>,
}

impl Fields {
    fn domains(&self) -> Vec<Domain> {
        let texts = domain_texts(self.domain.as_ref().or(self.domains.as_ref()));
        // Nearly always one. The first push would make room for four, which would stay unused when the list is shrunk.
        let mut domains = Vec::with_capacity(1);
        domains.extend(texts.filter_map(|text| text.parse::<Domain>().ok()));
        domains
    }

    /// The record that a site is bound to; absent, null and zero mean none. An error is the start of a value that is
    /// none of these: it must not be taken for an unbound site.
    fn binding(&self) -> Result<Option<u64>, String> {
        let Some(value) = &self.cert_id else { return Ok(None) };
        let id = id(value).ok_or_else(|| sanitize(&value.to_string()))?;
        Ok((id != 0).then_some(id))
    }

    /// What they show of an element that cannot be read.
    fn unreadable(&self) -> Unreadable {
        let mut domains = self.domains();
        domains.shrink_to_fit();
        let has_none =
            self.domain.as_ref().and_then(Value::as_str).is_some_and(|text| text.trim().is_empty());
        Unreadable {
            id: self.id.as_ref().and_then(id),
            records: self.binding().ok().map(Vec::from_iter),
            domains: (has_none || !domains.is_empty()).then_some(domains),
        }
    }
}

/// The memory that domains take, also while their list grows.
fn domain_bytes(domains: &[Domain]) -> usize {
    domains.iter().map(|domain| 2 * size_of::<Domain>() + domain.heap_bytes()).sum()
}

impl<T: Listed> Element for T {
    type Fields = Fields;

    fn from_fields(mut fields: Fields, text: &str, redactor: &Redactor) -> (Result<Self, Unreadable>, usize) {
        // An array would be taken for the values of the fields.
        if !text.starts_with('{') {
            return (Err(Unreadable::default()), 0);
        }
        let mut json = Value::Null;
        if T::KEEPS_JSON {
            json = serde_json::from_str(text).unwrap_or_default();
            redactor.clean_json(&mut json);
        }
        let json_bytes = memory(&json);
        let Fields { id, domain, domains, name, kind, cert_id, cname, disabled_reason, .. } = &mut fields;
        let texts = [id, domain, domains, name, kind, cert_id, cname, disabled_reason];
        texts.into_iter().flatten().for_each(|value| redactor.clean_json(value));
        let element = T::read(&fields, json).ok_or_else(|| fields.unreadable());
        let heap_bytes = match &element {
            Ok(element) => element.heap_bytes(),
            // One record at most.
            Err(element) => size_of::<u64>() + element.domains.as_deref().map_or(0, domain_bytes),
        };
        (element, heap_bytes + json_bytes)
    }
}

impl<T: Listed> Listed for ApiObject<T> {
    const KIND: ListKind = T::KIND;
    const KEEPS_JSON: bool = true;

    fn read(fields: &Fields, json: Value) -> Option<Self> {
        let Value::Object(json) = json else { return None };
        Some(Self { known: T::read(fields, Value::Null)?, json })
    }

    fn id(&self) -> u64 {
        self.known.id()
    }

    fn heap_bytes(&self) -> usize {
        self.known.heap_bytes()
    }
}

impl Listed for Record {
    const KIND: ListKind = ListKind::RECORDS;

    fn read(fields: &Fields, _: Value) -> Option<Self> {
        let kind = fields.kind.as_ref().and_then(Value::as_str).unwrap_or_default();
        let is_system_issued = kind.trim().eq_ignore_ascii_case("lets");
        let domains = fields.domains();
        let name = fields.name.as_ref().and_then(Value::as_str);
        // Nearly always the name is the domain, and need not be stored twice.
        let domain = domains.iter().find(|domain| Some(domain.spelled()) == name);
        let name = domain.cloned().or_else(|| name?.parse().ok());
        let domains = domains.into();
        Some(Self { id: id(fields.id.as_ref()?)?, name, domains, is_system_issued })
    }

    fn id(&self) -> u64 {
        self.id
    }

    fn heap_bytes(&self) -> usize {
        domain_bytes(&self.domains) + self.name.as_ref().map_or(0, Domain::heap_bytes)
    }
}

impl Listed for Site {
    const KIND: ListKind = ListKind::SITES;

    fn read(fields: &Fields, _: Value) -> Option<Self> {
        let flag = |value: &Option<Value>| value.as_ref().and_then(Value::as_bool);
        let binding = fields.binding();
        Some(Self {
            id: id(fields.id.as_ref()?)?,
            domain: fields.domain.as_ref()?.as_str()?.parse().ok()?,
            cert_id: binding.as_ref().ok().copied().flatten(),
            unreadable_cert_id: binding.err().map(Into::into),
            config_synced: flag(&fields.config_synced).unwrap_or(false),
            cname: non_empty_text(fields.cname.as_ref())
                .filter(|name| name.len() <= MAX_HOST_NAME)
                .map(Into::into),
            enabled: flag(&fields.enabled).unwrap_or(true),
            https_enabled: flag(&fields.https_enabled).unwrap_or(true),
            disabled_reason: non_empty_text(fields.disabled_reason.as_ref()).map(Into::into),
        })
    }

    fn id(&self) -> u64 {
        self.id
    }

    fn heap_bytes(&self) -> usize {
        let texts = [&self.unreadable_cert_id, &self.disabled_reason].into_iter().flatten();
        self.domain.heap_bytes()
            + self.cname.as_ref().map_or(0, names::heap_bytes)
            + texts.map(|text| text.len() + 16).sum::<usize>()
    }
}

impl Record {
    /// The domains that it is stored for, and its name unless that is one of them, as it nearly always is: left in, it would
    /// enlarge the tables of a listing while they are made.
    pub(crate) fn all_domains(&self) -> impl Iterator<Item = &Domain> {
        self.domains.iter().chain(self.name.iter().filter(|name| !self.domains.contains(name)))
    }
}

impl Site {
    /// Whether it is known to be bound to no record.
    pub(crate) fn is_unbound(&self) -> bool {
        self.cert_id.is_none() && self.unreadable_cert_id.is_none()
    }

    /// Whether its edge serves a certificate, if one is bound.
    pub(crate) fn serves_https(&self) -> bool {
        self.enabled && self.https_enabled
    }
}

impl ApiObject<Site> {
    /// The response of `GET /api/sites/{id}`: bare or in a wrapper.
    pub(super) fn of_site(json: &Value) -> Option<Self> {
        find_object(json, &|value| Self::read(&Fields::deserialize(value).ok()?, value.clone()))
    }
}

impl SavedSite {
    /// Accepts any object, even one without the site.
    pub(super) fn from_json(json: &Value) -> Option<Self> {
        json.as_object()?;
        Some(Self { site: ApiObject::of_site(json), ignored_fields: ignored_fields(json) })
    }
}

impl Uploaded {
    /// Whether it says that the upload created the record.
    pub(crate) fn is_new(&self) -> bool {
        self.created == Some(true)
    }

    pub(crate) fn from_json(json: &Value) -> Option<Self> {
        let fields = json.as_object()?;
        let key_match = fields.get("key_match").filter(|value| !value.is_null() && *value != "");
        Some(Self {
            is_ok: fields.get("ok") == Some(&Value::Bool(true)),
            id: id(fields.get("id")?).filter(|id| *id != 0)?,
            created: fields.get("created").and_then(Value::as_bool),
            domains: match fields.get("domain").or_else(|| fields.get("domains")) {
                Some(shown @ (Value::Bool(_) | Value::Number(_) | Value::Object(_))) => {
                    vec![shown.to_string()]
                }
                shown => domain_texts(shown).map(str::to_owned).collect(),
            },
            not_after: Timestamp::from_json(fields.get("not_after")),
            key_match: key_match.map(text_or_json),
            bound_sites: fields.get("bound_sites").cloned().unwrap_or_else(|| Value::Array(Vec::new())),
        })
    }
}

/// A text that is not empty.
pub(super) fn non_empty_text(value: Option<&Value>) -> Option<&str> {
    value?.as_str().filter(|text| !text.is_empty())
}

/// The names in a field: one, several in one string, or an array of them. Withheld text yields none.
fn domain_texts(domain: Option<&Value>) -> impl Iterator<Item = &str> {
    let text = domain.and_then(Value::as_str).filter(|text| *text != WITHHELD).unwrap_or_default();
    let items = domain.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let texts = text.split([',', ';', ' ', '\n']).chain(items);
    texts.map(str::trim).filter(|text| !text.is_empty())
}

/// From here on, several integers share one floating-point number.
const FIRST_ROUNDED: f64 = 9_007_199_254_740_992.0;

/// An identifier: a number (also `5.0`) or digits in a string.
pub(super) fn id(json: &Value) -> Option<u64> {
    let is_exact = |number: &f64| number.fract() == 0.0 && *number < FIRST_ROUNDED;
    let whole = || json.as_f64().filter(is_exact)?.to_string().parse().ok();
    json.as_u64().or_else(whole).or_else(|| json.as_str()?.parse().ok())
}

/// The text of a string; the JSON of any other value.
pub(super) fn text_or_json(json: &Value) -> String {
    json.as_str().map_or_else(|| json.to_string(), str::to_owned)
}

/// The names of dropped fields, beside the site or in its wrapper.
fn ignored_fields(json: &Value) -> Vec<String> {
    // A missed name would make a failure look like a success, so every value that is not empty counts.
    let own = match json.get("ignored_fields") {
        Some(Value::Array(items)) => items.iter().map(text_or_json).collect(),
        Some(Value::Object(fields)) => fields.keys().cloned().collect(),
        other => Vec::from_iter(other.filter(|value| is_set(value)).map(text_or_json)),
    };
    if !own.is_empty() {
        return own;
    }
    ["data", "result"].iter().filter_map(|wrapper| json.get(*wrapper)).flat_map(ignored_fields).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read<T: Listed>(json: &Value) -> T {
        T::from_fields(Fields::deserialize(json).unwrap(), "{", &Redactor::default()).0.unwrap()
    }

    #[test]
    fn id_is_number_or_digits() {
        for (json, id) in [
            (json!("1042"), Some(1042)),
            (json!(1042), Some(1042)),
            (json!(1042.0), Some(1042)),
            (json!("x"), None),
            (Value::Null, None),
            (json!(0), None),
            (json!("0"), None),
            (json!(-1), None),
            (json!(-0.0), None),
            (json!(1.5), None),
            (json!(9_007_199_254_740_993_u64), Some(9_007_199_254_740_993)),
            (json!(9_007_199_254_740_991.0), Some(9_007_199_254_740_991)),
            // Might have been an odd number before it was rounded.
            (json!(9_007_199_254_740_992.0), None),
            (json!(u64::MAX), Some(u64::MAX)),
            (json!(18_446_744_073_709_551_616.0), None),
            (json!("18446744073709551616"), None),
            (json!(1e308), None),
            (json!(vec![1; 1_000_000]), None),
        ] {
            assert_eq!(
                Uploaded::from_json(&json!({"id": json})).map(|uploaded| uploaded.id),
                id,
                "{:.40}",
                json.to_string()
            );
        }
    }

    #[test]
    fn unreadable_binding_is_not_unbound() {
        let site =
            |cert_id: &Value| -> Site { read(&json!({"id": 1, "domain": "a.example", "cert_id": cert_id})) };
        for cert_id in [json!(null), json!(0), json!("0"), json!(0.0)] {
            let site = site(&cert_id);
            assert_eq!(
                (site.is_unbound(), site.config_synced, site.serves_https()),
                (true, false, true),
                "{cert_id}"
            );
        }
        for cert_id in [json!(5), json!("5"), json!(5.0)] {
            assert_eq!(site(&cert_id).cert_id, Some(5), "{cert_id}");
        }
        for cert_id in
            [json!("five"), json!(""), json!(-1), json!(5.5), json!(false), json!([5]), json!({"id": 5})]
        {
            let site = site(&cert_id);
            assert!(!site.is_unbound() && site.cert_id.is_none(), "{cert_id}");
            assert_eq!(site.unreadable_cert_id, Some(cert_id.to_string().into()));
        }
        assert!(read::<Site>(&json!({"id": 1, "domain": "a.example"})).is_unbound());
    }

    #[test]
    fn record_domains_have_several_forms() {
        for domain in
            [json!("a.example,b.example"), json!("a.example b.example"), json!(["a.example", "b.example"])]
        {
            let record: Record = read(&json!({"id": 1, "domain": domain, "type": "lets"}));
            assert_eq!((record.domains.len(), record.is_system_issued), (2, true), "{domain}");
        }
    }

    #[test]
    fn system_type_is_recognised_in_any_case() {
        for kind in ["lets", "Lets", "LETS", " lets "] {
            let record: Record = read(&json!({"id": 1, "type": kind}));
            assert!(record.is_system_issued, "{kind}");
        }
        for kind in [json!("let"), json!(""), json!(null), json!(["lets"])] {
            let record: Record = read(&json!({"id": 1, "type": kind}));
            assert!(!record.is_system_issued, "{kind}");
        }
    }

    #[test]
    fn ignored_fields_need_no_site() {
        for (json, expected) in [
            (json!({"ok": true, "ignored_fields": ["a", 1]}), &["a", "1"][..]),
            (json!({"ok": true, "ignored_fields": "http3"}), &["http3"]),
            (json!({"ok": true, "ignored_fields": {"http3": "not writable"}}), &["http3"]),
            (json!({"ok": true, "data": {"site": {}, "ignored_fields": ["http3"]}}), &["http3"]),
        ] {
            let saved = SavedSite::from_json(&json).unwrap();
            assert!(saved.site.is_none());
            assert_eq!(saved.ignored_fields, expected, "{json}");
        }
    }
}
