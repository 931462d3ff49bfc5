//! Rolls a vetted certificate out: list, plan, upload, bind, wait, and report for each site what the service and its
//! edge show.

use std::collections::BTreeSet;

use super::binding::bind_planned;
use super::displaced::displaced;
use super::left_behind::left_by_renewal;
use super::pending_site::{PendingSite, StoredRecord};
use super::permissions;
use super::polling::Polling;
use super::request::RolloutRequest;
use super::scope::Scope;
use super::site_error;
use super::survey::{EdgeLog, Survey};
use super::upload::{UploadResult, upload_only, upload_planned};
use super::verdict::{report_pending, report_untouched};
use crate::api::{Gap, Listing};
use crate::clock;
use crate::error::{CommandError, ErrorKind};
use crate::names::{Domain, Names};
use crate::outcome::ChangedRecords;
use crate::plan::{Account, IndexedListing, Plan, Step, Target};
use crate::progress::Phase;
use crate::report::{Report, ServingReport};
use crate::settings::{Settings, Verify};
use crate::text;
use crate::verify::Edge;

/// Rolls out and adds the results to the report. An error means that nothing was sent; failures of single sites are in
/// the report.
pub(super) async fn run(request: &RolloutRequest<'_>, report: &mut Report) -> Result<(), CommandError> {
    match (request.deployment.upload_only, request.deployment.dry_run) {
        (true, true) => report.set_plan(request.deployment.domains.iter().map(Step::upload_only).collect()),
        (true, false) => {
            request.journal.claim(
                request.memory,
                request.deployment.domains.iter().map(Domain::host),
                report,
            );
            upload_only(request, report).await;
        }
        (false, _) => {
            request.deployment.progress.enter(Phase::Reading);
            let own;
            let listing = if let Some(account) = request.deployment.account {
                &account.listing
            } else {
                own = IndexedListing::new(request.client.listing().await?);
                &own
            };
            let result = run_planned(request, listing, report).await;
            if listing.listing().gaps().next().is_some() {
                report_gaps(&Names::of(request.vetted.chain().leaf.dns_names()), listing.listing(), report);
            }
            result?;
        }
    }
    Ok(())
}

/// Reports what the listing may lack: as an error if that may be a site or a record for the certificate.
pub(super) fn report_gaps(names: &Names, listing: &Listing, report: &mut Report) {
    for gap in listing.gaps() {
        if gap.may_hide(|domain| names.cover(domain)) {
            report.fail(incomplete_listing(gap));
        } else {
            report.warnings.push(gap.to_string());
        }
    }
}

/// The failure of a run whose listing may lack sites or records.
pub(crate) fn incomplete_listing(gap: &Gap) -> CommandError {
    CommandError::from(gap).with_consequence("what is not listed was not deployed")
}

/// Plans and rolls out.
async fn run_planned(
    request: &RolloutRequest<'_>,
    listing: &IndexedListing,
    report: &mut Report,
) -> Result<(), CommandError> {
    let leaf = &request.vetted.chain().leaf;
    let (names, lineage) = (Names::of(leaf.dns_names()), request.journal.lineage());
    let memory = request.memory;
    let account = listing.around(&names, request.deployment.domains, memory.records.iter().copied());
    let looked_up;
    let deployments = if let Some(known) = request.deployment.account {
        &known.deployments
    } else {
        looked_up = request.journal.neighbours(memory, hosts(request, &account), report);
        &looked_up
    };
    let mut deployed = memory.deployed.clone();
    let fingerprint = leaf.fingerprint();
    // Another lineage may have used the record since.
    deployed.retain(|_, record| {
        deployments.leaves_in(*record).iter().all(|known| known.leaf.fingerprint == fingerprint)
    });
    let scope = Scope {
        lineage,
        leaf: leaf.to_leaf(),
        names,
        domains: request.deployment.domains,
        account: &account,
        deployments,
        deployed: &deployed,
        missed: &memory.missed,
        verify: request.deployment.settings.verify,
        allow: permissions(request.deployment.settings, request.deployment.guards),
        is_retry: request.journal.is_retry(),
        force: request.deployment.force,
        now: clock::now(),
    };
    require_earlier_sites(request, &scope, listing)?;
    // An incomplete listing may lack a covered site.
    let may_skip = request.deployment.settings.skip_unmatched && listing.listing().site_gaps.is_empty();
    if !scope.has_sites(may_skip, report)? {
        return Ok(());
    }
    let chain = request.vetted.chain();
    let edge = Edge::new(chain, &request.deployment.settings.edge_addresses, request.clients.handshakes()?);
    let survey = if scope.needs_survey() {
        Survey::run(request, &edge, &scope.survey_groups(), &deployed).await
    } else {
        Survey::default()
    };
    let plan = scope.plan(&survey);
    report.warnings.extend(left_by_renewal(lineage, &scope.names, &account, deployments));
    let log = EdgeLog { survey: &survey, leaf: &scope.leaf, now: scope.now };
    if request.deployment.dry_run {
        report.set_plan(plan.steps());
        report.deployed.serving = Some(serving(&plan, &survey));
    } else {
        carry_out(request, &plan, listing, &edge, &log, report).await;
        // `sync` counts superseded lineages instead.
        if report.deployed.changed && request.deployment.account.is_none() {
            let bound = report.deployed.sites.iter().filter(|site| site.outcome.is_bound());
            let bound = bound.map(|site| &site.domain);
            report.warnings.extend(displaced(lineage, bound, deployments, scope.now));
        }
    }
    report_untouched(&plan, &log, request.deployment.settings, report);
    report.deployed.sites.sort_by(|a, b| a.domain.spelled().cmp(b.domain.spelled()));
    Ok(())
}

