//! `edgecert sites delete`: names what will be deleted and asks for confirmation, or requires `--yes`.

use super::{Confirm, label};
use crate::cli::DeleteArgs;
use crate::cmd::session::{SEE_REASON_HINT, Session, contradiction, not_done};
use crate::context::Context;
use crate::error::{CommandError, ErrorKind, Result};
use crate::report::Report;

pub(super) async fn run(
    args: &DeleteArgs,
    confirm: Confirm<'_>,
    context: &Context,
    report: &mut Report,
) -> Result<()> {
    if !args.yes && confirm.is_none() {
        let message = format_args!(
            "deleting {} needs confirmation, and there is no terminal to ask on; nothing was sent",
            args.site
        );
        return Err(
            CommandError::new(ErrorKind::Usage, message).hint("pass --yes, or run the command on a terminal")
        );
    }
    let session = Session::open(&args.service, context, report)?;
    let site = session.find(&args.site).await?;
    let (id, name) = (site.known.id, label(&site));
    session.report.set("site", &site.json);
    session.report.set("deleted", false);
    let question = format!("permanently delete {name} with its DNS records and edge configuration?");
    if !args.yes && !confirm.is_some_and(|confirm| confirm(&question)) {
        let message = format_args!("{name} was not deleted: not confirmed");
        return Err(CommandError::new(ErrorKind::Refused, message).hint("answer y to delete it"));
    }
    let deleted = session.client.delete_site(id).await;
    deleted.map_err(|cause| not_done(&cause, id, &name, "deleted", SEE_REASON_HINT))?;
    match session.client.site(id).await {
        Ok(_) => return Err(contradiction(format_args!("{name} still exists"), "it was deleted")),
        Err(cause) if cause.refused_status() == Some(404) => {}
        Err(cause) => {
            session.report.warnings.push(format!("cannot confirm that {name} is gone: {}", cause.error));
        }
    }
    session.report.set("deleted", true);
    session.report.push(format!("{name}: deleted, with its DNS records and edge configuration"));
    Ok(())
}
