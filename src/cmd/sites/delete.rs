//! `edgecert sites delete`: says what will be lost and asks, or needs `--yes` where nobody can report.

use std::fmt::Write as _;

use super::super::service::{no_such_site, refused, request_failed};
use super::{Confirm, Service, decided, label};
use crate::cli::DeleteArgs;
use crate::error::{CommandError, ErrorKind};
use crate::report::CommandReport;

/// Refuses before anything is sent where nobody said yes and nobody can.
pub(super) fn needs_a_person(args: &DeleteArgs, person: Confirm<'_>) -> Result<(), CommandError> {
    if args.yes || person.is_some() {
        return Ok(());
    }
    let message = format!("nobody can be asked whether {} may be deleted; nothing was sent", args.site);
    Err(decided(ErrorKind::Usage, message, "pass --yes, or run it on a terminal"))
}

pub(super) async fn run(
    args: &DeleteArgs,
    person: Confirm<'_>,
    service: &Service,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let site = service.find(&args.site).await?;
    let (id, name) = (site.known.id, label(&site));
    report.body.set("site", &site.json);
    report.body.set("deleted", false);
    let question = format!("delete {name} with its DNS resolution records and edge configuration, for good?");
    if !args.yes && !person.is_some_and(|ask| ask(&question)) {
        return Err(decided(ErrorKind::Refused, format!("{name} was not deleted"), "report y to delete it"));
    }
    service.client.delete_site(id).await.map_err(|failed| match failed.refused_status() {
        Some(404) => no_such_site(id),
        _ if failed.is_retryable() => {
            request_failed(format!("whether {name} was deleted is not known"), &failed)
        }
        _ => refused(format!("{name} was not deleted"), &failed, "see what the service says"),
    })?;
    match service.client.site(id).await {
        Ok(_) => {
            let message = format!("{name} is still there, although the service says that it was deleted");
            return Err(decided(
                ErrorKind::Service,
                message,
                "run the same command again, or ask the service's support",
            ));
        }
        Err(failed) if failed.refused_status() == Some(404) => {}
        Err(failed) => {
            report.warnings.push(format!("whether {name} is gone cannot be read: {}", failed.error));
        }
    }
    report.body.set("deleted", true);
    let _ =
        writeln!(report.body.text, "{name}: deleted, with its DNS resolution records and edge configuration");
    Ok(())
}
