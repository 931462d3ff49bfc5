//! Rolls a vetted certificate out: list, plan, upload, bind, wait, and report for each site what the service and its
//! edge show.

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};

use anyhow::Context as _;

use super::binding::bind_planned;
use super::error::DeployError;
use super::pending_site::PendingSite;
use super::polling::Polling;
use super::request::RolloutRequest;
use super::scope::Scope;
use super::site_error::SiteError;
use super::survey::Survey;
use super::upload::{UploadResult, upload_only, upload_planned};
use super::verdict::{report_pending, report_untouched};
use crate::api::Listing;
use crate::plan::{Account, Exemption, Plan, PlanRequest, RecordLeaf, Step, Target};
use crate::report::{DeployReport, ServingReport};
use crate::settings::Verify;
use crate::verify::Edge;

/// Rolls out and adds the results to the report. An error means that nothing was sent; failures of single sites are in
/// the report.
pub(super) async fn run(request: &RolloutRequest<'_>, report: &mut DeployReport) -> Result<(), DeployError> {
    match (request.upload_only, request.dry_run) {
        (true, true) => report.set_plan(request.domains.iter().map(Step::upload_only).collect()),
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
    let scope = Scope::new(request, &listing.sites);
    if !scope.has_sites(request, listing, report)? {
        return Ok(());
    }
    let edge = Edge::new(request.vetted.chain(), &request.settings.edge_addresses)
        .context("cannot set up TLS for the handshakes with the edge")?;
    let survey = Survey::run(request, &edge, &scope.survey_groups(listing, !request.allow.older)).await;
    let exemptions = exemptions(request, &scope, listing, &survey);
    let plan = plan(request, &scope, listing, &survey, &exemptions);
    if request.dry_run {
        report.set_plan(plan.steps());
        report.body.serving = Some(serving(&plan, &survey));
    } else {
        carry_out(request, &plan, listing, &edge, report).await;
    }
    report_untouched(&plan, &survey, request.settings, report);
    let mut warnings = request.client.take_warnings();
    warnings.retain(|warning| !report.warnings.contains(warning));
    report.warnings.extend(warnings);
    report.body.sites.sort_by(|a, b| a.domain.cmp(&b.domain));
    Ok(())
}

/// The sites that need no deployment: those that have the leaf, and those that are left to other lineages.
fn exemptions(
    request: &RolloutRequest<'_>,
    scope: &Scope<'_>,
    listing: &Listing,
    survey: &Survey,
) -> HashMap<u64, Exemption> {
    let mut exemptions = scope.superseded().clone();
    if request.force {
        return exemptions;
    }
    let records = LazyCell::new(|| listing.records.iter().map(|record| record.id).collect::<HashSet<u64>>());
    // An incomplete listing may lack a record that exists.
    let exists = |record: u64| !listing.warnings.is_empty() || records.contains(&record);
    for site in scope.wanted(&listing.sites).filter(|site| site.config_synced) {
        let Some(record) = site.cert_id else { continue };
        // A handshake cannot show what a disabled site serves.
        let is_unverifiable = request.settings.verify == Verify::Off || !site.enabled;
        let has_leaf = match survey.view(site.id) {
            Some(view) => view.is_current(),
            None => is_unverifiable && request.deployed.get(&site.id) == Some(&record),
        };
        if has_leaf && exists(record) {
            exemptions.insert(site.id, Exemption::Current);
        }
    }
    exemptions
}

fn plan<'l>(
    request: &RolloutRequest<'_>,
    scope: &Scope<'_>,
    listing: &'l Listing,
    survey: &Survey,
    exemptions: &HashMap<u64, Exemption>,
) -> Plan<'l> {
    let account =
        Account { sites: &listing.sites, records: &listing.records, unreadable: &listing.unreadable };
    let deployed = |record| {
        let leaf = request.deployments.leaf_of(record)?;
        Some(RecordLeaf { issued: leaf.issued, fingerprint: leaf.fingerprint.clone(), issuer: None })
    };
    let plan_request = PlanRequest {
        covers: &|domain| scope.covers(domain),
        issued: request.vetted.chain().leaf.not_before,
        domains: request.domains,
        leaf_of: &|record| {
            let served = survey.leaf_of(record).cloned();
            served.into_iter().chain(deployed(record)).max_by_key(|leaf| leaf.issued)
        },
        exemptions,
        allow: request.allow,
    };
    Plan::new(&account, &plan_request)
}

/// What the edges of the planned sites serve now.
fn serving(plan: &Plan<'_>, survey: &Survey) -> Vec<ServingReport> {
    let serving = plan.targets.iter().map(|target| {
        let site = target.site;
        ServingReport::new(site.id, site.domain.spelled(), survey.view(site.id))
    });
    let mut serving: Vec<ServingReport> = serving.collect();
    serving.sort_by(|a, b| a.domain.cmp(&b.domain));
    serving
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

    report.body.changed |= sites.iter().any(PendingSite::may_have_been_changed);
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
