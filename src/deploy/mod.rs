//! Deploys one lineage: check, record the intent, upload, bind, wait until the edge serves the new leaf, report each
//! site, record the result.
//!
//! `deploy` and `sync` take this path. It gets resolved settings and plain options, fills a report and prints nothing.
//! The steps are in files of their own.

mod client_cache;
mod journal;
mod left_behind;
mod pending_site;
mod polling;
mod scope;
mod survey;
mod upload;
mod verdict;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use rustls::RootCertStore;
use serde_json::{Map, json};

pub(crate) use self::client_cache::ClientCache;
pub(crate) use self::journal::{Journal, locked};
pub(crate) use self::left_behind::left_behind;
use self::left_behind::left_by_renewal;
use self::pending_site::{PendingSite, SiteReading, StoredRecord};
use self::polling::Polling;
use self::scope::Scope;
use self::survey::Survey;
use self::upload::UploadResult;
use self::verdict::{failed_upload, report_pending, report_untouched};
use crate::api::{Client, Gap, MAX_CONCURRENT_REQUESTS};
use crate::bundle::{self, Bundle};
use crate::check::{self, CheckContext, PathRule, Status, Vetted};
use crate::clock::{self, Deadline};
use crate::error::{CommandError, Diagnostic as _, Result};
use crate::names::{Domain, Names};
use crate::plan::{Account, Allow, IndexedListing, Plan, Step, Target, Upload};
use crate::progress::{Phase, Progress};
use crate::report::{CertificateReport, Report, ServingReport};
use crate::secret::Redactor;
use crate::settings::{Guards, Settings, TrustPolicy, Verify};
use crate::source::Source;
use crate::state::{LineageState, ServiceDeployments};
use crate::trust::TrustStores;
use crate::verify::{Edge, EdgeView};
use crate::{file, text};

/// A lineage to deploy and the options for it.
pub(crate) struct Deployment<'a> {
    pub(crate) source: &'a Source,
    pub(crate) settings: &'a Settings,
    /// The sites that must get the certificate, each once; empty means every covered site.
    pub(crate) domains: &'a [Domain],
    pub(crate) guards: Guards,
    /// Upload for `domains` and do nothing else: no listing, no guards, no waiting.
    pub(crate) upload_only: bool,
    /// Upload even for sites that have the leaf.
    pub(crate) force: bool,
    /// Plan, and change nothing.
    pub(crate) dry_run: bool,
    /// The account as listed before; `None` lists it.
    pub(crate) account: Option<&'a AccountSnapshot>,
    pub(crate) deadline: Deadline,
    pub(crate) progress: &'a Progress,
}

/// A vetted certificate, and what its deployment needs.
struct Rollout<'a> {
    deployment: &'a Deployment<'a>,
    client: &'a Client,
    clients: &'a ClientCache,
    vetted: &'a Vetted<'a>,
    journal: &'a Journal,
}

/// An account as it was listed once for many deployments.
pub(crate) struct AccountSnapshot {
    pub(crate) listing: Rc<IndexedListing>,
    /// What this host deployed to the service.
    pub(crate) deployments: Rc<ServiceDeployments>,
}

