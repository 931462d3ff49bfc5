//! `edgecert sites`: manages the account's sites. The commands that only read are here.

mod change;
mod create;
mod delete;
mod field_update;
mod switch;
mod update;

use clap::builder::styling::AnsiColor;
use serde_json::Value;

use super::session::{Session, require_complete};
use crate::api::{ApiObject, Site};
use crate::cli::{ListArgs, SiteArgs, SitesCommand, glob_matches};
use crate::context::Context;
use crate::error::Result;
use crate::report::{Cell, Report, Table};
use crate::runtime::Runtime;
use crate::text::{count, sanitize_untruncated};

/// Asks the user a question; `None` if there is no terminal.
pub type Confirm<'a> = Option<&'a dyn Fn(&str) -> bool>;

/// Runs the command.
pub(crate) fn run(
    args: &SitesCommand,
    context: &Context,
    confirm: Confirm<'_>,
    report: &mut Report,
) -> Result<()> {
    Runtime::new()?.block_on(async {
        match args {
            SitesCommand::List(args) => list(args, context, report).await,
            SitesCommand::Get(args) => get(args, context, report).await,
            SitesCommand::Create(args) => create::run(args, context, report).await,
            SitesCommand::Update(args) => update::run(args, context, report).await,
            SitesCommand::Bind(args) => update::bind(args, context, report).await,
            SitesCommand::Enable(args) => switch::run(args, true, context, report).await,
            SitesCommand::Disable(args) => switch::run(args, false, context, report).await,
            SitesCommand::Delete(args) => delete::run(args, confirm, context, report).await,
        }
    })
}

async fn list(args: &ListArgs, context: &Context, report: &mut Report) -> Result<()> {
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
    list.items.iter().for_each(|site| table.row(cells(site)));
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

async fn get(args: &SiteArgs, context: &Context, report: &mut Report) -> Result<()> {
    let mut session = Session::open(&args.service, context, report)?;
    let mut site = session.find(&args.site).await?;
    session.finish(args.wait, &mut site).await?;
    let mut table = Table::new(&["field", "value"]);
    for (name, value) in site.json.iter().flat_map(|(name, value)| scalars(name, value)) {
        table.row([name.into(), plain(value).into()]);
    }
    session.report.push(table);
    Ok(())
}

/// The scalars of a field; nested names are joined by dots.
fn scalars<'a>(name: &str, value: &'a Value) -> Vec<(String, &'a Value)> {
    let nested: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(inner, value)| (inner.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    if nested.is_empty() {
        return vec![(name.to_owned(), value)];
    }
    nested.into_iter().flat_map(|(inner, value)| scalars(&format!("{name}.{inner}"), value)).collect()
}

/// Formats a value on one line; strings without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| sanitize_untruncated(&value.to_string()), sanitize_untruncated)
}

/// Names a site in messages: `shop.example.com (site 10)`.
fn label(site: &ApiObject<Site>) -> String {
    format!("{} (site {})", site.known.domain, site.known.id)
}
