//! `edgecert sites list`.

use clap::builder::styling::AnsiColor;

use super::plain;
use crate::api::{ApiObject, Site};
use crate::cli::{ListArgs, glob_matches};
use crate::cmd::session::{Session, require_complete};
use crate::context::Context;
use crate::error::Result;
use crate::report::{Cell, Report, Table};
use crate::text::count;

pub(super) async fn run(args: &ListArgs, context: &Context, report: &mut Report) -> Result<()> {
    let session = Session::open(&args.service, context, report)?;
    let mut list = session.sites().await?;
    let total = list.items.len();
    list.items.retain(|ApiObject { known, .. }| {
        args.domain.as_ref().is_none_or(|glob| glob_matches(glob, &known.domain))
            && (!args.without_cert || known.is_unbound())
            && !(args.unsynced && known.config_synced)
    });
    session.report.set("sites", list.items.iter().map(|site| &site.json).collect::<Vec<_>>());
    let mut table = Table::new(&["id", "domain", "cname", "enabled", "status", "certificate", "synced"]);
    for site in &list.items {
        table.row(cells(site));
    }
    match list.items.len() {
        0 if total == 0 => session.report.push("the account has no site"),
        0 => session.report.push(format!("none of {} matches", count(total, "site"))),
        _ => session.report.push(table),
    }
    require_complete(&list)
}

fn cells(ApiObject { known, json }: &ApiObject<Site>) -> [Cell; 7] {
    let yes_or = |yes: bool, colour| if yes { Cell::from("yes") } else { Cell::coloured("no", colour) };
    let certificate = match known.cert_id {
        Some(id) => id.to_string().into(),
        None if known.is_unbound() => Cell::coloured("none", AnsiColor::Yellow),
        None => Cell::coloured("unreadable", AnsiColor::Yellow),
    };
    [
        known.id.to_string().into(),
        known.domain.spelled().into(),
        known.cname.as_deref().unwrap_or("-").into(),
        yes_or(known.enabled, AnsiColor::Red),
        json.get("site_status").map(plain).unwrap_or_default().into(),
        certificate,
        yes_or(known.config_synced, AnsiColor::Yellow),
    ]
}
