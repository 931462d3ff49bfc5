//! `edgecert sites list`.

use clap::builder::styling::AnsiColor;

use super::plain;
use crate::api::{ApiObject, Site};
use crate::cli::ListArgs;
use crate::cmd::session::{Session, require_complete};
use crate::context::Context;
use crate::error::Result;
use crate::report::{Cell, Report, Table};
use crate::text::count;

const HEADS: [&str; 7] = ["id", "domain", "cname", "enabled", "status", "certificate", "synced"];

pub(super) async fn run(args: &ListArgs, context: &Context, report: &mut Report) -> Result<()> {
    let session = Session::open(&args.service, context, report)?;
    let mut list = session.sites().await?;
    let total = list.items.len();
    list.items.retain(|site| is_selected(site, args));
    let sites = &list.items;
    session.report.set("sites", sites.iter().map(|site| &site.json).collect::<Vec<_>>());
    let mut table = Table::new(&HEADS);
    for site in sites {
        table.row(cells(site));
    }
    match sites.len() {
        0 if total == 0 => session.report.push("the account has no site"),
        0 => session.report.push(format!("none of {} matches", count(total, "site"))),
        _ => session.report.push(table),
    }
    require_complete(&list)
}

fn is_selected(site: &ApiObject<Site>, args: &ListArgs) -> bool {
    args.domain.as_ref().is_none_or(|glob| glob.matches(&site.known.domain))
        && (!args.without_cert || site.known.is_unbound())
        && !(args.unsynced && site.known.config_synced)
}

fn cells(site: &ApiObject<Site>) -> [Cell; 7] {
    let known = &site.known;
    let yes_or = |yes: bool, colour| if yes { Cell::from("yes") } else { Cell::coloured("no", colour) };
    let status = site.json.get("site_status").map(plain).unwrap_or_default();
    [
        known.id.to_string().into(),
        known.domain.spelled().into(),
        known.cname.as_deref().unwrap_or("-").into(),
        yes_or(known.enabled, AnsiColor::Red),
        status.into(),
        certificate(known),
        yes_or(known.config_synced, AnsiColor::Yellow),
    ]
}

fn certificate(site: &Site) -> Cell {
    match site.cert_id {
        Some(id) => id.to_string().into(),
        None => Cell::coloured(if site.is_unbound() { "none" } else { "unreadable" }, AnsiColor::Yellow),
    }
}
