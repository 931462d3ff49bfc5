//! `edgecert certs`: lists and downloads the certificates of the account.

mod download;
mod write;

use std::collections::BTreeMap;

use serde_json::Value;

use super::session::{Session, failed, require_complete};
use crate::api::{ApiObject, Record};
use crate::cli::CertsCommand;
use crate::context::Context;
use crate::error::Result;
use crate::report::{Report, Table};
use crate::runtime::Runtime;
use crate::settings::Connection;

/// Runs the command.
pub(crate) fn run(args: &CertsCommand, context: &Context, report: &mut Report) -> Result<()> {
    Runtime::new()?.block_on(async {
        match args {
            CertsCommand::List(args) => list_records(args, context, report).await,
            CertsCommand::Download(args) => download::run(args, context, report).await,
        }
    })
}

async fn list_records(service: &Connection, context: &Context, report: &mut Report) -> Result<()> {
    let session = Session::open(service, context, report)?;
    let records = session.client.records::<ApiObject<Record>>().await;
    let records = records.map_err(|cause| failed("cannot list the certificates", &cause))?;
    let (sites, report) = (session.sites().await?, session.report);
    let mut bound: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for (id, site) in sites.items.iter().filter_map(|site| Some((site.known.cert_id?, &site.known))) {
        bound.entry(id).or_default().push(site.domain.to_string());
    }
    report.set("certs", records.items.iter().map(|record| &record.json).collect::<Vec<_>>());
    report.set("bound_sites", &bound);
    let mut table = Table::new(&["id", "domain", "name", "type", "sites bound"]);
    for ApiObject { known, json } in &records.items {
        let text = |name| json.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let kind = if known.is_system_issued { Some("lets") } else { text("type") };
        let sites = bound.get(&known.id).map_or_else(|| "-".to_owned(), |sites| sites.join(", "));
        let domains: Vec<String> = known.domains.iter().map(ToString::to_string).collect();
        let domains = if domains.is_empty() { "-".to_owned() } else { domains.join(", ") };
        let [name, kind] = [text("name"), kind].map(|text| text.unwrap_or("-"));
        table.row([&*known.id.to_string(), &domains, name, kind, &sites].map(Into::into));
    }
    report.push(table);
    if records.items.is_empty() {
        report.push("the account has no certificate");
    }
    require_complete(&records)?;
    require_complete(&sites)
}
