//! Builds response bodies: the documented fields, and quirks where the document leaves the form open.

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::clock::iso8601;
use crate::quirks::{
    BoundSites, CertDomain, CertList, CreatedCert, CreatedStatus, ErrorBody, ExtraFields, NoDisabledReason,
    Quirks, SingleSite, SiteAction, SiteStatus, TimeFormat, TlsSettings, UnboundCertId, UploadedType,
};
use crate::response::{RequestError, Response};
use crate::store::certs::{Cert, UPLOADED};
use crate::store::sites::Site;

/// Builds response bodies under a set of quirks.
#[derive(Clone, Copy)]
pub(crate) struct Renderer<'a> {
    quirks: &'a Quirks,
}

impl<'a> Renderer<'a> {
    pub(crate) fn new(quirks: &'a Quirks) -> Self {
        Self { quirks }
    }

    /// Returns an error response. Status 200 means that only the body shows the error.
    pub(super) fn error(self, error: &RequestError) -> Response {
        let (status, message) = (error.status, error.message.as_str());
        if status == StatusCode::OK {
            return self.object(status, json!({ "ok": false, "error": message }));
        }
        let code = status.canonical_reason().unwrap_or("error").to_lowercase().replace(' ', "_");
        let body = match self.quirks.error_body {
            ErrorBody::Error => json!({ "ok": false, "error": message }),
            ErrorBody::Message => json!({ "code": u32::from(status.as_u16()) * 100 + 1, "message": message }),
            ErrorBody::Nested => json!({ "error": { "code": code, "message": message } }),
            ErrorBody::Detail => json!({ "detail": [{ "msg": message }] }),
            ErrorBody::Text => return Response::text(status, message),
            ErrorBody::Html => {
                let page =
                    format!("<html><head><title>{code}</title></head><body><p>{message}</p></body></html>");
                return Response::typed(status, "text/html; charset=utf-8", page);
            }
            ErrorBody::Empty => return Response::empty(status),
        };
        self.object(status, body)
    }

    /// Returns a response with a JSON object.
    pub(super) fn object(self, status: StatusCode, object: Value) -> Response {
        Response::json(status, &self.with_extra_fields(object))
    }

    /// Returns the status for a created record or site.
    pub(super) fn created_status(self) -> StatusCode {
        match self.quirks.created_status {
            CreatedStatus::Ok => StatusCode::OK,
            CreatedStatus::Created => StatusCode::CREATED,
        }
    }

    /// Returns the response to `GET /api/certs`.
    pub(super) fn cert_list(self, certs: &[Cert]) -> Response {
        let list: Vec<Value> = certs.iter().map(|cert| self.cert(cert)).collect();
        let total = list.len();
        let body = match self.quirks.cert_list {
            CertList::Certs => json!({ "certs": list, "total": total }),
            CertList::Bare => json!(list),
            CertList::Data => json!({ "ok": true, "data": list }),
            CertList::List => json!({ "list": list, "page": 1, "total": total }),
        };
        self.object(StatusCode::OK, body)
    }

    /// Returns a certificate with its key (section 2.2).
    pub(super) fn download(self, cert: &Cert) -> Response {
        let body = json!({
            "ok": true, "id": cert.id, "domain": self.cert_domain(cert), "name": cert.name,
            "cert_pem": cert.cert_pem, "key_pem": cert.key_pem,
        });
        self.object(StatusCode::OK, body)
    }

    /// Returns the response to `POST /api/certs`.
    pub(super) fn created_cert(self, cert: &Cert) -> Response {
        let body = match self.quirks.created_cert {
            CreatedCert::Id => json!({ "ok": true, "id": cert.id.to_string() }),
            CreatedCert::Cert => json!({ "ok": true, "cert": self.cert(cert) }),
        };
        self.object(self.created_status(), body)
    }

    /// Returns an element of `bound_sites`.
    pub(super) fn bound_site(self, site: &Site) -> Value {
        match self.quirks.bound_sites {
            BoundSites::Objects => self.with_extra_fields(json!({ "id": site.id, "domain": site.domain })),
            BoundSites::Numbers => json!(site.id),
            BoundSites::Strings => json!(site.id.to_string()),
            BoundSites::Domains => json!(site.domain),
            BoundSites::SiteIds => self.with_extra_fields(json!({ "site_id": site.id })),
        }
    }

    /// Returns the response to `GET /api/me/sites`.
    pub(super) fn site_list(self, sites: &[Site]) -> Response {
        let list: Vec<Value> = sites.iter().map(|site| self.site(site)).collect();
        self.object(StatusCode::OK, json!({ "sites": list, "total": sites.len() }))
    }

    /// Returns the response to `GET /api/sites/{id}`.
    pub(super) fn single_site(self, site: &Site) -> Response {
        let site = self.site(site);
        let body = match self.quirks.single_site {
            SingleSite::Bare => site,
            SingleSite::Site => json!({ "site": site }),
            SingleSite::OkSite => json!({ "ok": true, "site": site }),
        };
        Response::json(StatusCode::OK, &body)
    }

    /// Returns the response to creating or updating a site.
    pub(super) fn saved_site(self, status: StatusCode, site: &Site, ignored_fields: &[String]) -> Response {
        let body = json!({ "ok": true, "site": self.site(site), "ignored_fields": ignored_fields });
        self.object(status, body)
    }

