//! Site endpoints (sections 4.4 to 4.9).

use http::StatusCode;
use rusqlite::{Connection, Transaction};
use serde_json::{Map, Value};

use super::call::{ApiResult, Call};
use crate::quirks::{DuplicateSite, EnableRefused, NoPackage};
use crate::response::RequestError;
use crate::store::packages::Package;
use crate::store::sites::{self, Site};
use crate::store::{certs, edge, packages};
use crate::{names, site_fields};

pub(super) fn list(call: &Call<'_>) -> ApiResult {
    let sites = sites::list(call.app.store().read(), Some(call.account))?;
    Ok(call.renderer().site_list(&sites))
}

pub(super) fn get(call: &Call<'_>, id: i64) -> ApiResult {
    let site = find(call, call.app.store().read(), id)?;
    Ok(call.renderer().single_site(&site))
}

pub(super) fn create(call: &Call<'_>) -> ApiResult {
    let body = call.json_object()?;
    let domain = body.get("domain").and_then(Value::as_str).unwrap_or_default();
    if !names::is_domain(domain) {
        return Err(RequestError::bad_request("domain is required and must be a domain name"));
    }
    let mut store = call.app.store();
    let (site, ignored) = store.write(|t| {
        if sites::by_domain(t, domain)?.is_some() {
            return Err(duplicate_site(call, domain));
        }
        let change = SiteChange::parse(call, t, &body, &["domain"])?;
        let package = package_for_new_site(call, t, change.package)?;
        let mut settings = site_fields::defaults();
        settings.extend(change.settings);
        let new = Site {
            account: call.account,
            domain: domain.to_owned(),
            enabled: true,
            cert_id: change.cert_id.apply(None),
            package_id: Some(package.id),
            settings,
            push_at: Some(call.push_at()),
            created_at: call.now_seconds(),
            ..Site::default()
        };
        let id = sites::insert(t, &new)?;
        Ok((find(call, t, id)?, change.ignored))
    })?;
    call.app.pushes.wake();
    let renderer = call.renderer();
    Ok(renderer.saved_site(renderer.created_status(), &site, &ignored))
}

pub(super) fn update(call: &Call<'_>, id: i64) -> ApiResult {
    let mut store = call.app.store();
    let (site, ignored) = store.write(|t| {
        let mut site = find(call, t, id)?;
        let change = SiteChange::parse(call, t, &call.json_object()?, &[])?;
        if let Some(package) = change.package {
            if packages::get(t, package)?.is_none_or(|package| package.account != call.account) {
                return Err(not_owned("package_id"));
            }
            site.package_id = Some(package);
        }
        site.cert_id = change.cert_id.apply(site.cert_id);
        site.settings.extend(change.settings);
        save(call, t, &mut site)?;
        Ok((site, change.ignored))
    })?;
    call.app.pushes.wake();
    Ok(call.renderer().saved_site(StatusCode::OK, &site, &ignored))
}

/// Enables a site with the next push, unless its package is unusable (section 3).
pub(super) fn enable(call: &Call<'_>, id: i64) -> ApiResult {
    let mut store = call.app.store();
    let is_enabled = store.write(|t| {
        let mut site = find(call, t, id)?;
        let package = site.package_id.map(|id| packages::get(t, id)).transpose()?.flatten();
        if package.is_some_and(|package| !package.is_usable(call.now_seconds())) {
            return Ok::<_, RequestError>(false);
        }
        site.enabled = true;
        site.disabled_reason.clear();
        save(call, t, &mut site)?;
        Ok(true)
    })?;
    call.app.pushes.wake();
    if is_enabled { Ok(call.renderer().site_action(id)) } else { enable_refused(call, id) }
}

/// Disables a site and removes it from the edge immediately.
pub(super) fn disable(call: &Call<'_>, id: i64) -> ApiResult {
    let mut store = call.app.store();
    store.write(|t| {
        let mut site = find(call, t, id)?;
        site.enabled = false;
        edge::remove(t, id)?;
        save(call, t, &mut site)
    })?;
    call.app.edge.remove(id);
    call.app.pushes.wake();
    Ok(call.renderer().site_action(id))
}

pub(super) fn delete(call: &Call<'_>, id: i64) -> ApiResult {
    let mut store = call.app.store();
    store.write(|t| {
        find(call, t, id)?;
        Ok::<_, RequestError>(sites::delete(t, id)?)
    })?;
    call.app.edge.remove(id);
    Ok(call.renderer().site_action(id))
}

/// The changes that a request body asks for.
#[derive(Default)]
struct SiteChange {
    cert_id: CertIdChange,
    package: Option<i64>,
    settings: Map<String, Value>,
    /// Names of the fields that are not writable.
    ignored: Vec<String>,
}

