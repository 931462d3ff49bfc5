//! `edgecert certs`: lists and downloads the certificates of the account.

mod download;
mod write;

use std::collections::BTreeMap;

use super::session::{Session, require_complete};
use crate::api::{ApiObject, Record};
use crate::cli::{CertsCommand, WaitArgs};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::{Report, Table};
use crate::runtime::Runtime;
use crate::settings::Connection;

/// Runs the command.
pub(crate) fn run(args: &CertsCommand, context: &Context, report: &mut Report) -> Result<(), CommandError> {
    Runtime::new()?.block_on(async {
        match args {
            CertsCommand::List(args) => list_records(args, context, report).await,
            CertsCommand::Download(args) => download::run(args, context, report).await,
        }
    })
}

async fn list_records(
    service: &Connection,
    context: &Context,
    report: &mut Report,
) -> Result<(), CommandError> {
    let session = Session::open(service, WaitArgs::default(), context)?;
    let (records, sites) = (session.records().await?, session.sites().await?);
    let mut bound: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for site in &sites.items {
        if let Some(id) = site.known.cert_id {
            bound.entry(id).or_default().push(site.known.domain.to_string());
        }
    }
    report.set("certs", records.items.iter().map(|record| &record.json).collect::<Vec<_>>());
    report.set("bound_sites", &bound);
    let mut table = Table::new(&["id", "domain", "name", "type", "sites bound"]);
    for record in &records.items {
        table.row(cells(record, &bound).map(Into::into));
    }
    report.push(table);
    if records.items.is_empty() {
        report.push("the account has no certificate");
    }
    require_complete(&records)?;
    require_complete(&sites)
}

fn cells(record: &ApiObject<Record>, bound: &BTreeMap<u64, Vec<String>>) -> [String; 5] {
    let known = &record.known;
    let text = |name| record.json.get(name).and_then(serde_json::Value::as_str);
    let kind = if known.is_system_issued { Some("lets") } else { text("type") };
    let kind = kind.filter(|kind| !kind.is_empty()).unwrap_or("-");
    let domains: Vec<String> = known.domains.iter().map(ToString::to_string).collect();
    let name = text("name").unwrap_or("-");
    let sites = bound.get(&known.id).map_or_else(|| "-".to_owned(), |sites| sites.join(", "));
    let domains = if domains.is_empty() { "-".to_owned() } else { domains.join(", ") };
    [known.id.to_string(), domains, name.to_owned(), kind.to_owned(), sites]
}
