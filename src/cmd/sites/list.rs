//! `edgecert sites list`: lists the sites, with the expiry of the certificates that this host deployed.

use anstyle::AnsiColor;

use super::plain;
use crate::api::{ApiObject, Site};
use crate::cli::{ListArgs, WaitArgs};
use crate::clock;
use crate::cmd::session::{Session, require_complete};
use crate::context::Context;
use crate::error::CommandError;
use crate::report::{Cell, Report, Table};
use crate::settings::Settings;
use crate::state::{Deployments, ServiceDeployments, Store};
use crate::text::count;

const HEADS: [&str; 7] = ["id", "domain", "cname", "enabled", "status", "certificate", "synced"];

/// Days left below which a certificate is highlighted.
const EXPIRES_SOON_DAYS: i64 = 14;

pub(super) async fn run(args: &ListArgs, context: &Context, report: &mut Report) -> Result<(), CommandError> {
    let session = Session::open(&args.service, WaitArgs::default(), context)?;
    let mut list = session.sites().await?;
    let total = list.items.len();
    list.items.retain(|site| is_selected(site, args));
    let sites = &list.items;
    report.set("sites", sites.iter().map(|site| &site.json).collect::<Vec<_>>());
    let deployments = deployments(&session.settings);
    let mut table = Table::new(&HEADS);
    for site in sites {
        table.row(cells(site, &deployments));
    }
    match sites.len() {
        0 if total == 0 => report.push("the account has no site"),
        0 => report.push(format!("none of {} matches", count(total, "site"))),
        _ => report.push(table),
    }
    require_complete(&list)
}

fn is_selected(site: &ApiObject<Site>, args: &ListArgs) -> bool {
    args.domain.as_ref().is_none_or(|glob| glob.matches(&site.known.domain))
        && (!args.without_cert || site.known.is_unbound())
        && !(args.unsynced && site.known.config_synced)
}

fn cells(site: &ApiObject<Site>, deployments: &ServiceDeployments) -> [Cell; 7] {
    let known = &site.known;
    let yes_or = |yes: bool, colour| if yes { Cell::from("yes") } else { Cell::coloured("no", colour) };
    let status = site.json.get("site_status").map(plain).unwrap_or_default();
    [
        known.id.to_string().into(),
        known.domain.spelled().into(),
        known.cname.as_deref().unwrap_or("-").into(),
        yes_or(known.enabled, AnsiColor::Red),
        status.into(),
        certificate(known, deployments),
        yes_or(known.config_synced, AnsiColor::Yellow),
    ]
}

fn certificate(site: &Site, deployments: &ServiceDeployments) -> Cell {
    let Some(id) = site.cert_id else {
        let text = if site.is_unbound() { "none" } else { "unreadable" };
        return Cell::coloured(text, AnsiColor::Yellow);
    };
    let Some(stored) = deployments.stored_in(id) else { return id.to_string().into() };
    let days = (stored.leaf.not_after - clock::now()).whole_days();
    if days < 0 {
        return Cell::coloured(format!("{id}, expired"), AnsiColor::Red);
    }
    let days_left = format!("{id}, {} left", count(usize::try_from(days).unwrap_or_default(), "day"));
    if days < EXPIRES_SOON_DAYS { Cell::coloured(days_left, AnsiColor::Yellow) } else { days_left.into() }
}

/// What this host deployed to the service, which does not list when certificates expire.
fn deployments(settings: &Settings) -> ServiceDeployments {
    let directory = settings.state_dir.as_deref().filter(|directory| directory.is_dir());
    let states = directory.map(|directory| Store::at(directory).read_all().0).unwrap_or_default();
    Deployments::from_iter(states).of_service(&settings.base_url.to_string())
}
