//! `edgecert sites`: the account's sites from the command line.

mod bind;
mod change;
mod create;
mod delete;
mod field_update;
mod list;
mod switch;
mod update;

use serde_json::Value;

use super::service::{self, Service, decided};
use crate::api::{ApiObject, Site};
use crate::cli::{OneArgs, SitesCommand, WaitArgs};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::{CommandReport, Style, Table};
use crate::text::sanitize_untruncated;

/// Asks the person at the terminal; there is none where nobody can report.
pub type Confirm<'a> = Option<&'a dyn Fn(&str) -> bool>;

/// Runs the command.
pub(crate) fn run(
    args: &SitesCommand,
    context: &Context,
    person: Confirm<'_>,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let (alone, style) = (WaitArgs::default(), context.style);
    match args {
        SitesCommand::List(args) => {
            let layer = args.service.layer(alone);
            service::ask(&layer, context, report, async |service, report| {
                list::run(args, service, style, report).await
            })
        }
        SitesCommand::Get(args) => {
            service::ask(&args.service.layer(args.wait), context, report, async |service, report| {
                get(args, service, style, report).await
            })
        }
        SitesCommand::Create(args) => {
            let fields = create::fields(args)?;
            let layer = args.service.layer(args.wait);
            service::ask(&layer, context, report, async |service, report| {
                create::run(args, &fields, service, report).await
            })
        }
        SitesCommand::Update(args) => {
            let wish = update::wish(args)?;
            let layer = args.service.layer(args.wait);
            service::ask(&layer, context, report, async |service, report| {
                update::run(args, wish, service, style, report).await
            })
        }
        SitesCommand::Enable(args) => switch(args, true, context, report),
        SitesCommand::Disable(args) => switch(args, false, context, report),
        SitesCommand::Delete(args) => {
            delete::needs_a_person(args, person)?;
            let layer = args.service.layer(alone);
            service::ask(&layer, context, report, async |service, report| {
                delete::run(args, person, service, report).await
            })
        }
        SitesCommand::Bind(args) => {
            let layer = args.service.layer(args.wait);
            service::ask(&layer, context, report, async |service, report| {
                bind::run(args, service, report).await
            })
        }
    }
}

fn switch(
    args: &OneArgs,
    on: bool,
    context: &Context,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let layer = args.service.layer(args.wait);
    service::ask(&layer, context, report, async |service, report| {
        switch::run(args, on, service, report).await
    })
}

async fn get(
    args: &OneArgs,
    service: &Service,
    style: Style,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let site = service.find(&args.site).await?;
    let site = change::settle(args.wait, site, service, report).await?;
    let mut table = Table::new(&["field", "value"]);
    for (name, value) in &site.json {
        rows(name, value, &mut table);
    }
    report.body.text = table.to_text(style);
    Ok(())
}

/// A row for each single value; what is within another stands behind a dot.
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

/// A value in one line, printable; text without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| sanitize_untruncated(&value.to_string()), sanitize_untruncated)
}

/// `shop.example.com (site 10)`
fn label(site: &ApiObject<Site>) -> String {
    format!("{} (site {})", site.known.domain, site.known.id)
}
