//! `edgecert sites delete`: names what will be deleted and asks for confirmation, or requires `--yes`.

use std::fmt::Write as _;

use super::{Confirm, label};
use crate::api::{ApiObject, RequestError, Site};
use crate::cli::{DeleteArgs, SiteName};
use crate::cmd::session::{CONTRADICTION_HINT, NoSuchSite, OperationError, SEE_REASON_HINT, Session};
use crate::error::{CommandError, Diagnostic, ErrorKind};
use crate::hint::Hint;
use crate::report::CommandReport;

/// Why a site was not deleted.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeleteError {
    #[error("deleting {0} needs confirmation, and there is no terminal to ask on; nothing was sent")]
    NoTerminal(SiteName),
    #[error("{site} was not deleted: not confirmed")]
    NotConfirmed { site: String },
    #[error("{site} still exists, although the service reported that it was deleted")]
    StillThere { site: String },
}

impl Diagnostic for DeleteError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NoTerminal(_) => ErrorKind::Usage,
            Self::NotConfirmed { .. } => ErrorKind::Refused,
            Self::StillThere { .. } => ErrorKind::Service,
        }
    }

    fn hint(&self) -> Option<Hint> {
        let hint = match self {
            Self::NoTerminal(_) => "pass --yes, or run the command on a terminal",
            Self::NotConfirmed { .. } => "answer y to delete it",
            Self::StillThere { .. } => CONTRADICTION_HINT,
        };
        Some(hint.into())
    }
}

/// Refuses, before anything is sent, without `--yes` and without a terminal to ask on.
pub(super) fn require_confirmation(args: &DeleteArgs, confirm: Confirm<'_>) -> Result<(), DeleteError> {
    if args.yes || confirm.is_some() { Ok(()) } else { Err(DeleteError::NoTerminal(args.site.clone())) }
}

pub(super) async fn run(
    args: &DeleteArgs,
    confirm: Confirm<'_>,
    session: &Session,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let site = session.find(&args.site).await?;
    let (id, name) = (site.known.id, label(&site));
    report.body.set("site", &site.json);
    report.body.set("deleted", false);
    let question = format!("permanently delete {name} with its DNS records and edge configuration?");
    if !args.yes && !confirm.is_some_and(|confirm| confirm(&question)) {
        return Err(DeleteError::NotConfirmed { site: name }.into());
    }
    session.client.delete_site(id).await.map_err(|cause| not_deleted(&site, cause))?;
    match session.client.site(id).await {
        Ok(_) => return Err(DeleteError::StillThere { site: name }.into()),
        Err(cause) if cause.refused_status() == Some(404) => {}
        Err(cause) => {
            report.warnings.push(format!("cannot confirm that {name} is gone: {}", cause.error));
        }
    }
    report.body.set("deleted", true);
    let _ = writeln!(report.body.text, "{name}: deleted, with its DNS records and edge configuration");
    Ok(())
}

fn not_deleted(site: &ApiObject<Site>, cause: RequestError) -> CommandError {
    match cause.refused_status() {
        Some(404) => NoSuchSite::Id { id: site.known.id }.into(),
        _ if cause.is_retryable() => {
            OperationError::new(format!("{} may or may not have been deleted", label(site)), cause).into()
        }
        _ => OperationError::new(format!("{} was not deleted", label(site)), cause)
            .refused_hint(SEE_REASON_HINT)
            .into(),
    }
}
