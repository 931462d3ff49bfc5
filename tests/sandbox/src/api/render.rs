//! How answers look: the document's fields, and the quirks where it leaves the form open.

use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Refusal;
use crate::quirks::{
    BoundSites, CertDomain, CertList, ErrorBody, Extras, NoCert, NoReason, OneSite, Quirks, RecordBody,
    SiteStatus, Switched, Time, TlsSettings, UPLOADED, UploadedType,
};
use crate::response::Answer;
use crate::store::certs::Cert;
use crate::store::sites::Site;

/// A refusal. A status of 200 means that only the body says so.
pub(crate) fn refusal(quirks: &Quirks, refusal: &Refusal) -> Answer {
    let (status, message) = (refusal.status, refusal.message.as_str());
    if status == StatusCode::OK {
        return Answer::json(status, &object(quirks, json!({ "ok": false, "error": message })));
    }
    let code = status.canonical_reason().unwrap_or("error").to_lowercase().replace(' ', "_");
    let value = match quirks.error_body {
        ErrorBody::Error => json!({ "ok": false, "error": message }),
        ErrorBody::Message => json!({ "code": u32::from(status.as_u16()) * 100 + 1, "message": message }),
        ErrorBody::Nested => json!({ "error": { "code": code, "message": message } }),
        ErrorBody::Detail => json!({ "detail": [{ "msg": message }] }),
        ErrorBody::Text => return Answer::text(status, message),
        ErrorBody::Html => {
            let page =
                format!("<html><head><title>{code}</title></head><body><p>{message}</p></body></html>");
            return Answer::typed(status, "text/html; charset=utf-8", page);
        }
        ErrorBody::Empty => return Answer::empty(status),
    };
    Answer::json(status, &object(quirks, value))
}

/// Adds the unknown fields that the quirks ask for to an object.
pub(crate) fn object(quirks: &Quirks, mut value: Value) -> Value {
    if let Value::Object(map) = &mut value {
        match quirks.extras {
            Extras::Without => {}
            Extras::Flat => {
                map.insert("request_id".into(), json!("01J8Z3V2Q4"));
                map.insert("server_time".into(), json!(1_700_000_000));
            }
            Extras::Nested => {
                map.insert("meta".into(), json!({ "id": 1, "ok": false, "domain": "other.invalid" }));
            }
        }
    }
    value
}

/// The list of certificates in its wrapper.
pub(crate) fn cert_list(quirks: &Quirks, certs: &[Cert]) -> Value {
    let list: Vec<Value> = certs.iter().map(|cert| cert_element(quirks, cert)).collect();
    let total = list.len();
    match quirks.cert_list {
        CertList::Certs => object(quirks, json!({ "certs": list, "total": total })),
        CertList::Bare => json!(list),
        CertList::Data => object(quirks, json!({ "ok": true, "data": list })),
        CertList::List => object(quirks, json!({ "list": list, "page": 1, "total": total })),
    }
}

/// Section 2.2.
pub(crate) fn download(quirks: &Quirks, cert: &Cert) -> Value {
    let value = json!({
        "ok": true, "id": cert.id, "domain": cert_domain(quirks, cert), "name": cert.name,
        "cert_pem": cert.cert_pem, "key_pem": cert.key_pem,
    });
    object(quirks, value)
}

/// The answer to the plain create, whose form is not shown.
pub(crate) fn record(quirks: &Quirks, cert: &Cert) -> Value {
    match quirks.record_body {
        RecordBody::Id => object(quirks, json!({ "ok": true, "id": cert.id.to_string() })),
        RecordBody::Cert => object(quirks, json!({ "ok": true, "cert": cert_element(quirks, cert) })),
    }
}

/// An element of `bound_sites`.
pub(crate) fn bound(quirks: &Quirks, site: &Site) -> Value {
    match quirks.bound_sites {
        BoundSites::Objects => object(quirks, json!({ "id": site.id, "domain": site.domain })),
        BoundSites::Numbers => json!(site.id),
        BoundSites::Strings => json!(site.id.to_string()),
        BoundSites::Domains => json!(site.domain),
        BoundSites::SiteIds => object(quirks, json!({ "site_id": site.id })),
    }
}

/// Section 2.3.
pub(crate) fn site(quirks: &Quirks, site: &Site) -> Value {
    let mut map = tls_settings(quirks);
    map.extend(site.settings.clone());
    let fixed = json!({
        "id": site.id, "domain": site.domain, "cname": site.cname, "enabled": site.enabled,
        "site_status": status(quirks, site), "package_id": site.package_id,
        "config_synced": site.push_at.is_none(),
        "created_at": time(quirks, site.created_at), "updated_at": time(quirks, site.updated_at),
    });
    if let Value::Object(fixed) = fixed {
        map.extend(fixed);
    }
    if let Some(cert) = cert_id(quirks, site) {
        map.insert("cert_id".into(), cert);
    }
    if let Some(reason) = reason(quirks, site) {
        map.insert("disabled_reason".into(), reason);
    }
    object(quirks, Value::Object(map))
}

