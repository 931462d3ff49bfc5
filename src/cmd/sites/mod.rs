//! `edgecert sites`: manages the account's sites.

mod bind;
mod binding;
mod change;
mod create;
mod delete;
mod field_update;
mod list;
mod switch;
mod update;

use serde_json::Value;

use super::session::{Session, with_session};
use crate::api::{ApiObject, Site};
use crate::cli::{SiteArgs, SitesCommand, WaitArgs};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::{CommandReport, Style, Table};
use crate::text::sanitize_untruncated;

/// Asks the user a question; `None` if there is no terminal.
pub type Confirm<'a> = Option<&'a dyn Fn(&str) -> bool>;

/// Runs the command.
pub(crate) fn run(
    args: &SitesCommand,
    context: &Context,
    confirm: Confirm<'_>,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let (no_wait, style) = (WaitArgs::default(), context.style);
    match args {
        SitesCommand::List(args) => {
            let layer = args.service.layer(no_wait);
            with_session(&layer, context, report, async |session, report| {
                list::run(args, session, style, report).await
            })
        }
        SitesCommand::Get(args) => {
            with_session(&args.service.layer(args.wait), context, report, async |session, report| {
                get(args, session, style, report).await
            })
        }
        SitesCommand::Create(args) => {
            let fields = create::fields(args)?;
            let layer = args.service.layer(args.wait);
            with_session(&layer, context, report, async |session, report| {
                create::run(args, &fields, session, report).await
            })
        }
        SitesCommand::Update(args) => {
            let fields = update::fields(args)?;
            let layer = args.service.layer(args.wait);
            with_session(&layer, context, report, async |session, report| {
                update::run(args, fields, session, style, report).await
            })
        }
        SitesCommand::Enable(args) => switch(args, true, context, report),
        SitesCommand::Disable(args) => switch(args, false, context, report),
        SitesCommand::Delete(args) => {
            delete::require_confirmation(args, confirm)?;
            let layer = args.service.layer(no_wait);
            with_session(&layer, context, report, async |session, report| {
                delete::run(args, confirm, session, report).await
            })
        }
        SitesCommand::Bind(args) => {
            let layer = args.service.layer(args.wait);
            with_session(&layer, context, report, async |session, report| {
                bind::run(args, session, report).await
            })
        }
    }
}

fn switch(
    args: &SiteArgs,
    enabled: bool,
    context: &Context,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let layer = args.service.layer(args.wait);
    with_session(&layer, context, report, async |session, report| {
        switch::run(args, enabled, session, report).await
    })
}

async fn get(
    args: &SiteArgs,
    session: &Session,
    style: Style,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let site = session.find(&args.site).await?;
    let site = change::finish(args.wait, site, session, report).await?;
    let mut table = Table::new(&["field", "value"]);
    for (name, value) in &site.json {
        rows(name, value, &mut table);
    }
    report.body.text = table.to_text(style);
    Ok(())
}

/// Adds a row for each scalar; nested names are joined by dots.
fn rows(name: &str, value: &Value, table: &mut Table) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            map.iter().for_each(|(inner, value)| rows(&format!("{name}.{inner}"), value, table));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(at, value)| rows(&format!("{name}.{at}"), value, table));
        }
        value => table.row([name.into(), plain(value).into()]),
    }
}

/// Formats a value on one line; strings without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| sanitize_untruncated(&value.to_string()), sanitize_untruncated)
}

/// Names a site in messages: `shop.example.com (site 10)`.
fn label(site: &ApiObject<Site>) -> String {
    format!("{} (site {})", site.known.domain, site.known.id)
}
