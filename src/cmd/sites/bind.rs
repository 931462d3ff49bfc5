//! `edgecert sites bind`: sets `cert_id`, after checking what the certificate covers.

use std::fmt::Write as _;

use serde_json::{Map, json};

use super::binding::Binding;
use super::{change, label, update};
use crate::cli::BindArgs;
use crate::cmd::session::Session;
use crate::error::CommandError;
use crate::report::CommandReport;

pub(super) async fn run(
    args: &BindArgs,
    session: &Session,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let before = session.find(&args.site).await?;
    let binding = Binding::of(&before, Some(args.cert));
    binding.check(args.allow_uncovered, session, report).await?;
    let fields = Map::from_iter([("cert_id".to_owned(), json!(args.cert))]);
    let (after, ignored) = update::save(&before, &fields, session).await?;
    report.body.set("site", &after.json);
    change::require_none_ignored(&ignored, &fields, &after, report)?;
    binding.require(&after)?;
    let _ = writeln!(report.body.text, "{}: bound to certificate {}", label(&after), args.cert);
    change::finish(args.wait, after, session, report).await?;
    Ok(())
}
