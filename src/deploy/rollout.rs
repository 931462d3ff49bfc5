//! Rolls a vetted certificate out: list, plan, upload, bind, wait, and report for each site what the service and its
//! edge show.

use std::collections::BTreeSet;
use std::rc::Rc;

use futures_util::{StreamExt as _, stream};
use serde_json::{Map, json};

use super::left_behind::left_by_renewal;
use super::pending_site::{PendingSite, StoredRecord};
use super::polling::Polling;
use super::scope::Scope;
use super::survey::Survey;
use super::upload::UploadResult;
use super::verdict::{failed_upload, report_pending, report_untouched};
use super::{ClientCache, Deployment, Journal};
use crate::api::{Client, Gap, MAX_CONCURRENT_REQUESTS};
use crate::check::Vetted;
use crate::clock;
use crate::error::CommandError;
use crate::names::{Domain, Names};
use crate::outcome::ChangedRecords;
use crate::plan::{Account, Allow, IndexedListing, Plan, Step, Target};
use crate::progress::Phase;
use crate::report::{Report, ServingReport};
use crate::settings::{Settings, Verify};
use crate::state::{LineageState, ServiceDeployments};
use crate::verify::Edge;

/// A vetted certificate, and what its deployment needs.
pub(super) struct Rollout<'a> {
    pub(super) deployment: &'a Deployment<'a>,
    /// Those of the deployment.
    pub(super) settings: &'a Settings,
    pub(super) client: &'a Client,
    pub(super) clients: &'a ClientCache,
    pub(super) vetted: &'a Vetted<'a>,
    pub(super) journal: &'a Journal,
}

/// An account as it was listed once for many deployments.
pub(crate) struct AccountSnapshot {
    pub(crate) listing: IndexedListing,
    /// What this host deployed to the service.
    pub(crate) deployments: Rc<ServiceDeployments>,
}