impl SiteChange {
    /// Parses a body, skipping the fields in `handled`, which the caller reads itself.
    fn parse(
        call: &Call<'_>,
        t: &Transaction<'_>,
        body: &Map<String, Value>,
        handled: &[&str],
    ) -> Result<Self, RequestError> {
        let mut change = Self::default();
        for (name, value) in body.iter().filter(|(name, _)| !handled.contains(&name.as_str())) {
            match (name.as_str(), site_fields::find(name)) {
                ("cert_id", _) => change.cert_id = CertIdChange::parse(call, t, value)?,
                ("package_id", _) => change.package = Some(parse_id(name, value)?),
                (_, Some(field)) => {
                    let value = field.accept(value).map_err(RequestError::bad_request)?;
                    change.settings.insert(name.clone(), value);
                }
                (_, None) => change.ignored.push(name.clone()),
            }
        }
        for name in &change.ignored {
            call.notice(format!("{name} is not a writable field and was ignored"));
        }
        Ok(change)
    }
}

/// What a body changes about the binding.
#[derive(Default)]
enum CertIdChange {
    #[default]
    Unchanged,
    Unbind,
    Bind(i64),
}

impl CertIdChange {
    /// Parses `cert_id`. Null and 0 stand for no certificate.
    fn parse(call: &Call<'_>, t: &Transaction<'_>, value: &Value) -> Result<Self, RequestError> {
        if value.is_null() || site_fields::as_integer(value) == Some(0) {
            return Ok(Self::Unbind);
        }
        let id = parse_id("cert_id", value)?;
        match certs::get(t, id)? {
            Some(cert) if cert.account == call.account => Ok(Self::Bind(id)),
            _ => Err(not_owned("cert_id")),
        }
    }

    fn apply(self, before: Option<i64>) -> Option<i64> {
        match self {
            Self::Unchanged => before,
            Self::Unbind => None,
            Self::Bind(id) => Some(id),
        }
    }
}

fn parse_id(name: &str, value: &Value) -> Result<i64, RequestError> {
    site_fields::as_integer(value)
        .ok_or_else(|| RequestError::bad_request(format!("{name} must be a number")))
}

fn find(call: &Call<'_>, c: &Connection, id: i64) -> Result<Site, RequestError> {
    sites::get(c, call.account, id)?.ok_or_else(|| RequestError::not_found("not found"))
}

/// Returns the requested package, or else the account's first usable one (section 4.6, rule 3).
fn package_for_new_site(
    call: &Call<'_>,
    t: &Transaction<'_>,
    requested: Option<i64>,
) -> Result<Package, RequestError> {
    let now = call.now_seconds();
    let package = match requested {
        Some(id) => {
            packages::get(t, id)?.filter(|package| package.account == call.account && package.is_usable(now))
        }
        None => packages::first_usable(t, call.account, now)?,
    };
    package.ok_or_else(|| no_package(call))
}

/// Saves a changed site and schedules its push.
fn save(call: &Call<'_>, t: &Transaction<'_>, site: &mut Site) -> Result<(), RequestError> {
    site.push_at = Some(call.push_at());
    site.updated_at = call.now_seconds();
    Ok(sites::save(t, site)?)
}

fn not_owned(name: &str) -> RequestError {
    RequestError::new(StatusCode::FORBIDDEN, format!("{name} does not belong to this account"))
}

fn duplicate_site(call: &Call<'_>, domain: &str) -> RequestError {
    let status = match call.app.quirks.duplicate_site {
        DuplicateSite::Conflict => StatusCode::CONFLICT,
        DuplicateSite::BadRequest => StatusCode::BAD_REQUEST,
        DuplicateSite::OkFalse => StatusCode::OK,
    };
    RequestError::new(status, format!("{domain} already has a site"))
}

fn no_package(call: &Call<'_>) -> RequestError {
    let status = match call.app.quirks.no_package {
        NoPackage::BadRequest => StatusCode::BAD_REQUEST,
        NoPackage::PaymentRequired => StatusCode::PAYMENT_REQUIRED,
        NoPackage::Forbidden => StatusCode::FORBIDDEN,
        NoPackage::OkFalse => StatusCode::OK,
    };
    RequestError::new(status, "the account has no usable package")
}

fn enable_refused(call: &Call<'_>, id: i64) -> ApiResult {
    let status = match call.app.quirks.enable_refused {
        EnableRefused::Conflict => StatusCode::CONFLICT,
        EnableRefused::Forbidden => StatusCode::FORBIDDEN,
        EnableRefused::PaymentRequired => StatusCode::PAYMENT_REQUIRED,
        EnableRefused::BadRequest => StatusCode::BAD_REQUEST,
        EnableRefused::OkFalse => StatusCode::OK,
        EnableRefused::Silent => return Ok(call.renderer().site_action(id)),
    };
    let message = "the package is exhausted or expired; top it up, renew or extend it first";
    Err(RequestError::new(status, message))
}
