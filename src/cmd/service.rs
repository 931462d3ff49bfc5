//! What the commands share that speak with the service and deploy nothing: the connection, a site by number or domain,
//! and requests that failed, in words.

use std::fmt::Display;

use anyhow::Context as _;

use crate::api::{ApiObject, AttemptError, Client, ClientConfig, List, Record, RequestError, Site};
use crate::cli::SiteName;
use crate::clock::Deadline;
use crate::context::Context;
use crate::error::{AdHocError, CommandError, Diagnostic as _, ErrorKind};
use crate::report::CommandReport;
use crate::secret::Redactor;
use crate::settings::{Layer, Layers, Settings};

/// The service for one run.
pub(super) struct Service {
    pub(super) client: Client,
    pub(super) settings: Settings,
    pub(super) deadline: Deadline,
}

/// Connects to the service and lets `run` ask it.
pub(super) fn ask(
    layer: &Layer,
    context: &Context,
    report: &mut CommandReport,
    run: impl AsyncFnOnce(&Service, &mut CommandReport) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let settings = Layers::new(layer, &context.env, context.configuration()?).resolve(None)?;
    let deadline = Deadline::after(settings.timeout);
    let mut redactor = Redactor::default();
    redactor.hide(&settings.api_key);
    let client = Client::new(&ClientConfig::new(&settings)?, redactor, deadline)?;
    let service = Service { client, settings, deadline };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let done = runtime.block_on(run(&service, report));
    // A name that is still being looked up must not hold the run beyond its deadline.
    runtime.shutdown_background();
    report.warnings.extend(service.client.take_warnings());
    done
}

impl Service {
    /// The site that a person means.
    pub(super) async fn find(&self, name: &SiteName) -> Result<ApiObject<Site>, CommandError> {
        let domain = match name {
            SiteName::Id(id) => return self.site(*id).await,
            SiteName::Domain(domain) => domain,
        };
        let sites = self.sites().await?;
        let number = sites.len();
        // Two spellings of one name may be two sites.
        let (exact, same): (Vec<_>, Vec<_>) = sites
            .into_iter()
            .filter(|site| site.known.domain == *domain)
            .partition(|site| site.known.domain.spelled() == domain.spelled());
        exact.into_iter().chain(same).next().ok_or_else(|| {
            let message = format!("the account has no site {domain} among its {number}; nothing was changed");
            decided(ErrorKind::Service, message, "`edgecert sites list` shows what there is")
        })
    }

    /// All sites of the account, with their JSON.
    pub(super) async fn sites(&self) -> Result<Vec<ApiObject<Site>>, CommandError> {
        let list: Result<List<ApiObject<Site>>, RequestError> = self.client.sites().await;
        Ok(list.map_err(|failed| request_failed("cannot list the sites", &failed))?.items)
    }

    /// All records of the account, with their JSON.
    pub(super) async fn records(&self) -> Result<Vec<ApiObject<Record>>, CommandError> {
        let list: Result<List<ApiObject<Record>>, RequestError> = self.client.records().await;
        Ok(list.map_err(|failed| request_failed("cannot list the certificates", &failed))?.items)
    }

    /// The site of this number as it is now.
    pub(super) async fn site(&self, id: u64) -> Result<ApiObject<Site>, CommandError> {
        self.client.site(id).await.map_err(|failed| match failed.refused_status() {
            Some(404) => no_such_site(id),
            _ => request_failed(format!("cannot read site {id}"), &failed),
        })
    }

    /// The same behind a request that may have changed it: nobody knows then that nothing was changed.
    pub(super) async fn site_again(&self, id: u64) -> Result<ApiObject<Site>, CommandError> {
        self.client.site(id).await.map_err(|failed| match failed.refused_status() {
            Some(404) => {
                let message = format!("site {id} was there and cannot be found any more (404)");
                decided(ErrorKind::Service, message, "`edgecert sites list` shows what there is")
            }
            _ => request_failed(
                format!("the service took the request, but site {id} cannot be read again"),
                &failed,
            ),
        })
    }
}

/// Section 4.5 and 4.7: not there, or not of this account.
pub(super) fn no_such_site(id: u64) -> CommandError {
    let message = format!("the account has no site {id} (404); nothing was changed");
    decided(ErrorKind::Service, message, "`edgecert sites list` shows what there is")
}

/// A request that failed, after what was to be done.
pub(super) fn request_failed(what: impl Display, failed: &RequestError) -> CommandError {
    let kind = failed.kind();
    let hint = match kind {
        ErrorKind::Temporary => Some("run the same command again later".to_owned()),
        _ => failed.hint(),
    };
    AdHocError { kind, message: format!("{what}: {}", failed.error), hint }.into()
}

/// The same with a hint of its own, where it is the service that refused.
pub(super) fn refused(what: impl Display, failed: &RequestError, hint: &str) -> CommandError {
    match failed.error {
        AttemptError::Refused { .. } | AttemptError::NotOk { .. } => {
            decided(ErrorKind::Service, format!("{what}: {}", failed.error), hint)
        }
        _ => request_failed(what, failed),
    }
}

/// An error whose kind is known here.
pub(super) fn decided(kind: ErrorKind, message: impl Into<String>, hint: impl Into<String>) -> CommandError {
    AdHocError::new(kind, message, hint).into()
}
