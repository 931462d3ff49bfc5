//! Site endpoints (sections 4.4 to 4.9).

use http::StatusCode;
use rusqlite::Transaction;
use serde_json::{Map, Value, json};

use super::certs::made;
use super::{Call, Outcome, Refusal, render};
use crate::quirks::{EnableRefused, NoPackage, Taken};
use crate::response::Answer;
use crate::store::sites::{self, New, Site};
use crate::store::{certs, edge, packages};
use crate::{names, site_fields};

pub(super) fn list(call: &Call<'_>) -> Outcome {
    let quirks = &call.app.quirks;
    let sites = sites::list(call.app.store().read(), Some(call.account))?;
    let shown: Vec<Value> = sites.iter().map(|site| render::site(quirks, site)).collect();
    let response = json!({ "sites": shown, "total": sites.len() });
    Ok(Answer::json(StatusCode::OK, &render::object(quirks, response)))
}

pub(super) fn get(call: &Call<'_>, id: i64) -> Outcome {
    let site = owned(call, call.app.store().read(), id)?;
    Ok(Answer::json(StatusCode::OK, &render::one_site(&call.app.quirks, &site)))
}

pub(super) fn create(call: &Call<'_>) -> Outcome {
    let body = call.object()?;
    let domain = body.get("domain").and_then(Value::as_str).unwrap_or_default();
    if !names::is_domain(domain) {
        return Err(Refusal::bad("domain is required and must be a domain name"));
    }
    let mut store = call.app.store();
    let (site, ignored) = store.write(|t| {
        if sites::by_domain(t, domain)?.is_some() {
            return Err(taken(call, domain));
        }
        let change = Change::read(call, t, &body, &["domain"])?;
        let package = match change.package {
            Some(id) => packages::get(t, id)?.filter(|p| p.account == call.account && p.usable(now(call))),
            None => packages::pick(t, call.account, now(call))?,
        };
        let package = package.ok_or_else(|| no_package(call))?;
        let mut settings = site_fields::defaults();
        settings.extend(change.settings);
        let new = New {
            id: None,
            account: call.account,
            domain,
            enabled: true,
            cert_id: change.cert.or(None),
            package_id: Some(package.id),
            settings: &Value::Object(settings),
            push_at: Some(call.push_at()),
            now: now(call),
        };
        let id = sites::insert(t, &new)?;
        Ok((owned(call, t, id)?, change.ignored))
    })?;
    call.app.pushes.wake();
    Ok(saved(call, made(&call.app.quirks), &site, &ignored))
}

pub(super) fn update(call: &Call<'_>, id: i64) -> Outcome {
    let mut store = call.app.store();
    let (site, ignored) = store.write(|t| {
        let mut site = owned(call, t, id)?;
        let change = Change::read(call, t, &call.object()?, &[])?;
        if let Some(package) = change.package {
            if packages::get(t, package)?.is_none_or(|package| package.account != call.account) {
                return Err(foreign("package_id"));
            }
            site.package_id = Some(package);
        }
        site.cert_id = change.cert.or(site.cert_id);
        site.settings.extend(change.settings);
        save(call, t, &mut site)?;
        Ok((site, change.ignored))
    })?;
    call.app.pushes.wake();
    Ok(saved(call, StatusCode::OK, &site, &ignored))
}

/// Refused while the package cannot carry the site; otherwise the edge gets the site with the next push.
pub(super) fn enable(call: &Call<'_>, id: i64) -> Outcome {
    let mut store = call.app.store();
    let enabled = store.write(|t| {
        let mut site = owned(call, t, id)?;
        let package = site.package_id.map(|id| packages::get(t, id)).transpose()?.flatten();
        if package.is_some_and(|package| !package.usable(now(call))) {
            return Ok::<_, Refusal>(false);
        }
        site.enabled = true;
        site.disabled_reason.clear();
        save(call, t, &mut site)?;
        Ok(true)
    })?;
    call.app.pushes.wake();
    if enabled { Ok(render::switched(&call.app.quirks, id)) } else { enable_refused(call, id) }
}

/// Takes the site off the edge at once.
pub(super) fn disable(call: &Call<'_>, id: i64) -> Outcome {
    let mut store = call.app.store();
    store.write(|t| {
        let mut site = owned(call, t, id)?;
        site.enabled = false;
        edge::stop(t, id)?;
        save(call, t, &mut site)
    })?;
    call.app.edge.remove(id);
    call.app.pushes.wake();
    Ok(render::switched(&call.app.quirks, id))
}

pub(super) fn delete(call: &Call<'_>, id: i64) -> Outcome {
    let mut store = call.app.store();
    store.write(|t| {
        owned(call, t, id)?;
        Ok::<_, Refusal>(sites::delete(t, id)?)
    })?;
    call.app.edge.remove(id);
    Ok(render::switched(&call.app.quirks, id))
}