impl Deployment<'_> {
    /// Deploys and adds the results to the report. An error means that nothing was sent; failures of single sites are
    /// in the report. The caller passes the result to `Journal::finish`.
    pub(crate) async fn run(
        &self,
        journal: &mut Journal,
        clients: &ClientCache,
        report: &mut Report,
    ) -> Result<()> {
        (self.progress)(Phase::Checking);
        if let Some(key) = self.source.files.key.as_ref().filter(|key| file::is_open_to_others(key)) {
            // A mounted secret may have to be readable by others, so this is not an error.
            report.warnings.push(format!("others can read the private key {}", text::path(key)));
        }
        let bundle = self.load_bundle(clients).await?;
        report.deployed.certificate = bundle.chain.as_ref().ok().map(CertificateReport::new);
        if let Ok(chain) = &bundle.chain {
            journal.set_leaf(&chain.leaf)?;
        }
        let anchors = self.load_anchors(&clients.stores)?;
        let path = anchors.as_ref().map(|(anchors, no_path)| PathRule { anchors, no_path: *no_path });
        let directory = self.source.acme_directory();
        let context = CheckContext {
            domains: self.domains,
            at: clock::now(),
            untrusted: if self.settings.allow_untrusted { Status::Warn } else { Status::Fail },
            path,
            directory: directory.as_deref(),
        };
        report.add_findings(check::run(&bundle, &context));
        let Some(vetted) = check::vet(&bundle, &report.deployed.checks) else { return Ok(()) };
        journal.begin(report);
        let mut redactor = Redactor::default();
        vetted.key().hide_in(&mut redactor);
        let client = &clients.client(self.settings, redactor, self.deadline)?;
        let rollout = Rollout { deployment: self, client, clients, vetted: &vetted, journal };
        if self.upload_only {
            if self.dry_run {
                report.set_plan(self.domains.iter().map(Step::upload_only).collect());
            } else {
                rollout.upload_only(report).await;
            }
            return Ok(());
        }
        (self.progress)(Phase::Reading);
        let listing = match self.account {
            Some(account) => Rc::clone(&account.listing),
            None => Rc::new(IndexedListing::new(client.listing().await?)),
        };
        let result = rollout.run(&listing, report).await;
        report_gaps(&Names::of(vetted.chain().leaf.dns_names()), &listing, journal.before.as_ref(), report);
        result
    }

    async fn load_bundle(&self, clients: &ClientCache) -> Result<Bundle> {
        let mut files = self.source.files.clone();
        // Certificate and key may be in one file.
        files.key.get_or_insert_with(|| files.cert.clone());
        // For a single lineage, a thread would only cost time.
        let is_one_of_many = self.account.is_some();
        let _permit = if is_one_of_many { Some(clients.loads.acquire().await) } else { None };
        let loaded = bundle::load_settled(files, self.deadline, is_one_of_many).await;
        loaded.map_err(|error| error.diagnose().misuse(error.is_missing()))
    }

    /// Loads the trust anchors that the chain is checked against; also returns the result for a chain without a path to
    /// one. `None` if the path is not to be checked.
    fn load_anchors(&self, stores: &TrustStores) -> Result<Option<(Arc<RootCertStore>, Status)>> {
        match &self.settings.trust_anchors {
            TrustPolicy::Off => Ok(None),
            TrustPolicy::Required(roots) => Ok(Some((stores.load(roots, self.deadline)?, Status::Fail))),
            TrustPolicy::Advisory(roots) => {
                let Settings { base_url, roots: own, .. } = self.settings;
                // Loading the system's roots takes longer than the rest of a bare upload, unless its connection does.
                if self.upload_only && (base_url.is_plain() || own != roots) {
                    return Ok(None);
                }
                // A system without any must not fail the run.
                let loaded = stores.load(roots, self.deadline);
                let loaded =
                    loaded.inspect_err(|error| log::info!("the path to a root is not checked: {error}"));
                Ok(loaded.ok().map(|anchors| (anchors, Status::Warn)))
            }
        }
    }
}

