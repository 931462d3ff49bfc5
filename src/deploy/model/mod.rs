//! A deployment to a modelled service: the decisions are those of a rollout, the requests and handshakes are those of
//! the model. For tests of many deployments in a row.

mod world;

use std::collections::HashMap;

use time::OffsetDateTime;

use self::world::Failure;
pub(crate) use self::world::{
    Change, Faults, ModelEdge, ModelRecord, ModelSite, Moment, NAMES, SITE_NAMES, STAGING, World, covers,
};
pub(crate) use super::journal::recorded_sites;
use super::pending_site::{PendingSite, SiteReading, StoredRecord};
use super::scope::Scope;
use super::survey::{Survey, tried};
use super::upload::{UploadResult, unverified_findings};
use super::verdict::{failed_outcome, failed_upload, report_untouched, unused};
use super::{pending_sites, report_gaps, report_results};
use crate::api::{AttemptError, RequestError, SavedSite, Site};
use crate::error::{CommandError, Diagnostic as _, ErrorKind, Result};
use crate::leaf::Leaf;
use crate::names::{Domain, Names};
use crate::outcome::{ChangedRecords, Outcome};
use crate::plan::{Allow, IndexedListing, Plan, Upload};
use crate::report::{Report, SiteReport};
use crate::settings::{Guards, Settings, Verify};
use crate::state::{LineageState, ServiceDeployments, SiteState};
use crate::verify::EdgeView;

/// A lineage to deploy.
pub(crate) struct ModelDeployment<'a> {
    pub(crate) lineage: &'a str,
    pub(crate) leaf: usize,
    pub(crate) domains: &'a [Domain],
    pub(crate) settings: &'a Settings,
    pub(crate) guards: Guards,
    /// Upload even for sites that have the leaf.
    pub(crate) force: bool,
    /// Upload for `domains` and do nothing else.
    pub(crate) upload_only: bool,
    /// If this run is a retry by `sync`: when the deployment became pending.
    pub(crate) repeats_since: Option<OffsetDateTime>,
    pub(crate) deployments: &'a ServiceDeployments,
    pub(crate) missed: &'a HashMap<u64, u64>,
    /// The state when it begins.
    pub(crate) known: &'a LineageState,
    pub(crate) listing: &'a IndexedListing,
}

/// What the report of a deployment says.
pub(crate) struct ModelResult {
    pub(crate) exit_code: u8,
    pub(crate) error: Option<String>,
    pub(crate) sites: Vec<SiteState>,
    pub(crate) records: ChangedRecords,
    /// The sites that count as served.
    pub(crate) served: Vec<u64>,
    /// Whether nothing was changed, for a reason that is not temporary.
    pub(crate) is_mistake: bool,
}

