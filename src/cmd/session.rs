//! A session with the service, for the commands that manage certificates and sites.

use crate::api::{ApiObject, AttemptError, Client, ClientConfig, List, Record, RequestError, Site};
use crate::cli::SiteName;
use crate::clock::{Deadline, Start};
use crate::context::Context;
use crate::error::{CommandError, Diagnostic, ErrorKind};
use crate::hint::Hint;
use crate::names::Domain;
use crate::report::CommandReport;
use crate::runtime::Runtime;
use crate::secret::Redactor;
use crate::settings::{Layer, Layers, Settings};
use crate::trust::TrustStores;

/// A client for the account, and the settings of the run.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) settings: Settings,
    pub(super) deadline: Deadline,
}

/// An operation that failed because of a request.
#[derive(Debug, thiserror::Error)]
#[error("{failure}: {}", cause.error)]
pub(super) struct OperationError {
    /// What could not be done, or is now unknown.
    failure: String,
    cause: RequestError,
    /// Hint if the service refused the request.
    refused_hint: Option<&'static str>,
}

/// A site that the account does not have.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoSuchSite {
    #[error("the account has no site {domain} among its {sites}; nothing was changed")]
    Domain { domain: Domain, sites: usize },
    /// The site does not exist, or belongs to another account (sections 4.5 and 4.7).
    #[error("the account has no site {id} (404); nothing was changed")]
    Id { id: u64 },
    /// The site existed before a request that may have changed it.
    #[error("site {id} existed before the request and is gone now (404)")]
    Vanished { id: u64 },
}

impl OperationError {
    pub(super) fn new(failure: impl Into<String>, cause: RequestError) -> Self {
        Self { failure: failure.into(), cause, refused_hint: None }
    }

    /// Sets the hint for the case that the service refused the request.
    pub(super) fn refused_hint(self, hint: &'static str) -> Self {
        Self { refused_hint: Some(hint), ..self }
    }
}

impl Diagnostic for OperationError {
    fn kind(&self) -> ErrorKind {
        self.cause.kind()
    }

    fn hint(&self) -> Option<Hint> {
        let is_refused =
            matches!(self.cause.error, AttemptError::Refused { .. } | AttemptError::NotOk { .. });
        match self.refused_hint {
            Some(hint) if is_refused => Some(hint.into()),
            _ => self.cause.hint(),
        }
    }
}

impl Diagnostic for NoSuchSite {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Service
    }

    fn hint(&self) -> Option<Hint> {
        Some(LIST_SITES_HINT.into())
    }
}

/// Hint for errors about sites that are not in the account.
pub(super) const LIST_SITES_HINT: &str = "run `edgecert sites list` to see the sites of this account";

/// Hint for a refusal whose message says what is wrong.
pub(super) const SEE_REASON_HINT: &str = "see the reason that the service gives";

/// Hint for a site that contradicts the reported success.
pub(super) const CONTRADICTION_HINT: &str = "run the same command again, or contact the service's support";

/// Opens a session and runs `run` with it.
pub(super) fn with_session(
    layer: &Layer,
    context: &Context,
    report: &mut CommandReport,
    run: impl AsyncFnOnce(&Session, &mut CommandReport) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let start = Start::now();
    let settings = Layers::new(layer, &context.env, context.configuration()?).resolve(None)?;
    let deadline = start.deadline(settings.timeout);
    let mut redactor = Redactor::default();
    redactor.hide(settings.api_key.expose());
    let config = ClientConfig::new(&settings, &TrustStores::default(), deadline)?;
    let client = Client::new(config, redactor, deadline)?;
    let session = Session { client, settings, deadline };
    Runtime::new()?.block_on(run(&session, report))
}

impl Session {
    /// Finds a site by its ID or domain.
    pub(super) async fn find(&self, name: &SiteName) -> Result<ApiObject<Site>, CommandError> {
        match name {
            SiteName::Id(id) => self.site(*id).await,
            SiteName::Domain(domain) => {
                let sites = self.sites().await?;
                let count = sites.items.len();
                let site = find_in(sites, domain)?;
                Ok(site.ok_or_else(|| NoSuchSite::Domain { domain: domain.clone(), sites: count })?)
            }
        }
    }

    /// Finds a site by its domain; `None` if the account does not have it. An incomplete list that may lack it is an
    /// error.
    pub(super) async fn find_listed(&self, domain: &Domain) -> Result<Option<ApiObject<Site>>, CommandError> {
        find_in(self.sites().await?, domain)
    }

    /// Lists the sites of the account, with their JSON.
    pub(super) async fn sites(&self) -> Result<List<ApiObject<Site>>, CommandError> {
        let list = self.client.sites().await;
        Ok(list.map_err(|cause| OperationError::new("cannot list the sites", cause))?)
    }

    /// Lists the records of the account, with their JSON.
    pub(super) async fn records(&self) -> Result<List<ApiObject<Record>>, CommandError> {
        let list = self.client.records().await;
        Ok(list.map_err(|cause| OperationError::new("cannot list the certificates", cause))?)
    }

    /// Reads a site.
    pub(super) async fn site(&self, id: u64) -> Result<ApiObject<Site>, CommandError> {
        self.client.site(id).await.map_err(|cause| match cause.refused_status() {
            Some(404) => NoSuchSite::Id { id }.into(),
            _ => OperationError::new(format!("cannot read site {id}"), cause).into(),
        })
    }

    /// Reads a site after a request that may have changed it.
    pub(super) async fn reread_site(&self, id: u64) -> Result<ApiObject<Site>, CommandError> {
        self.client.site(id).await.map_err(|cause| {
            if cause.refused_status() == Some(404) {
                return NoSuchSite::Vanished { id }.into();
            }
            let failure = format!("the service accepted the request, but site {id} cannot be read");
            OperationError::new(failure, cause).into()
        })
    }
}

/// Fails if a list may lack elements, after its elements were shown.
pub(super) fn require_complete<T>(list: &List<T>) -> Result<(), CommandError> {
    list.gaps.first().map_or(Ok(()), |gap| Err(gap.into()))
}

fn find_in(sites: List<ApiObject<Site>>, domain: &Domain) -> Result<Option<ApiObject<Site>>, CommandError> {
    let gap = sites.gap_for(domain).cloned();
    match (with_domain(sites.items, domain), gap) {
        (None, Some(gap)) => {
            let consequence = format!("whether the account has {domain} is unknown");
            Err(CommandError::from(gap).with_consequence(&consequence))
        }
        (site, _) => Ok(site),
    }
}

/// Finds the site of a domain. Two spellings of one name may be two sites; the exact spelling wins.
fn with_domain(sites: Vec<ApiObject<Site>>, domain: &Domain) -> Option<ApiObject<Site>> {
    let (exact, same): (Vec<_>, Vec<_>) = sites
        .into_iter()
        .filter(|site| site.known.domain == *domain)
        .partition(|site| site.known.domain.spelled() == domain.spelled());
    exact.into_iter().chain(same).next()
}