impl Rollout<'_> {
    /// Plans, uploads, binds, waits until the edge serves the certificate, and reports every site of the plan.
    async fn run(&self, listing: &IndexedListing, report: &mut Report) -> Result<()> {
        let Deployment { domains, settings, account: snapshot, .. } = *self.deployment;
        let chain = self.vetted.chain();
        let (leaf, names) = (chain.leaf.to_leaf(), Names::of(chain.leaf.dns_names()));
        let (before, service) = (self.journal.before.as_ref(), settings.base_url.to_string());
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
            settings,
            allow: Allow { rebind: settings.rebind, guards: self.deployment.guards },
            repeats_since: self.journal.repeats_since(),
            force: self.deployment.force,
            now: clock::now(),
            survey: Survey::default(),
        };
        scope.require_earlier(|| snapshot.is_none().then(|| self.journal.all_deployments(&service)))?;
        // An incomplete listing may lack a covered site.
        let may_skip = settings.skip_unmatched && listing.listing().sites.gaps.is_empty();
        if !scope.has_sites(may_skip, report)? {
            return Ok(());
        }
        let edge = Edge::new(chain, &settings.edge_addresses, self.clients.handshakes()?);
        if scope.needs_survey() {
            scope.survey = Survey::run(self, &edge, &scope).await;
        }
        let plan = scope.plan();
        report.warnings.extend(left_by_renewal(&scope));
        if self.deployment.dry_run {
            report.set_plan(plan.steps());
            report.deployed.serving = Some(serving(&plan, &scope.survey));
        } else {
            let reached = plan.targets.iter().filter(|target| target.action.upload().is_some());
            self.journal.claim(&service, reached.map(|target| target.site.domain.host()), report);
            let results = self.upload_planned(&plan.uploads, listing, report).await;
            let mut sites = pending_sites(&plan, &results, settings.verify);
            self.bind(&mut sites, |site: &PendingSite<'_>| site.is_binding_planned()).await;
            let polling =
                Polling { rollout: self, edge: &edge, account_sites: listing.listing().sites.items.len() };
            polling.wait_until_served(&mut sites).await;
            report_results(&plan, &results, &sites, &scope, report);
        }
        report_untouched(&plan, &scope, report);
        report.deployed.sites.sort_by_cached_key(|site| site.domain.spelled().to_owned());
        Ok(())
    }

    /// Sets `cert_id` of the sites that are due. Returns whether any was.
    async fn bind(&self, sites: &mut [PendingSite<'_>], is_due: impl Fn(&PendingSite<'_>) -> bool) -> bool {
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
fn report_gaps(names: &Names, listing: &IndexedListing, before: Option<&LineageState>, report: &mut Report) {
    let gaps = &listing.listing().sites.gaps;
    let is_hidden = |domain: &&Domain| {
        gaps.iter().any(|gap| gap.may_hide(|hidden| hidden == *domain))
            && names.cover(domain)
            && listing.site(domain.host()).is_none()
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
    gap.diagnose().with_consequence("what is not listed was not deployed")
}

/// The hosts of the sites around a lineage, including those that its records are stored for.
fn hosts<'a>(account: &Account<'a>, domains: &'a [Domain]) -> BTreeSet<&'a str> {
    let stored = account.records.iter().flat_map(|record| record.all_domains());
    let domains = account.sites.iter().map(|site| &site.domain).chain(stored).chain(domains);
    domains.map(Domain::host).collect()
}

/// What the edges of the planned sites serve now.
fn serving(plan: &Plan<'_>, survey: &Survey) -> Vec<ServingReport> {
    let sites = plan.targets.iter().map(|target| target.site);
    let serving = sites.map(|site| ServingReport::new(site.id, site.domain.spelled(), survey.view(site.id)));
    let mut serving: Vec<ServingReport> = serving.collect();
    serving.sort_by_cached_key(|site| site.domain.clone());
    serving
}

/// Reports the uploads that failed, and every site that an upload was planned for.
fn report_results(
    plan: &Plan<'_>,
    results: &[UploadResult],
    sites: &[PendingSite<'_>],
    scope: &Scope<'_, '_>,
    report: &mut Report,
) {
    report.deployed.changed |= sites.iter().any(PendingSite::may_have_been_changed);
    for (upload, result) in plan.uploads.iter().zip(results) {
        report_planned_upload(upload, result, report);
    }
    // The service may have created a record and bound it.
    let lost = sites.iter().filter(|site| site.stored.is_err_and(|failed| failed.may_be_done));
    report.deployed.records.maybe_stored.extend(lost.filter_map(|site| site.latest().cert_id));
    for site in sites {
        report_pending(site, scope, report);
    }
}

/// Reports the records that hold, or may hold, the leaf after an upload, and its failure.
fn report_planned_upload(upload: &Upload<'_>, result: &UploadResult, report: &mut Report) {
    let records = &mut report.deployed.records;
    match result {
        Ok(StoredRecord { id, contradiction: None, .. }) => records.stored.extend([*id]),
        Ok(stored) => records.maybe_stored.extend(upload.replaces.iter().copied().chain([stored.id])),
        Err(failed) => {
            let replaced = upload.replaces.iter().filter(|_| failed.may_be_done);
            records.maybe_stored.extend(replaced);
            report.fail(failed_upload(upload.domain, failed));
        }
    }
}

/// The sites that the plan has an upload for, each with the result of that upload.
fn pending_sites<'p>(
    plan: &'p Plan<'p>,
    results: &'p [UploadResult],
    verify: Verify,
) -> Vec<PendingSite<'p>> {
    let pending = |target: &'p Target<'p>| {
        let index = target.action.upload()?;
        Some(PendingSite {
            target,
            upload: plan.uploads.get(index)?,
            stored: results.get(index)?.as_ref(),
            reading: SiteReading::Unread,
            binding: None,
            view: EdgeView::new(verify == Verify::Require),
            is_edge_checked: false,
        })
    };
    plan.targets.iter().filter_map(pending).collect()
}

#[cfg(test)]
mod around_test;
#[cfg(test)]
pub(crate) mod model;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::{AttemptError, List, Listing, RequestError};
    use crate::source::Source;
    use crate::state::fixture::served;
    use crate::state::{RunOptions, SiteState};

    #[test]
    fn lost_response_leaves_records_that_may_hold_the_leaf() {
        let domain: Domain = "a.example".parse().unwrap();
        let upload =
            Upload { domain: &domain, replaces: vec![5], may_create: false, alternatives: Vec::new() };
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
            let mut report = Report::new("deploy");
            report_planned_upload(&upload, &result, &mut report);
            let changed = report.deployed.records;
            let ids = |ids: &[u64]| ids.iter().copied().collect::<BTreeSet<_>>();
            assert_eq!((changed.stored, changed.maybe_stored), (ids(certain), ids(possible)));
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