impl Rollout<'_> {
    /// Rolls out and adds the results to the report. An error means that nothing was sent; failures of single sites are
    /// in the report.
    pub(super) async fn run(&self, report: &mut Report) -> Result<(), CommandError> {
        let Deployment { domains, account, upload_only, dry_run, progress, .. } = *self.deployment;
        if upload_only {
            if dry_run {
                report.set_plan(domains.iter().map(Step::upload_only).collect());
            } else {
                self.journal.claim(&self.settings.base_url.to_string(), domains, report);
                self.upload_only(report).await;
            }
            return Ok(());
        }
        progress.enter(Phase::Reading);
        let own;
        let listing = if let Some(account) = account {
            &account.listing
        } else {
            own = IndexedListing::new(self.client.listing().await?);
            &own
        };
        let result = self.run_planned(listing, report).await;
        let names = Names::of(self.vetted.chain().leaf.dns_names());
        report_gaps(&names, listing, self.journal.before(), report);
        result
    }

    /// Plans, uploads, binds, waits until the edge serves the certificate, and reports every site of the plan.
    async fn run_planned(&self, listing: &IndexedListing, report: &mut Report) -> Result<(), CommandError> {
        let Deployment { domains, account: snapshot, .. } = *self.deployment;
        let chain = self.vetted.chain();
        let (leaf, names) = (chain.leaf.to_leaf(), Names::of(chain.leaf.dns_names()));
        let (before, service) = (self.journal.before(), self.settings.base_url.to_string());
        let stored = before.map(|state| state.stored_records(&service)).unwrap_or_default();
        let missed = before.map(|state| state.missed_sites(&service, &leaf)).unwrap_or_default();
        let account = listing.around(&names, domains, stored);
        let deployments = &match snapshot {
            Some(known) => Rc::clone(&known.deployments),
            None => self.journal.neighbours(&service, hosts(&account, domains), report),
        };
        let mut scope = Scope {
            lineage: &self.journal.name,
            leaf,
            names,
            domains,
            account: &account,
            deployments,
            missed: &missed,
            verify: self.settings.verify,
            allow: Allow { rebind: self.settings.rebind, guards: self.deployment.guards },
            repeats_since: self.journal.repeats_since(),
            force: self.deployment.force,
            now: clock::now(),
            survey: Survey::default(),
        };
        scope.require_earlier_sites(|| snapshot.is_none().then(|| self.journal.all_deployments(&service)))?;
        // An incomplete listing may lack a covered site.
        let may_skip = self.settings.skip_unmatched && listing.listing().sites.gaps.is_empty();
        if !scope.has_sites(may_skip, report)? {
            return Ok(());
        }
        let edge = Edge::new(chain, &self.settings.edge_addresses, self.clients.handshakes()?);
        if scope.needs_survey() {
            scope.survey = Survey::run(self, &edge, &scope).await;
        }
        let plan = scope.plan();
        report.warnings.extend(left_by_renewal(scope.lineage, &scope.names, &account, deployments));
        if self.deployment.dry_run {
            report.set_plan(plan.steps());
            report.deployed.serving = Some(serving(&plan, &scope.survey));
        } else {
            let reached = plan.targets.iter().filter(|target| target.action.upload().is_some());
            self.journal.claim(&service, reached.map(|target| &target.site.domain), report);
            let results = self.upload_planned(&plan.uploads, listing, report).await;
            let mut sites = pending_sites(&plan, &results, self.settings.verify);
            self.bind(&mut sites, |site: &PendingSite<'_>| site.is_binding_planned()).await;
            let polling =
                Polling { rollout: self, edge: &edge, account_sites: listing.listing().sites.items.len() };
            polling.wait_until_served(&mut sites).await;
            report_results(&plan, &results, &sites, &scope, self.settings, report);
        }
        report_untouched(&plan, &scope, self.settings, report);
        report.deployed.sites.sort_by(|a, b| a.domain.spelled().cmp(b.domain.spelled()));
        Ok(())
    }

    /// Sets `cert_id` of the sites that are due. Returns whether any was.
    pub(super) async fn bind(
        &self,
        sites: &mut [PendingSite<'_>],
        is_due: impl Fn(&PendingSite<'_>) -> bool,
    ) -> bool {
        let any = sites.iter().any(&is_due);
        let due = sites.iter_mut().filter(|site| is_due(site));
        let stored = due.filter_map(|site| Some((site.record_to_bind()?, site)));
        let updates = stored.map(|(id, site)| async move {
            log::info!("binding {} to certificate {id}", site.target.site.domain);
            let fields = Map::from_iter([("cert_id".to_owned(), json!(id))]);
            site.binding = Some(self.client.update_site(site.target.site.id, &fields).await);
        });
        stream::iter(updates).buffer_unordered(MAX_CONCURRENT_REQUESTS).for_each(std::future::ready).await;
        any
    }
}

/// Reports what the listing may lack: as an error if that may be a site or a record for the certificate.
pub(super) fn report_gaps(
    names: &Names,
    listing: &IndexedListing,
    before: Option<&LineageState>,
    report: &mut Report,
) {
    let gaps = &listing.listing().sites.gaps;
    let is_hidden = |domain: &&Domain| {
        gaps.iter().any(|gap| gap.may_hide(|hidden| hidden == *domain))
            && names.cover(domain)
            && !listing.has_site(domain.host())
    };
    let known = before.iter().flat_map(|state| &state.sites).map(|site| &site.domain);
    report.deployed.hidden = known.filter(is_hidden).cloned().collect();
    for gap in listing.listing().gaps() {
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

/// The hosts of the sites around a lineage, including those that its records are stored for.
fn hosts<'a>(account: &Account<'a>, domains: &'a [Domain]) -> impl Iterator<Item = &'a str> {
    let stored = account.records.iter().flat_map(|record| record.domains.iter().chain(&record.name));
    let domains = account.sites.iter().map(|site| &site.domain).chain(stored).chain(domains);
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

/// Reports the uploads that failed, and every site that an upload was planned for.
pub(super) fn report_results(
    plan: &Plan<'_>,
    results: &[UploadResult],
    sites: &[PendingSite<'_>],
    scope: &Scope<'_, '_>,
    settings: &Settings,
    report: &mut Report,
) {
    report.deployed.changed |= sites.iter().any(PendingSite::may_have_been_changed);
    report.deployed.records = changed_records(plan, results, sites);
    for (upload, result) in plan.uploads.iter().zip(results) {
        if let Err(failed) = result {
            report.fail(failed_upload(upload.domain, failed));
        }
    }
    for site in sites {
        report_pending(site, scope, settings, report);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::{AttemptError, List, Listing, RequestError};
    use crate::plan::Upload;
    use crate::source::Source;
    use crate::state::fixture::served;
    use crate::state::{RunOptions, SiteState};

    #[test]
    fn lost_response_leaves_records_that_may_hold_the_leaf() {
        let domain: Domain = "a.example".parse().unwrap();
        let upload =
            Upload { domain: &domain, replaces: vec![5], may_create: false, alternatives: Vec::new() };
        let plan = Plan { uploads: vec![upload], ..Plan::default() };
        let stored =
            |contradiction| StoredRecord { id: 6, is_new: false, is_of_others: false, contradiction };
        let failed = |may_be_done| {
            let error = AttemptError::NotOk { message: String::new() };
            RequestError { attempts: 1, may_be_done, error }
        };
        for (result, certain, possible) in [
            (Ok(stored(None)), &[6][..], &[][..]),
            (Ok(stored(Some("odd".into()))), &[], &[5, 6]),
            (Err(failed(true)), &[], &[5]),
            (Err(failed(false)), &[], &[]),
        ] {
            let changed = changed_records(&plan, &[result], &[]);
            assert_eq!((&*changed.stored, &*changed.maybe_stored), (certain, possible));
        }
    }

    #[test]
    fn gaps_may_hide_sites_of_the_certificate() {
        let now = clock::now();
        let mut before = LineageState::begin(None, Source::of_file("/c"), &RunOptions::default(), None, now);
        let known = |domain: &str| SiteState { domain: domain.parse().unwrap(), ..served().remove(0) };
        before.sites = ["a.example", "b.example", "c.example"].map(known).to_vec();
        let names = Names::of(["a.example", "b.example"]);
        let listed = json!({"id": 1, "domain": "a.example"});
        for (sites, hidden, found) in [
            (json!([listed]), None, (0, 0)),
            (json!([listed, {"domain": "b.example"}]), Some("b.example"), (1, 0)),
            (json!([listed, {"domain": "c.example"}]), None, (0, 1)),
            (json!({"sites": [listed], "total": 2}), Some("b.example"), (1, 0)),
        ] {
            let listing =
                Listing { records: List::of(&json!([])).unwrap(), sites: List::of(&sites).unwrap() };
            let mut report = Report::new("deploy");
            report_gaps(&names, &IndexedListing::new(listing), Some(&before), &mut report);
            let found_hidden: Vec<&str> = report.deployed.hidden.iter().map(Domain::host).collect();
            assert_eq!(found_hidden, Vec::from_iter(hidden), "{sites}");
            assert_eq!((report.errors().len(), report.warnings.len()), found, "{sites}");
        }
    }
}