impl ModelDeployment<'_> {
    /// Deploys. Returns `None` if the run was killed.
    pub(crate) fn run(&self, world: &mut World) -> Option<ModelResult> {
        let mut report = Report::new("deploy");
        let is_finished = self.roll_out(world, &mut report)?;
        report_gaps(&names_of(&world.leaves[self.leaf]), self.listing, Some(self.known), &mut report);
        if let Err(error) = is_finished {
            report.fail(error);
        }
        let served = report.deployed.sites.iter().filter(|site| site.outcome == Outcome::Served);
        Some(ModelResult {
            exit_code: report.exit_code(),
            error: report.error(),
            sites: recorded_sites(&report.deployed, self.known),
            served: served.filter_map(|site| site.id).collect(),
            is_mistake: !report.deployed.changed
                && !report.errors().is_empty()
                && report.errors().iter().all(|error| error.kind() != ErrorKind::Temporary),
            records: report.deployed.records,
        })
    }

    fn roll_out(&self, world: &mut World, report: &mut Report) -> Option<Result<()>> {
        let leaf = world.leaves[self.leaf].clone();
        let is_untrusted = leaf.issuer.as_deref() == Some(STAGING) && !self.settings.allow_untrusted;
        if leaf.not_after < world.now || is_untrusted {
            return Some(Err(CommandError::new(ErrorKind::Refused, "expired or untrusted")));
        }
        if let Some(kind) = world.faults.outage {
            return Some(Err(CommandError::new(kind, "the service is out of order")));
        }
        if self.upload_only {
            self.upload_only(world, report);
            return Some(Ok(()));
        }
        let names = names_of(&leaf);
        let account = self.listing.around(&names, self.domains, []);
        let mut scope = Scope {
            lineage: self.lineage,
            leaf: leaf.clone(),
            names,
            domains: self.domains,
            account: &account,
            deployments: self.deployments,
            missed: self.missed,
            settings: self.settings,
            allow: Allow { rebind: self.settings.rebind, guards: self.guards },
            repeats_since: self.repeats_since,
            force: self.force,
            now: world.now,
            survey: Survey::default(),
        };
        match scope.has_sites(self.settings.skip_unmatched, report) {
            Ok(true) => {}
            Ok(false) => return Some(Ok(())),
            Err(error) => return Some(Err(error)),
        }
        if scope.needs_survey() {
            scope.survey = self.observe(world, &scope);
        }
        let plan = scope.plan();
        if world.is_killed() {
            return None;
        }
        self.carry_out(world, &plan, &scope, report)?;
        report_untouched(&plan, &scope, report);
        Some(Ok(()))
    }

    fn observe(&self, world: &World, scope: &Scope<'_, '_>) -> Survey {
        let (mut survey, groups) = (Survey::default(), scope.survey_groups());
        for group in &groups {
            for site in tried(group) {
                let view = self.view(world, scope, site);
                let has_leaf = view.has_leaf();
                survey.add([(site, view)].into_iter());
                if has_leaf {
                    break;
                }
            }
        }
        let rest = survey.due(&groups, |group| !self.force && survey.may_be_current(group, scope));
        survey.add(rest.into_iter().map(|site| (site, self.view(world, scope, site))));
        survey
    }

    fn view(&self, world: &World, scope: &Scope<'_, '_>, site: &Site) -> EdgeView {
        let mut view = scope.new_view();
        world.observe(site.id, self.leaf, !world.faults.is_blind, &mut view);
        view
    }

    /// Uploads, binds, waits and reports. `None` if the run is killed.
    fn carry_out(
        &self,
        world: &mut World,
        plan: &Plan<'_>,
        scope: &Scope<'_, '_>,
        report: &mut Report,
    ) -> Option<()> {
        let results: Vec<UploadResult> =
            plan.uploads.iter().map(|upload| self.upload(world, upload, report)).collect();
        if world.is_killed() {
            return None;
        }
        let mut sites = pending_sites(plan, &results, self.settings.verify);
        bind(world, &mut sites, |site: &PendingSite<'_>| site.is_binding_planned());
        if !sites.is_empty() {
            self.wait(world, &mut sites);
        }
        report_results(plan, &results, &sites, scope, report);
        Some(())
    }

    /// The bare upload: no listing, no handshakes.
    fn upload_only(&self, world: &mut World, report: &mut Report) {
        for domain in self.domains {
            let (outcome, cert_id) = match self.upload_for(world, domain, report) {
                Ok(StoredRecord { id, is_new, .. }) => {
                    report.deployed.records.stored.insert(id);
                    if is_new && !world.sites.iter().any(|site| site.cert_id == Some(id)) {
                        report.fail(unused(domain, id));
                        (Outcome::Misbound, None)
                    } else {
                        (Outcome::Uploaded, Some(id))
                    }
                }
                Err(failed) => {
                    report.deployed.records.is_any_possible |= failed.may_be_done;
                    report.fail(failed_upload(domain, &failed));
                    (failed_outcome(&failed), None)
                }
            };
            let findings = unverified_findings(self.settings.verify, &outcome);
            report.deployed.sites.push(SiteReport {
                cert_id,
                findings,
                ..SiteReport::new(domain, outcome, None)
            });
        }
    }

    fn upload(&self, world: &mut World, upload: &Upload<'_>, report: &mut Report) -> UploadResult {
        let mut result = self.upload_for(world, upload.domain, report);
        for domain in &upload.alternatives {
            if !result.as_ref().is_err_and(|failed| failed.diagnose().kind() == ErrorKind::Service) {
                break;
            }
            result = self.upload_for(world, domain, report);
        }
        result
    }

    fn upload_for(&self, world: &mut World, domain: &Domain, report: &mut Report) -> UploadResult {
        let result = world.upload(World::index_of(domain), self.leaf).map_err(request_error);
        report.deployed.changed |= result.as_ref().map_or_else(|failed| failed.may_be_done, |_| true);
        let (id, is_new) = result?;
        Ok(StoredRecord { id, is_new, is_of_others: false, contradiction: None })
    }

    /// The wait with one pause, in which the configuration reaches the edges unless its push is held.
    fn wait(&self, world: &mut World, sites: &mut [PendingSite<'_>]) {
        read(world, sites);
        let is_missing = |site: &PendingSite<'_>| site.is_binding_missing(self.settings.rebind);
        if bind(world, sites, is_missing) {
            read(world, sites);
        }
        if self.settings.wait.is_zero() {
            return;
        }
        for is_last in [false, true] {
            if self.settings.verify != Verify::Off {
                for site in sites.iter_mut().filter(|site| site.is_handshake_due(is_last)) {
                    site.is_edge_checked = true;
                    world.observe(site.target.site.id, self.leaf, true, &mut site.view);
                }
            }
            world.push();
            read(world, sites);
        }
    }
}

fn names_of(leaf: &Leaf) -> Names {
    Names::of(leaf.names.iter().map(String::as_str))
}

fn read(world: &World, sites: &mut [PendingSite<'_>]) {
    for site in sites.iter_mut().filter(|_| !world.faults.is_unreadable) {
        let at = usize::try_from(site.target.site.id).unwrap() - 1;
        site.reading = SiteReading::Site(world.listed(at));
    }
}

/// Binds the sites that are due. Returns whether any was.
fn bind(world: &mut World, sites: &mut [PendingSite<'_>], is_due: impl Fn(&PendingSite<'_>) -> bool) -> bool {
    let mut due: Vec<&mut PendingSite<'_>> = sites.iter_mut().filter(|site| is_due(site)).collect();
    for site in &mut due {
        let Ok(stored) = site.stored else { continue };
        let at = usize::try_from(site.target.site.id).unwrap() - 1;
        let bound = world.bind(at, stored.id).map_err(request_error);
        site.binding = Some(bound.map(|()| SavedSite { site: None, ignored_fields: Vec::new() }));
    }
    !due.is_empty()
}

fn request_error(failure: Failure) -> RequestError {
    let message = String::new();
    let error = match failure {
        Failure::Refused => AttemptError::Refused { status: 400, message },
        Failure::Busy => AttemptError::Unavailable { status: 503, retry_after: None, message },
        Failure::Lost => AttemptError::NoResponse { message, reason: String::new(), is_sent: true },
    };
    RequestError { attempts: 1, may_be_done: error.may_be_done(), error }
}
