//! `edgecert sites enable` and `disable`. A successful response proves nothing, so the site is read afterwards.

use super::label;
use crate::cli::{SiteArgs, SiteName};
use crate::cmd::session::{CONTRADICTION_HINT, SEE_REASON_HINT, Session, is_refused, not_done};
use crate::context::Context;
use crate::error::{CommandError, ErrorKind, Result};
use crate::report::Report;
use crate::text::sanitize;

pub(super) async fn run(args: &SiteArgs, enable: bool, context: &Context, report: &mut Report) -> Result<()> {
    let mut session = Session::open(&args.service, context, report)?;
    let id = match &args.site {
        SiteName::Id(id) => *id,
        domain @ SiteName::Domain(_) => session.find(domain).await?.known.id,
    };
    let state = if enable { "enabled" } else { "disabled" };
    // A refusal is not final: the site may be in the requested state already.
    let refusal = match session.client.set_enabled(id, enable).await {
        Ok(()) => None,
        Err(cause) if is_refused(&cause) && cause.refused_status() != Some(404) => Some(cause),
        Err(cause) => return Err(not_done(&cause, id, format_args!("site {id}"), state, SEE_REASON_HINT)),
    };
    let mut site = if refusal.is_some() { session.site(id).await? } else { session.reread(id).await? };
    session.report.set("site", &site.json);
    if !site.json.contains_key("enabled") {
        let warning = format!("the service does not show whether {} is {state}", label(&site));
        session.report.warnings.push(warning);
    } else if site.known.enabled != enable {
        let found = match &site.known.disabled_reason {
            _ if site.known.enabled => "enabled".to_owned(),
            Some(reason) => format!("disabled by the system: {}", sanitize(reason)),
            None => "disabled, and the service gives no reason".to_owned(),
        };
        let hint = match refusal {
            _ if enable => {
                "check whether the package is expired or used up; top it up, renew it or extend it first"
            }
            Some(_) => SEE_REASON_HINT,
            None => CONTRADICTION_HINT,
        };
        let reason = refusal.map(|refusal| format!(" ({})", refusal.error)).unwrap_or_default();
        let message = format_args!("{} is still {found}{reason}", label(&site));
        return Err(CommandError::new(ErrorKind::Service, message).hint(hint));
    }
    if let Some(refusal) = refusal {
        session.report.warnings.push(format!("{}, but {} is {state}", refusal.error, label(&site)));
    }
    let effect = if enable { "the edge follows within seconds" } else { "acceleration has stopped" };
    session.report.push(format!("{}: {state}; {effect}", label(&site)));
    session.finish(args.wait, &mut site).await
}