/// Fails if no requested site is listed although the lineage was deployed before: the API key may be that of another
/// account.
fn require_earlier_sites(
    request: &RolloutRequest<'_>,
    scope: &Scope<'_, '_>,
    listing: &IndexedListing,
) -> Result<(), CommandError> {
    if !listing.listing().site_gaps.is_empty() || scope.requests_any() {
        return Ok(());
    }
    let lists_none = listing.listing().sites.is_empty();
    let is_listed = |host: &str| listing.has_site(host);
    let sites = if lists_none && request.deployment.account.is_none() {
        let all = request.journal.all_deployments(request.memory);
        all.missing_hosts(scope.lineage, lists_none, is_listed)
    } else {
        scope.deployments.missing_hosts(scope.lineage, lists_none, is_listed)
    };
    if sites.is_empty() {
        Ok(())
    } else {
        let sites = text::list(&sites);
        let message = format!("the account no longer has {sites}, to which this host deployed before");
        let hint = format!(
            "check that the API key is for the right account; if the sites were deleted, run `edgecert status --forget {}`",
            scope.lineage
        );
        Err(CommandError::new(ErrorKind::Service, message).hint(hint).unsent("nothing was sent"))
    }
}

/// The hosts of the sites around a lineage, including those that its records are stored for.
fn hosts<'a>(request: &RolloutRequest<'a>, account: &Account<'a>) -> impl Iterator<Item = &'a str> {
    let stored = account.records.iter().flat_map(|record| record.domains.iter().chain(&record.name));
    let domains =
        account.sites.iter().map(|site| &site.domain).chain(stored).chain(request.deployment.domains);
    let hosts: BTreeSet<&str> = domains.map(Domain::host).collect();
    hosts.into_iter()
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
    listing: &IndexedListing,
    edge: &Edge<'_>,
    log: &EdgeLog<'_>,
    report: &mut Report,
) {
    let hosts = plan.targets.iter().filter(|target| target.action.upload().is_some());
    request.journal.claim(request.memory, hosts.map(|target| target.site.domain.host()), report);
    let mut results = upload_planned(request, &plan.uploads, listing, report).await;
    find_created(&mut results, listing);
    let mut sites = pending_sites(plan, &results, request.deployment.settings.verify);
    bind_planned(request, &mut sites).await;
    Polling { request, edge, account_sites: listing.listing().sites.len() }
        .wait_until_served(&mut sites)
        .await;

    report_results(plan, &results, &sites, log, request.deployment.settings, report);
}

/// Marks records that the complete listing lacked as created: if the response to an upload is lost, the response to
/// its retry says that a record was replaced.
fn find_created(results: &mut [UploadResult], listing: &IndexedListing) {
    for stored in results.iter_mut().flatten() {
        stored.is_new |= listing.is_deleted(stored.id);
    }
}

/// Reports the uploads that failed, and every site that an upload was planned for.
pub(super) fn report_results(
    plan: &Plan<'_>,
    results: &[UploadResult],
    sites: &[PendingSite<'_>],
    log: &EdgeLog<'_>,
    settings: &Settings,
    report: &mut Report,
) {
    report.deployed.changed |= sites.iter().any(PendingSite::may_have_been_changed);
    report.deployed.records = changed_records(plan, results, sites);
    for (upload, result) in plan.uploads.iter().zip(results) {
        if let Err(failed) = result {
            report.fail(site_error::upload(upload.domain, failed));
        }
    }
    for site in sites {
        report_pending(site, log, settings, report);
    }
}

/// The records that hold, or may hold, the leaf after the uploads.
fn changed_records(plan: &Plan<'_>, results: &[UploadResult], sites: &[PendingSite<'_>]) -> ChangedRecords {
    let mut changed = ChangedRecords::default();
    for (upload, result) in plan.uploads.iter().zip(results) {
        match result {
            Ok(StoredRecord { id, contradiction: None, .. }) => changed.stored.push(*id),
            Ok(stored) => changed.maybe_stored.extend(upload.replaces.iter().copied().chain([stored.id])),
            Err(failed) if failed.may_be_done => changed.maybe_stored.extend(&upload.replaces),
            Err(_) => {}
        }
    }
    // The service may have created a record and bound it.
    let lost = sites.iter().filter(|site| site.stored.is_err_and(|failed| failed.may_be_done));
    changed.maybe_stored.extend(lost.filter_map(|site| site.latest().cert_id));
    changed
}

/// The sites that the plan has an upload for, each with the result of that upload.
pub(super) fn pending_sites<'p>(
    plan: &'p Plan<'p>,
    results: &'p [UploadResult],
    verify: Verify,
) -> Vec<PendingSite<'p>> {
    let pending = |target: &'p Target<'p>| {
        let index = target.action.upload()?;
        let (upload, result) = (plan.uploads.get(index)?, results.get(index)?);
        Some(PendingSite::new(target, upload, result.as_ref(), verify))
    };
    plan.targets.iter().filter_map(pending).collect()
}