/// The answer of section 4.5.
pub(crate) fn one_site(quirks: &Quirks, shown: &Site) -> Value {
    match quirks.one_site {
        OneSite::Bare => site(quirks, shown),
        OneSite::Site => json!({ "site": site(quirks, shown) }),
        OneSite::OkSite => json!({ "ok": true, "site": site(quirks, shown) }),
    }
}

/// The answer of enable, disable and delete.
pub(crate) fn switched(quirks: &Quirks, id: i64) -> Answer {
    match quirks.switched {
        Switched::Ok => Answer::json(StatusCode::OK, &object(quirks, json!({ "ok": true }))),
        Switched::NoContent => Answer::empty(StatusCode::NO_CONTENT),
        Switched::Empty => Answer::empty(StatusCode::OK),
        Switched::Text => Answer::text(StatusCode::OK, "success"),
        Switched::Detailed => {
            let value = json!({ "ok": true, "id": id, "message": "done" });
            Answer::json(StatusCode::OK, &object(quirks, value))
        }
    }
}

/// A time in the service's ISO 8601.
pub(crate) fn time(quirks: &Quirks, seconds: i64) -> String {
    let utc = |seconds| {
        let text = Timestamp::from_second(seconds).map_or_else(|_| String::new(), |time| time.to_string());
        text.trim_end_matches('Z').to_owned()
    };
    match quirks.time {
        Time::Utc => utc(seconds) + "Z",
        Time::Offset => utc(seconds) + "+00:00",
        Time::Millis => utc(seconds) + ".000Z",
        Time::East => utc(seconds.saturating_add(8 * 3600)) + "+08:00",
        Time::Naive => utc(seconds),
    }
}

/// Section 2.1.
fn cert_element(quirks: &Quirks, cert: &Cert) -> Value {
    let kind = match quirks.uploaded_type {
        _ if cert.kind != UPLOADED => &cert.kind,
        UploadedType::Upload => UPLOADED,
        UploadedType::Custom => "custom",
        UploadedType::Empty => "",
    };
    let value =
        json!({ "id": cert.id, "name": cert.name, "domain": cert_domain(quirks, cert), "type": kind });
    object(quirks, value)
}

fn cert_domain(quirks: &Quirks, cert: &Cert) -> String {
    match quirks.cert_domain {
        CertDomain::Declared => cert.domain.clone(),
        CertDomain::Commas => cert.names().join(","),
        CertDomain::Spaced => cert.names().join(", "),
    }
}

fn status(quirks: &Quirks, site: &Site) -> &'static str {
    let [on, off, over] = match quirks.site_status {
        SiteStatus::Running => ["running", "stopped", "overlimit"],
        SiteStatus::Active => ["active", "disabled", "disabled"],
        SiteStatus::Digits => ["1", "0", "2"],
    };
    match (site.enabled, site.disabled_reason.is_empty()) {
        (true, _) => on,
        (false, true) => off,
        (false, false) => over,
    }
}

fn cert_id(quirks: &Quirks, site: &Site) -> Option<Value> {
    match (site.cert_id, quirks.no_cert) {
        (Some(id), _) => Some(json!(id)),
        (None, NoCert::Null) => Some(Value::Null),
        (None, NoCert::Zero) => Some(json!(0)),
        (None, NoCert::Absent) => None,
    }
}

fn reason(quirks: &Quirks, site: &Site) -> Option<Value> {
    match (site.disabled_reason.as_str(), quirks.no_reason) {
        ("", NoReason::Empty) => Some(json!("")),
        ("", NoReason::Null) => Some(Value::Null),
        ("", NoReason::Absent) => None,
        (reason, _) => Some(json!(reason)),
    }
}

/// The fields whose types are not shown, as they are before anybody sets them.
fn tls_settings(quirks: &Quirks) -> Map<String, Value> {
    let value = match quirks.tls_settings {
        TlsSettings::Words => {
            json!({ "ssl_mode": "intermediate", "ssl_ciphers": "", "hsts": false, "ocsp_stapling": false })
        }
        TlsSettings::Numbers => json!({ "ssl_mode": 2, "ssl_ciphers": [], "hsts": 0, "ocsp_stapling": 1 }),
        TlsSettings::Objects => {
            json!({ "ssl_mode": { "min": "1.2" }, "ssl_ciphers": null, "hsts": { "enabled": false }, "ocsp_stapling": "off" })
        }
    };
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
