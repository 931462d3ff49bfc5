//! `edgecert sites`: manages the account's sites.

mod binding;
mod change;
mod create;
mod delete;
mod field_update;
mod list;
mod switch;
mod update;

use serde_json::Value;

use super::session::Session;
use crate::api::{ApiObject, Site};
use crate::cli::{SiteArgs, SitesCommand};
use crate::context::Context;
use crate::error::Result;
use crate::report::{Report, Table};
use crate::runtime::Runtime;
use crate::text::sanitize_untruncated;

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
            SitesCommand::List(args) => list::run(args, context, report).await,
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