    /// Returns the response to enabling, disabling or deleting a site.
    pub(super) fn site_action(self, id: i64) -> Response {
        match self.quirks.site_action {
            SiteAction::Ok => self.object(StatusCode::OK, json!({ "ok": true })),
            SiteAction::NoContent => Response::empty(StatusCode::NO_CONTENT),
            SiteAction::Empty => Response::empty(StatusCode::OK),
            SiteAction::Text => Response::text(StatusCode::OK, "success"),
            SiteAction::Detailed => {
                self.object(StatusCode::OK, json!({ "ok": true, "id": id, "message": "done" }))
            }
        }
    }

    /// Returns a site (section 2.3).
    pub(crate) fn site(self, site: &Site) -> Value {
        let mut map = self.initial_tls_settings();
        map.extend(site.settings.clone());
        let fixed = json!({
            "id": site.id, "domain": site.domain, "cname": site.cname, "enabled": site.enabled,
            "site_status": self.site_status(site), "package_id": site.package_id,
            "config_synced": site.push_at.is_none(),
            "created_at": self.time(site.created_at), "updated_at": self.time(site.updated_at),
        });
        map.extend(into_map(fixed));
        if let Some(cert_id) = self.cert_id(site) {
            map.insert("cert_id".into(), cert_id);
        }
        if let Some(reason) = self.disabled_reason(site) {
            map.insert("disabled_reason".into(), reason);
        }
        self.with_extra_fields(Value::Object(map))
    }

    /// Formats Unix seconds as ISO 8601.
    pub(super) fn time(self, seconds: i64) -> String {
        let utc = |seconds| iso8601(seconds).trim_end_matches('Z').to_owned();
        match self.quirks.time_format {
            TimeFormat::Utc => utc(seconds) + "Z",
            TimeFormat::Offset => utc(seconds) + "+00:00",
            TimeFormat::Millis => utc(seconds) + ".000Z",
            TimeFormat::East => utc(seconds.saturating_add(8 * 3600)) + "+08:00",
            TimeFormat::Naive => utc(seconds),
        }
    }

    /// Returns an element of the certificate list (section 2.1).
    fn cert(self, cert: &Cert) -> Value {
        let kind = match self.quirks.uploaded_type {
            _ if cert.kind != UPLOADED => &cert.kind,
            UploadedType::Upload => UPLOADED,
            UploadedType::Custom => "custom",
            UploadedType::Empty => "",
        };
        let domain = self.cert_domain(cert);
        self.with_extra_fields(json!({ "id": cert.id, "name": cert.name, "domain": domain, "type": kind }))
    }

    fn cert_domain(self, cert: &Cert) -> String {
        match self.quirks.cert_domain {
            CertDomain::Declared => cert.domain.clone(),
            CertDomain::Commas => cert.names().join(","),
            CertDomain::Spaced => cert.names().join(", "),
        }
    }

    fn site_status(self, site: &Site) -> &'static str {
        let [enabled, by_customer, by_system] = match self.quirks.site_status {
            SiteStatus::Running => ["running", "stopped", "overlimit"],
            SiteStatus::Active => ["active", "disabled", "disabled"],
            SiteStatus::Digits => ["1", "0", "2"],
        };
        match (site.enabled, site.disabled_reason.is_empty()) {
            (true, _) => enabled,
            (false, true) => by_customer,
            (false, false) => by_system,
        }
    }

    fn cert_id(self, site: &Site) -> Option<Value> {
        match (site.cert_id, self.quirks.unbound_cert_id) {
            (Some(id), _) => Some(json!(id)),
            (None, UnboundCertId::Null) => Some(Value::Null),
            (None, UnboundCertId::Zero) => Some(json!(0)),
            (None, UnboundCertId::Absent) => None,
        }
    }

    fn disabled_reason(self, site: &Site) -> Option<Value> {
        match (site.disabled_reason.as_str(), self.quirks.no_disabled_reason) {
            ("", NoDisabledReason::Empty) => Some(json!("")),
            ("", NoDisabledReason::Null) => Some(Value::Null),
            ("", NoDisabledReason::Absent) => None,
            (reason, _) => Some(json!(reason)),
        }
    }

    /// Returns the fields whose types are not shown, with the values they have until a request sets them.
    fn initial_tls_settings(self) -> Map<String, Value> {
        into_map(match self.quirks.tls_settings {
            TlsSettings::Strings => {
                json!({ "ssl_mode": "intermediate", "ssl_ciphers": "", "hsts": false, "ocsp_stapling": false })
            }
            TlsSettings::Numbers => {
                json!({ "ssl_mode": 2, "ssl_ciphers": [], "hsts": 0, "ocsp_stapling": 1 })
            }
            TlsSettings::Objects => json!({
                "ssl_mode": { "min": "1.2" }, "ssl_ciphers": null, "hsts": { "enabled": false },
                "ocsp_stapling": "off",
            }),
        })
    }

    /// Adds undocumented fields to an object. Other values are returned unchanged.
    fn with_extra_fields(self, mut value: Value) -> Value {
        if let Value::Object(map) = &mut value {
            match self.quirks.extra_fields {
                ExtraFields::None => {}
                ExtraFields::Flat => {
                    map.insert("request_id".into(), json!("01J8Z3V2Q4"));
                    map.insert("server_time".into(), json!(1_700_000_000));
                }
                ExtraFields::Nested => {
                    map.insert("meta".into(), json!({ "id": 1, "ok": false, "domain": "other.invalid" }));
                }
            }
        }
        value
    }
}

fn into_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
