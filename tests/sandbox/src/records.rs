//! Changes of certificate records that the API and the control port share: uploads, and replacements in place
//! that skip the service's rules.

use std::fmt;

use jiff::Timestamp;
use rusqlite::Transaction;

use crate::app::App;
use crate::quirks::CertDomain;
use crate::store::certs::{self, Cert, UploadContent};
use crate::store::edge;
use crate::store::sites::{self, Site};
use crate::validation::{self, Validated, Violation};
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

/// Why an upload was refused.
#[derive(Debug)]
pub(crate) enum UploadError {
    /// The domain is not the domain of a site of the account.
    UnownedDomain(String),
    Violation(Violation),
    Database(rusqlite::Error),
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnownedDomain(domain) => {
                write!(f, "{domain} is not the domain of a site of this account")
            }
            Self::Violation(violation) => violation.fmt(f),
            Self::Database(error) => write!(f, "database error: {error}"),
        }
    }
}

impl From<rusqlite::Error> for UploadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// Replaces the oldest record for the domain, or creates one and binds it to sites without a certificate.
pub(crate) fn upload(
    app: &App,
    content: &UploadContent<'_>,
    now: Timestamp,
) -> Result<Uploaded, UploadError> {
    let uploaded = app.store().write(|t| {
        let site = sites::by_domain(t, content.domain)?.filter(|site| site.account == content.account);
        let site = site.ok_or_else(|| UploadError::UnownedDomain(content.domain.to_owned()))?;
        let validated = validation::validate(content.cert_pem, content.key_pem, Some(content.domain), now)
            .map_err(UploadError::Violation)?;
        let content = UploadContent { domain: &site.domain, ..*content };
        let replaced = existing_record(app, t, &content)?.map(|record| record.id);
        let (id, bound_sites) = match replaced {
            Some(id) => (id, replace(app, t, id, &content, now)?),
            None => create_and_bind(app, t, &content, &validated, now)?,
        };
        let created = replaced.is_none();
        Ok::<_, UploadError>(Uploaded { id, created, domain: site.domain, validated, bound_sites })
    })?;
    app.pushes.wake();
    Ok(uploaded)
}

/// New content of a record.
pub(crate) struct Replacement<'a> {
    pub(crate) cert_pem: &'a str,
    pub(crate) key_pem: &'a str,
    /// Whether the edge serves it at once, while `config_synced` stays as it is; otherwise it is pushed.
    pub(crate) is_silent: bool,
}

/// Replaces certificate and key of a record without validation. Returns whether there is such a record.
pub(crate) fn replace_unvalidated(app: &App, id: i64, new: &Replacement<'_>) -> rusqlite::Result<bool> {
    let mut store = app.store();
    let is_found = store.write(|t| {
        let is_found = certs::replace_pem(t, id, new.cert_pem, new.key_pem)?;
        if new.is_silent {
            edge::replace_pem(t, id, new.cert_pem, new.key_pem)?;
        } else {
            sites::schedule_push_of_bound(t, id, app.push_at(clock::now()))?;
        }
        Ok::<_, rusqlite::Error>(is_found)
    })?;
    if new.is_silent {
        push::publish_record(app, store.read(), id)?;
    }
    app.pushes.wake();
    Ok(is_found)
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

/// Replaces a record, which binds no site.
fn replace(
    app: &App,
    t: &Transaction<'_>,
    id: i64,
    content: &UploadContent<'_>,
    now: Timestamp,
) -> rusqlite::Result<Vec<Site>> {
    certs::replace(t, id, content)?;
    sites::schedule_push_of_bound(t, id, app.push_at(now))?;
    Ok(Vec::new())
}

fn create_and_bind(
    app: &App,
    t: &Transaction<'_>,
    content: &UploadContent<'_>,
    validated: &Validated,
    now: Timestamp,
) -> rusqlite::Result<(i64, Vec<Site>)> {
    let id = certs::insert(t, content)?;
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
