//! `edgecert sites enable` and `disable`. A successful response proves nothing, so the site is read afterwards.

use std::fmt::Write as _;

use super::{change, label};
use crate::api::{ApiObject, AttemptError, RequestError, Site};
use crate::cli::{SiteArgs, SiteName};
use crate::cmd::session::{CONTRADICTION_HINT, NoSuchSite, OperationError, SEE_REASON_HINT, Session};
use crate::error::{CommandError, Diagnostic, ErrorKind};
use crate::hint::Hint;
use crate::report::CommandReport;
use crate::text::sanitize;

/// A site whose state did not change; `reason` is the service's, in parentheses, or empty.
#[derive(Debug, thiserror::Error)]
pub(super) enum SwitchError {
    #[error("{site} is still enabled{reason}")]
    StillEnabled { site: String, reason: String },
    #[error("{site} is still disabled by the system: {disabled_reason}{reason}")]
    DisabledBySystem { site: String, disabled_reason: String, reason: String },
    #[error("{site} is still disabled, and the service gives no reason{reason}")]
    StillDisabled { site: String, reason: String },
}

impl SwitchError {
    fn new(site: &ApiObject<Site>, enabled: bool, refusal: Option<&RequestError>) -> Self {
        let reason = refusal.map(|refusal| format!(" ({})", refusal.error)).unwrap_or_default();
        let disabled_reason = site.known.disabled_reason.as_deref().map(sanitize);
        let site = label(site);
        match disabled_reason {
            _ if !enabled => Self::StillEnabled { site, reason },
            Some(disabled_reason) => Self::DisabledBySystem { site, disabled_reason, reason },
            None => Self::StillDisabled { site, reason },
        }
    }
}

impl Diagnostic for SwitchError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Service
    }

    fn hint(&self) -> Option<Hint> {
        let hint = match self {
            Self::StillEnabled { reason, .. } if reason.is_empty() => CONTRADICTION_HINT,
            Self::StillEnabled { .. } => SEE_REASON_HINT,
            Self::DisabledBySystem { .. } => {
                "if the package's traffic is used up, top it up, renew it or extend it first"
            }
            Self::StillDisabled { .. } => {
                "check whether the package is expired or used up; top it up, renew it or extend it first"
            }
        };
        Some(hint.into())
    }
}

pub(super) async fn run(
    args: &SiteArgs,
    enabled: bool,
    session: &Session,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let id = match &args.site {
        SiteName::Id(id) => *id,
        domain @ SiteName::Domain(_) => session.find(domain).await?.known.id,
    };
    let state = if enabled { "enabled" } else { "disabled" };
    let refusal = request(id, enabled, session).await?;
    let site = match &refusal {
        Some(_) => session.site(id).await?,
        None => session.reread_site(id).await?,
    };
    report.body.set("site", &site.json);
    if !site.json.contains_key("enabled") {
        report.warnings.push(format!("the service does not show whether {} is {state}", label(&site)));
    } else if site.known.enabled != enabled {
        return Err(SwitchError::new(&site, enabled, refusal.as_ref()).into());
    }
    if let Some(refusal) = refusal {
        report.warnings.push(format!("{}, but {} is {state}", refusal.error, label(&site)));
    }
    let effect = if enabled { "the edge follows within seconds" } else { "acceleration has stopped" };
    let _ = writeln!(report.body.text, "{}: {state}; {effect}", label(&site));
    change::finish(args.wait, site, session, report).await?;
    Ok(())
}

/// Sends the request. A refusal is not final: the site may be in the requested state already.
async fn request(id: u64, enabled: bool, session: &Session) -> Result<Option<RequestError>, CommandError> {
    match session.client.set_enabled(id, enabled).await {
        Ok(()) => Ok(None),
        Err(cause) if cause.refused_status() == Some(404) => Err(NoSuchSite::Id { id }.into()),
        Err(cause) if matches!(cause.error, AttemptError::Refused { .. } | AttemptError::NotOk { .. }) => {
            Ok(Some(cause))
        }
        Err(cause) => {
            let state = if enabled { "enabled" } else { "disabled" };
            Err(OperationError::new(format!("site {id} may or may not have been {state}"), cause).into())
        }
    }
}
