//! Changes of certificate records: uploads, and replacements in place that skip the service's rules.

use http::StatusCode;
use jiff::Timestamp;
use rusqlite::Transaction;

use crate::app::App;
use crate::quirks::{CertDomain, UnownedDomain};
use crate::response::RequestError;
use crate::store::certs::{self, Cert, UPLOADED, UploadContent};
use crate::store::edge;
use crate::store::sites::{self, Site};
use crate::validation::{self, Validated};
use crate::{clock, push};

/// What an upload did.
pub(crate) struct Uploaded {
    pub(crate) id: i64,
    /// Whether a record was created; otherwise one was replaced.
    pub(crate) created: bool,
    /// Domain of the site, as the site spells it.
    pub(crate) domain: String,
    pub(crate) validated: Validated,
    /// Sites that were bound to a created record.
    pub(crate) bound_sites: Vec<Site>,
}

/// Replaces the oldest record for the domain, or creates one and binds it to sites without a certificate.
pub(crate) fn upload(
    app: &App,
    content: &UploadContent<'_>,
    now: Timestamp,
) -> Result<Uploaded, RequestError> {
    let uploaded = app.store().write(|t| {
        let site = sites::by_domain(t, content.domain)?.filter(|site| site.account == content.account);
        let site = site.ok_or_else(|| unowned_domain(app, content.domain))?;
        let validated = validation::validate(content.cert_pem, content.key_pem, Some(content.domain), now)
            .map_err(RequestError::bad_request)?;
        let content = UploadContent { domain: &site.domain, ..*content };
        let replaced = existing_record(app, t, &content)?.map(|record| record.id);
        let (id, bound_sites) = match replaced {
            Some(id) => {
                certs::replace(t, id, &content)?;
                sites::schedule_push_of_bound(t, id, app.push_at(now))?;
                (id, Vec::new())
            }
            None => create_and_bind(app, t, &content, &validated, now)?,
        };
        let created = replaced.is_none();
        Ok::<_, RequestError>(Uploaded { id, created, domain: site.domain, validated, bound_sites })
    })?;
    app.pushes.wake();
    Ok(uploaded)
}

/// When a replaced certificate reaches the edge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Push {
    /// Like any change.
    Normal,
    /// At once, while `config_synced` stays as it is.
    Silent,
}

/// Replaces certificate and key of a record without validation. Returns whether there is such a record.
pub(crate) fn replace_unvalidated(
    app: &App,
    id: i64,
    cert_pem: &str,
    key_pem: &str,
    push: Push,
) -> rusqlite::Result<bool> {
    let mut store = app.store();
    let is_found = store.write(|t| {
        match push {
            Push::Normal => sites::schedule_push_of_bound(t, id, app.push_at(clock::now()))?,
            Push::Silent => edge::replace_pem(t, id, cert_pem, key_pem)?,
        }
        certs::replace_pem(t, id, cert_pem, key_pem)
    })?;
    if push == Push::Silent {
        push::publish_record(app, store.read(), id)?;
    }
    app.pushes.wake();
    Ok(is_found)
}

fn unowned_domain(app: &App, domain: &str) -> RequestError {
    let status = match app.quirks.unowned_domain {
        UnownedDomain::Forbidden => StatusCode::FORBIDDEN,
        UnownedDomain::NotFound => StatusCode::NOT_FOUND,
        UnownedDomain::BadRequest => StatusCode::BAD_REQUEST,
        UnownedDomain::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
    };
    RequestError::new(status, format!("{domain} is not the domain of a site of this account"))
}

/// Returns the record that "already exists for the domain".
fn existing_record(
    app: &App,
    t: &Transaction<'_>,
    content: &UploadContent<'_>,
) -> rusqlite::Result<Option<Cert>> {
    match app.quirks.cert_domain {
        CertDomain::Declared => certs::oldest_for_domain(t, content.account, content.domain),
        CertDomain::Commas | CertDomain::Spaced => {
            certs::oldest_with_name(t, content.account, content.domain)
        }
    }
}

fn create_and_bind(
    app: &App,
    t: &Transaction<'_>,
    content: &UploadContent<'_>,
    validated: &Validated,
    now: Timestamp,
) -> rusqlite::Result<(i64, Vec<Site>)> {
    let id = certs::insert(t, None, UPLOADED, content)?;
    let mut bound = sites::list(t, Some(content.account))?;
    bound.retain(|site| site.cert_id.is_none() && validated.leaf.covers(&site.domain));
    for site in &mut bound {
        site.cert_id = Some(id);
        site.push_at = Some(app.push_at(now));
        site.updated_at = now.as_second();
        sites::save(t, site)?;
    }
    Ok((id, bound))
}
