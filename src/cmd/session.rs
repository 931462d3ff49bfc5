//! A session with the service, for the commands that manage certificates and sites.

use std::fmt::Display;
use std::sync::Arc;

use crate::api::{ApiObject, AttemptError, Client, List, RequestError, Site};
use crate::cli::SiteName;
use crate::clock::{Deadline, Start};
use crate::context::Context;
use crate::deploy::ClientCache;
use crate::error::{CommandError, Diagnostic as _, ErrorKind, Result};
use crate::names::Domain;
use crate::report::Report;
use crate::secret::Redactor;
use crate::settings::{Connection, Layer, Layers, Settings};

/// A client for the account, and the settings and the report of the run.
pub(super) struct Session<'a> {
    pub(super) client: Client,
    pub(super) settings: Settings,
    pub(super) deadline: Deadline,
    pub(super) report: &'a mut Report,
}

/// Hint for errors about sites that are not in the account.
pub(super) const LIST_SITES_HINT: &str = "run `edgecert sites list` to see the sites of this account";

/// Hint for a refusal whose message says what is wrong.
pub(super) const SEE_REASON_HINT: &str = "see the reason that the service gives";

/// Hint for a site that contradicts the reported success.
pub(super) const CONTRADICTION_HINT: &str = "run the same command again, or contact the service's support";

/// A site that was `found` otherwise than the service reported.
pub(super) fn contradiction(found: impl Display, reported: &str) -> CommandError {
    let message = format_args!("{found}, although the service reported that {reported}");
    CommandError::new(ErrorKind::Service, message).hint(CONTRADICTION_HINT)
}

/// An operation that failed because of a request; `failure` says what could not be done, or is now unknown.
pub(super) fn failed(failure: impl Display, cause: &RequestError) -> CommandError {
    cause.diagnose().prefixed(format_args!("{failure}: "))
}

/// Like [`failed`], with a hint for the case that the service refused the request.
pub(super) fn failed_or_refused(
    failure: impl Display,
    cause: &RequestError,
    refused_hint: &'static str,
) -> CommandError {
    let error = failed(failure, cause);
    if is_refused(cause) { error.hint(refused_hint) } else { error }
}

/// A change of a site that was refused, or that may or may not have been made; `done` is what was asked for.
pub(super) fn not_done(
    cause: &RequestError,
    id: u64,
    site: impl Display,
    done: &str,
    refused_hint: &'static str,
) -> CommandError {
    if cause.refused_status() == Some(404) {
        return no_such_site(id);
    }
    let is_uncertain = cause.may_be_done || cause.error.is_retryable();
    let fate = if is_uncertain { "may or may not have been" } else { "was not" };
    failed_or_refused(format_args!("{site} {fate} {done}"), cause, refused_hint)
}

/// Whether the service understood the request and refused it.
pub(super) fn is_refused(cause: &RequestError) -> bool {
    matches!(cause.error, AttemptError::Refused { .. } | AttemptError::NotOk { .. })
}

/// The site does not exist, or belongs to another account (sections 4.5 and 4.7).
pub(super) fn no_such_site(id: u64) -> CommandError {
    let message = format_args!("the account has no site {id} (404); nothing was changed");
    CommandError::new(ErrorKind::Service, message).hint(LIST_SITES_HINT)
}

/// Fails if a list may lack elements, after its elements were shown.
pub(super) fn require_complete<T>(list: &List<T>) -> Result<()> {
    list.gaps.first().map_or(Ok(()), |gap| Err(gap.diagnose()))
}

impl<'a> Session<'a> {
    /// Opens a session with the service that the settings name.
    pub(super) fn open(service: &Connection, context: &Context, report: &'a mut Report) -> Result<Self> {
        let start = Start::now();
        let flags = Layer { connection: service.clone(), ..Layer::default() };
        let settings =
            Layers::new(&flags, &context.env, context.configuration()).resolve(&Layer::default(), None)?;
        let deadline = start.deadline(settings.timeout);
        let clients = ClientCache::new(Arc::default(), false);
        let client = clients.client(&settings, Redactor::default(), deadline)?;
        Ok(Self { client, settings, deadline, report })
    }

    /// Finds a site by its ID or domain.
    pub(super) async fn find(&self, name: &SiteName) -> Result<ApiObject<Site>> {
        match name {
            SiteName::Id(id) => self.site(*id).await,
            SiteName::Domain(domain) => {
                let (site, count) = self.find_listed(domain).await?;
                site.ok_or_else(|| {
                    let message = format_args!(
                        "the account has no site {domain} among its {count}; nothing was changed"
                    );
                    CommandError::new(ErrorKind::Service, message).hint(LIST_SITES_HINT)
                })
            }
        }
    }

    /// Finds a site by its domain, unless the account does not have it, and the number of sites. An incomplete list that
    /// may lack it is an error. Two spellings of one name may be two sites; the exact spelling wins.
    pub(super) async fn find_listed(&self, domain: &Domain) -> Result<(Option<ApiObject<Site>>, usize)> {
        let sites = self.sites().await?;
        let (count, gap) = (sites.items.len(), sites.gap_for(domain).cloned());
        let same = sites.items.into_iter().filter(|site| site.known.domain == *domain);
        let site = same.min_by_key(|site| site.known.domain.spelled() != domain.spelled());
        match gap {
            Some(gap) if site.is_none() => {
                let consequence = format!("whether the account has {domain} is unknown");
                Err(CommandError::from(gap).with_consequence(&consequence))
            }
            _ => Ok((site, count)),
        }
    }

    /// Lists the sites of the account, with their JSON.
    pub(super) async fn sites(&self) -> Result<List<ApiObject<Site>>> {
        self.client.sites().await.map_err(|cause| failed("cannot list the sites", &cause))
    }

    /// Reads a site.
    pub(super) async fn site(&self, id: u64) -> Result<ApiObject<Site>> {
        self.client.site(id).await.map_err(|cause| match cause.refused_status() {
            Some(404) => no_such_site(id),
            _ => failed(format_args!("cannot read site {id}"), &cause),
        })
    }

    /// Reads a site after a request that may have changed it.
    pub(super) async fn reread(&self, id: u64) -> Result<ApiObject<Site>> {
        let gone = || format!("site {id} existed before the request and is gone now (404)");
        self.client.site(id).await.map_err(|cause| match cause.refused_status() {
            Some(404) => CommandError::new(ErrorKind::Service, gone()).hint(LIST_SITES_HINT),
            _ => {
                failed(format_args!("the service accepted the request, but site {id} cannot be read"), &cause)
            }
        })
    }
}
