//! Rolls a vetted certificate out: list, plan, upload, bind, wait, and report for each site what the service and its
//! edge show.

use std::collections::HashMap;

use anyhow::Context as _;
use time::OffsetDateTime;

use super::binding::bind_planned;
use super::error::DeployError;
use super::issue_dates::complete_from_edge;
use super::pending_site::PendingSite;
use super::polling::Polling;
use super::request::RolloutRequest;
use super::scope::Scope;
use super::site_error::SiteError;
use super::upload::{UploadResult, upload_only, upload_planned};
use super::verdict::{report_pending, report_untouched};
use crate::api::Listing;
use crate::plan::{Account, Plan, PlanRequest, Step, Target};
use crate::report::DeployReport;
use crate::verify::Edge;

/// Rolls out and adds the results to the report. An error means that nothing was sent; failures of single sites are in
/// the report.
pub(super) async fn run(request: &RolloutRequest<'_>, report: &mut DeployReport) -> Result<(), DeployError> {
    match (request.upload_only, request.dry_run) {
        (true, true) => report.body.plan = Some(request.domains.iter().map(Step::upload_only).collect()),
        (true, false) => upload_only(request, report).await,
        (false, _) => {
            let own;
            let listing = if let Some(listing) = request.listing {
                listing
            } else {
                own = request.client.listing().await?;
                report.warnings.extend(own.warnings.iter().cloned());
                &own
            };
            run_planned(request, listing, report).await?;
        }
    }
    Ok(())
}

async fn run_planned(
    request: &RolloutRequest<'_>,
    listing: &Listing,
    report: &mut DeployReport,
) -> Result<(), DeployError> {
    let scope = Scope::new(request);
    if !scope.has_sites(request, listing, report)? {
        return Ok(());
    }
    let edge = Edge::new(request.vetted.chain(), &request.settings.edge_addresses)
        .context("cannot set up TLS for the handshakes with the edge")?;
    let issue_dates = complete_from_edge(request, &edge, &scope, listing).await;
    let plan = plan(request, &scope, listing, &issue_dates);
    if request.dry_run {
        report.body.plan = Some(plan.steps());
        report_untouched(&plan, report);
    } else {
        carry_out(request, &plan, listing, &edge, report).await;
    }
    let mut warnings = request.client.take_warnings();
    warnings.retain(|warning| !report.warnings.contains(warning));
    report.warnings.extend(warnings);
    report.body.sites.sort_by(|a, b| a.domain.cmp(&b.domain));
    Ok(())
}

fn plan<'l>(
    request: &RolloutRequest<'_>,
    scope: &Scope<'_>,
    listing: &'l Listing,
    issue_dates: &'l HashMap<u64, OffsetDateTime>,
) -> Plan<'l> {
    let account = Account {
        sites: &listing.sites,
        records: &listing.records,
        unreadable: &listing.unreadable,
        issued: issue_dates,
    };
    let plan_request = PlanRequest {
        covers: &|domain| scope.covers(domain),
        issued: request.vetted.chain().leaf.not_before,
        domains: request.domains,
        allow: request.allow,
    };
    Plan::new(&account, &plan_request)
}

/// Uploads, binds, waits until the edge serves the certificate, and reports every site of the plan.
async fn carry_out(
    request: &RolloutRequest<'_>,
    plan: &Plan<'_>,
    listing: &Listing,
    edge: &Edge<'_>,
    report: &mut DeployReport,
) {
    let results = upload_planned(request, &plan.uploads, report).await;
    let mut sites = pending_sites(request, plan, &results);
    bind_planned(request, &mut sites).await;
    Polling { request, edge, account_sites: listing.sites.len() }.wait_until_served(&mut sites).await;

    report_untouched(plan, report);
    for (upload, result) in plan.uploads.iter().zip(&results) {
        if let Err(failed) = result {
            report.fail(SiteError::Upload { domain: upload.domain, failed });
        }
    }
    for site in &sites {
        report_pending(site, request.settings, report);
    }
}

/// The sites that the plan has an upload for, each with the result of that upload.
fn pending_sites<'p>(
    request: &RolloutRequest<'_>,
    plan: &'p Plan<'p>,
    results: &'p [UploadResult],
) -> Vec<PendingSite<'p>> {
    let pending = |target: &'p Target<'p>| {
        let index = target.action.upload()?;
        let (upload, result) = (plan.uploads.get(index)?, results.get(index)?);
        Some(PendingSite::new(target, upload, result.as_ref().copied(), request.settings.verify))
    };
    plan.targets.iter().filter_map(pending).collect()
}
