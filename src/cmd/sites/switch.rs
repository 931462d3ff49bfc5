//! `edgecert sites enable` and `disable`: the answers prove nothing, so the site is read again.

use std::fmt::Write as _;

use super::super::service::{no_such_site, request_failed};
use super::{Service, change, decided, label};
use crate::api::{ApiObject, AttemptError, RequestError, Site};
use crate::cli::{OneArgs, SiteName};
use crate::error::{CommandError, ErrorKind};
use crate::report::CommandReport;
use crate::text::sanitize;

pub(super) async fn run(
    args: &OneArgs,
    on: bool,
    service: &Service,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let id = match &args.site {
        SiteName::Id(id) => *id,
        domain @ SiteName::Domain(_) => service.find(domain).await?.known.id,
    };
    let verb = if on { "enabled" } else { "disabled" };
    let refusal = match service.client.set_enabled(id, on).await {
        Ok(()) => None,
        Err(failed) if failed.refused_status() == Some(404) => return Err(no_such_site(id)),
        // What the site is like now says more than how the service refuses.
        Err(failed) if matches!(failed.error, AttemptError::Refused { .. } | AttemptError::NotOk { .. }) => {
            Some(failed)
        }
        Err(failed) => {
            return Err(request_failed(format!("whether site {id} is {verb} is not known"), &failed));
        }
    };
    let site = match &refusal {
        Some(_) => service.site(id).await?,
        None => service.site_again(id).await?,
    };
    report.body.set("site", &site.json);
    if !site.json.contains_key("enabled") {
        report.warnings.push(format!("the service does not say whether {} is {verb} now", label(&site)));
    } else if site.known.enabled != on {
        return Err(without_effect(&site, on, refusal.as_ref()));
    }
    if let Some(failed) = refusal {
        report.warnings.push(format!("{}, but {} is {verb}", failed.error, label(&site)));
    }
    let effect = if on { "the edge gets it within seconds" } else { "its acceleration has stopped" };
    let _ = writeln!(report.body.text, "{}: {verb}; {effect}", label(&site));
    change::settle(args.wait, site, service, report).await?;
    Ok(())
}

fn without_effect(site: &ApiObject<Site>, on: bool, refusal: Option<&RequestError>) -> CommandError {
    let said = refusal.map(|failed| format!(" ({})", failed.error)).unwrap_or_default();
    if !on {
        let message = format!("{} is still enabled{said}", label(site));
        return decided(
            ErrorKind::Service,
            message,
            "run the same command again, or ask the service's support",
        );
    }
    let (why, hint) = match &site.known.disabled_reason {
        Some(reason) => (
            format!("disabled by the system: {}", sanitize(reason)),
            "a package whose traffic is exceeded must be topped up, renewed or extended first",
        ),
        None => (
            "disabled, and the service names no reason".to_owned(),
            "see whether its package is expired or used up; top it up, renew or extend it first",
        ),
    };
    decided(ErrorKind::Service, format!("{} is still {why}{said}", label(site)), hint)
}