/// What a body asks to change.
struct Change {
    cert: Binding,
    package: Option<i64>,
    settings: Map<String, Value>,
    ignored: Vec<String>,
}

impl Change {
    /// Sorts a body's fields; those in `known` are the caller's.
    fn read(
        call: &Call<'_>,
        t: &Transaction<'_>,
        body: &Map<String, Value>,
        known: &[&str],
    ) -> Result<Self, Refusal> {
        let mut change =
            Self { cert: Binding::AsItIs, package: None, settings: Map::new(), ignored: Vec::new() };
        for (name, value) in body {
            match name.as_str() {
                "cert_id" => change.cert = own_cert(call, t, value)?,
                "package_id" => change.package = Some(number(name, value)?),
                name if known.contains(&name) => {}
                name => match site_fields::find(name) {
                    Some(field) => {
                        let value = field.accept(value).map_err(Refusal::bad)?;
                        change.settings.insert(name.to_owned(), value);
                    }
                    None => change.ignored.push(name.to_owned()),
                },
            }
        }
        for name in &change.ignored {
            call.notice(format!("{name} is not a writable field; it is ignored"));
        }
        Ok(change)
    }
}

/// What a body says about the certificate.
enum Binding {
    AsItIs,
    None,
    To(i64),
}

impl Binding {
    fn or(&self, before: Option<i64>) -> Option<i64> {
        match self {
            Self::AsItIs => before,
            Self::None => None,
            Self::To(id) => Some(*id),
        }
    }
}

/// `null` and 0 stand for no certificate.
fn own_cert(call: &Call<'_>, t: &Transaction<'_>, value: &Value) -> Result<Binding, Refusal> {
    if value.is_null() || site_fields::whole(value) == Some(0) {
        return Ok(Binding::None);
    }
    let id = number("cert_id", value)?;
    match certs::get(t, id)? {
        Some(cert) if cert.account == call.account => Ok(Binding::To(id)),
        _ => Err(foreign("cert_id")),
    }
}

fn number(name: &str, value: &Value) -> Result<i64, Refusal> {
    site_fields::whole(value).ok_or_else(|| Refusal::bad(format!("{name} must be a number")))
}

fn owned(call: &Call<'_>, c: &rusqlite::Connection, id: i64) -> Result<Site, Refusal> {
    sites::owned(c, call.account, id)?.ok_or_else(Refusal::not_found)
}

/// Saves, and lets the edge know later.
fn save(call: &Call<'_>, t: &Transaction<'_>, site: &mut Site) -> Result<(), Refusal> {
    site.push_at = Some(call.push_at());
    site.updated_at = now(call);
    Ok(sites::save(t, site)?)
}

fn saved(call: &Call<'_>, status: StatusCode, site: &Site, ignored: &[String]) -> Answer {
    let quirks = &call.app.quirks;
    let response = json!({ "ok": true, "site": render::site(quirks, site), "ignored_fields": ignored });
    Answer::json(status, &render::object(quirks, response))
}

fn now(call: &Call<'_>) -> i64 {
    call.now.as_second()
}

fn foreign(name: &str) -> Refusal {
    Refusal::new(StatusCode::FORBIDDEN, format!("{name} does not belong to this account"))
}

fn taken(call: &Call<'_>, domain: &str) -> Refusal {
    let status = match call.app.quirks.taken {
        Taken::Conflict => StatusCode::CONFLICT,
        Taken::BadRequest => StatusCode::BAD_REQUEST,
        Taken::OkFalse => StatusCode::OK,
    };
    Refusal::new(status, format!("{domain} is a site already"))
}

fn no_package(call: &Call<'_>) -> Refusal {
    let status = match call.app.quirks.no_package {
        NoPackage::BadRequest => StatusCode::BAD_REQUEST,
        NoPackage::PaymentRequired => StatusCode::PAYMENT_REQUIRED,
        NoPackage::Forbidden => StatusCode::FORBIDDEN,
        NoPackage::OkFalse => StatusCode::OK,
    };
    Refusal::new(status, "the account has no such usable package")
}

fn enable_refused(call: &Call<'_>, id: i64) -> Outcome {
    let status = match call.app.quirks.enable_refused {
        EnableRefused::Conflict => StatusCode::CONFLICT,
        EnableRefused::Forbidden => StatusCode::FORBIDDEN,
        EnableRefused::PaymentRequired => StatusCode::PAYMENT_REQUIRED,
        EnableRefused::BadRequest => StatusCode::BAD_REQUEST,
        EnableRefused::OkFalse => StatusCode::OK,
        EnableRefused::Silent => return Ok(render::switched(&call.app.quirks, id)),
    };
    let message = "the package is used up or expired; top it up, renew or extend it first";
    Err(Refusal::new(status, message))
}
