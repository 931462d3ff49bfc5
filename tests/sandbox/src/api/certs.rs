//! Certificate endpoints (sections 4.1 to 4.3).

use http::StatusCode;
use rusqlite::Transaction;
use serde_json::{Map, Value, json};

use super::{Call, Outcome, Refusal, render};
use crate::quirks::{CertDomain, ForeignCert, ForeignDomain, Made, Quirks};
use crate::response::Answer;
use crate::store::certs::{self, Cert, Content};
use crate::store::sites::{self, Site};
use crate::validation::{self, Accepted};

const UPLOAD_FIELDS: [&str; 4] = ["domain", "cert_pem", "key_pem", "name"];

pub(super) fn list(call: &Call<'_>) -> Outcome {
    let certs = certs::list(call.app.store().read(), Some(call.account))?;
    Ok(Answer::json(StatusCode::OK, &render::cert_list(&call.app.quirks, &certs)))
}

pub(super) fn download(call: &Call<'_>, id: i64) -> Outcome {
    let cert = certs::get(call.app.store().read(), id)?.filter(|cert| cert.account == call.account);
    let status = match call.app.quirks.foreign_cert {
        ForeignCert::NotFound => StatusCode::NOT_FOUND,
        ForeignCert::Forbidden => StatusCode::FORBIDDEN,
    };
    let cert = cert.ok_or_else(|| Refusal::new(status, "there is no such certificate"))?;
    Ok(Answer::json(StatusCode::OK, &render::download(&call.app.quirks, &cert)))
}

/// The idempotent upload: the rules, then the oldest record of the domain is replaced, or a new one is bound to
/// the sites that have none.
pub(super) fn upload(call: &Call<'_>) -> Outcome {
    let body = call.object()?;
    notice_unknown(call, &body);
    let domain = required(&body, "domain")?;
    let (cert_pem, key_pem) = (required(&body, "cert_pem")?, required(&body, "key_pem")?);
    let name = optional(&body, "name")?;
    let mut store = call.app.store();
    let (created, response) = store.write(|t| {
        let site = sites::by_domain(t, domain)?.filter(|site| site.account == call.account);
        let site = site.ok_or_else(|| foreign_domain(&call.app.quirks, domain))?;
        let accepted = validation::check(cert_pem, key_pem, Some(domain), call.now)
            .map_err(|broken| Refusal::bad(broken.to_string()))?;
        let content = Content { account: call.account, domain: &site.domain, name, cert_pem, key_pem };
        let (id, bound) = match record_of(call, t, domain)? {
            Some(record) => {
                certs::replace(t, record.id, &content)?;
                sites::mark_bound(t, record.id, call.push_at())?;
                (record.id, None)
            }
            None => bind_new(call, t, &content, &accepted).map(|(id, bound)| (id, Some(bound)))?,
        };
        let created = bound.is_some();
        Ok::<_, Refusal>((created, uploaded(call, id, &site.domain, bound.as_deref(), &accepted)))
    })?;
    call.app.pushes.wake();
    let status = if created { made(&call.app.quirks) } else { StatusCode::OK };
    Ok(Answer::json(status, &response))
}

/// The record that "already exists for the domain".
fn record_of(call: &Call<'_>, t: &Transaction<'_>, domain: &str) -> rusqlite::Result<Option<Cert>> {
    match call.app.quirks.cert_domain {
        CertDomain::Declared => certs::oldest_for(t, call.account, domain),
        CertDomain::Commas | CertDomain::Spaced => certs::oldest_with(t, call.account, domain),
    }
}

/// The plain create that section 4.2 warns of: always another record, never a binding.
pub(super) fn create(call: &Call<'_>) -> Outcome {
    let body = call.object()?;
    notice_unknown(call, &body);
    let (cert_pem, key_pem) = (required(&body, "cert_pem")?, required(&body, "key_pem")?);
    let (domain, name) = (optional(&body, "domain")?, optional(&body, "name")?);
    let accepted = validation::check(cert_pem, key_pem, domain, call.now)
        .map_err(|broken| Refusal::bad(broken.to_string()))?;
    let first = accepted.leaf.names.first().map(String::as_str);
    let domain = domain.or(first).ok_or_else(|| Refusal::bad("the certificate has no SAN entry"))?;
    let content = Content { account: call.account, domain, name, cert_pem, key_pem };
    let mut store = call.app.store();
    let id = store.write(|t| certs::insert(t, &content))?;
    let cert = certs::get(store.read(), id)?.ok_or_else(Refusal::not_found)?;
    Ok(Answer::json(made(&call.app.quirks), &render::record(&call.app.quirks, &cert)))
}

/// Status for something that was not there before.
pub(super) fn made(quirks: &Quirks) -> StatusCode {
    match quirks.made {
        Made::Ok => StatusCode::OK,
        Made::Created => StatusCode::CREATED,
    }
}

fn bind_new(
    call: &Call<'_>,
    t: &Transaction<'_>,
    content: &Content<'_>,
    accepted: &Accepted,
) -> Result<(i64, Vec<Site>), Refusal> {
    let id = certs::insert(t, content)?;
    let mut bound = sites::list(t, Some(call.account))?;
    bound.retain(|site| site.cert_id.is_none() && accepted.leaf.covers(&site.domain));
    for site in &mut bound {
        site.cert_id = Some(id);
        site.push_at = Some(call.push_at());
        site.updated_at = call.now.as_second();
        sites::save(t, site)?;
    }
    Ok((id, bound))
}

fn uploaded(call: &Call<'_>, id: i64, domain: &str, bound: Option<&[Site]>, accepted: &Accepted) -> Value {
    let quirks = &call.app.quirks;
    let created = bound.is_some();
    let bound: Vec<Value> = bound.into_iter().flatten().map(|site| render::bound(quirks, site)).collect();
    let response = json!({
        "ok": true,
        "id": id.to_string(),
        "created": created,
        "domain": domain,
        "not_after": render::time(quirks, accepted.leaf.not_after),
        "key_match": accepted.key_match.as_str(),
        "bound_sites": bound,
    });
    render::object(quirks, response)
}

fn foreign_domain(quirks: &Quirks, domain: &str) -> Refusal {
    let status = match quirks.foreign_domain {
        ForeignDomain::Forbidden => StatusCode::FORBIDDEN,
        ForeignDomain::NotFound => StatusCode::NOT_FOUND,
        ForeignDomain::BadRequest => StatusCode::BAD_REQUEST,
        ForeignDomain::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
    };
    Refusal::new(status, format!("{domain} is not the domain of a site of this account"))
}

fn notice_unknown(call: &Call<'_>, body: &Map<String, Value>) {
    for name in body.keys().filter(|name| !UPLOAD_FIELDS.contains(&name.as_str())) {
        call.notice(format!("unknown field {name}"));
    }
}

fn required<'a>(body: &'a Map<String, Value>, name: &str) -> Result<&'a str, Refusal> {
    optional(body, name)?
        .filter(|text| !text.is_empty())
        .ok_or_else(|| Refusal::bad(format!("{name} is required")))
}

fn optional<'a>(body: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Refusal> {
    match body.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Refusal::bad(format!("{name} must be a string"))),
    }
}
