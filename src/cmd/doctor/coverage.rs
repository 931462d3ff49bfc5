//! Compares the lineages of this host with the sites and records of the account: uncovered sites, lineages that replace
//! each other's certificates, and sites that a deployment could not reach. Pure.

use std::collections::{BTreeMap, HashMap};

use time::OffsetDateTime;

use super::finding::{DoctorFinding, Subject};
use super::lineages::HostLineage;
use super::uncovered;
use crate::api::{Listing, RecordType, Site};
use crate::error::ErrorKind;
use crate::names::Domain;
use crate::plan::{self, Action, Blocker, Plan, PlanRequest, RecordLeaf};
use crate::state::ServiceDeployments;
use crate::text;

/// The inputs of the comparison.
pub(super) struct Coverage<'a> {
    pub(super) account: &'a Listing,
    /// Lineages that are deployed at each renewal.
    pub(super) deployed: Vec<&'a HostLineage>,
    /// Other lineages that cover sites.
    pub(super) idle: Vec<&'a HostLineage>,
    /// What this host deployed to the service.
    pub(super) deployments: &'a ServiceDeployments,
    pub(super) now: OffsetDateTime,
}

/// Sites with several lineages, by site id: the site and the titles of its lineages.
type ContestedSites<'a> = BTreeMap<u64, (&'a Site, Vec<String>)>;

/// Records whose sites have different lineages, by record id: the domains and the titles of their lineages.
type SharedRecords = BTreeMap<u64, (Vec<String>, Vec<String>)>;

impl Coverage<'_> {
    /// One finding for each problem, or a single `ok` finding for all covered sites; then those of the other sites.
    pub(super) fn findings(&self) -> Vec<DoctorFinding> {
        let contested = self.contested_sites();
        let shared = self.shared_records(&contested);
        let mut findings: Vec<DoctorFinding> =
            self.deployed.iter().flat_map(|lineage| self.unmatched(lineage)).collect();
        let uncovered: Vec<&Site> = self.sites().iter().filter(|site| self.is_uncovered(site)).collect();
        findings.extend(contested.values().map(|(site, lineages)| contested_finding(site, lineages)));
        findings.extend(shared.values().map(|(sites, lineages)| shared_finding(sites, lineages)));
        for lineage in &self.deployed {
            findings.extend(self.blocked(lineage, &contested, &shared));
        }
        if findings.is_empty() && uncovered.len() < self.sites().len() {
            findings.push(DoctorFinding::ok(Subject::Site, self.summary(uncovered.len())));
        }
        findings.extend(uncovered::findings(&uncovered, self.deployments));
        findings
    }

    /// The finding about a lineage that covers sites and that edgecert does not manage.
    pub(super) fn unmanaged(&self, lineage: &HostLineage) -> DoctorFinding {
        let sites: Vec<&Site> = self.sites().iter().filter(|site| lineage.covers(&site.domain)).collect();
        let is_deployed = |site: &&Site| self.deployed.iter().any(|other| other.is_deployed_to(&site.domain));
        lineage.unmanaged_finding(&sites, sites.iter().all(is_deployed))
    }

    fn sites(&self) -> &[Site] {
        &self.account.sites
    }

    fn has_site(&self, domain: &Domain) -> bool {
        self.sites().iter().any(|site| site.domain == *domain)
    }

    fn is_renewed_by_service(&self, site: &Site) -> bool {
        let mut records = self.account.records.iter();
        records.any(|record| Some(record.id) == site.cert_id && record.kind == RecordType::System)
    }

    fn summary(&self, uncovered: usize) -> String {
        let renewed_by_service = self.sites().iter().filter(|site| self.is_renewed_by_service(site)).count();
        let covered = text::count(self.sites().len() - renewed_by_service - uncovered, "site");
        match renewed_by_service {
            0 => format!("{covered}, each covered by one lineage"),
            number => {
                let others = text::count(number, "site");
                format!("{covered}, each covered by one lineage; {others} renewed by the service")
            }
        }
    }

    /// Reports a lineage without any site, and the sites of its `domains` that do not exist.
    fn unmatched(&self, lineage: &HostLineage) -> Vec<DoctorFinding> {
        let Some(leaf) = &lineage.leaf else { return Vec::new() };
        let title = lineage.title();
        let domains = lineage.policy.domains.iter();
        let unknown = domains.filter(|domain| lineage.covers(domain) && !self.has_site(domain));
        let findings: Vec<DoctorFinding> = unknown.map(|domain| unknown_site(&title, domain)).collect();
        let has_sites = || self.sites().iter().any(|site| lineage.is_deployed_to(&site.domain));
        if !findings.is_empty() || has_sites() {
            return findings;
        }
        let detail = format!("{title} covers no site of the account, only {}", text::list(&leaf.list));
        if lineage.policy.skip_unmatched {
            let warning = DoctorFinding::warn(Subject::Lineage, detail, "");
            return vec![DoctorFinding { remedy: None, ..warning }];
        }
        let remedy = "create the site, stop deploying this lineage, or set skip_unmatched";
        vec![DoctorFinding::fail(Subject::Lineage, ErrorKind::Service, detail, remedy)]
    }

    /// Whether neither a lineage of this host nor the service renews a site.
    fn is_uncovered(&self, site: &Site) -> bool {
        let mut lineages = self.deployed.iter().chain(&self.idle);
        !lineages.any(|lineage| lineage.is_deployed_to(&site.domain)) && !self.is_renewed_by_service(site)
    }

    fn contested_sites(&self) -> ContestedSites<'_> {
        let titles = |site: &Site| -> Vec<String> {
            let lineages = self.deployed.iter().filter(|lineage| lineage.is_deployed_to(&site.domain));
            lineages.map(|lineage| lineage.title()).collect()
        };
        let sites = self.sites().iter().map(|site| (site.id, (site, titles(site))));
        sites.filter(|(_, (_, lineages))| lineages.len() > 1).collect()
    }

    fn shared_records(&self, contested: &ContestedSites<'_>) -> SharedRecords {
        let mut records = SharedRecords::new();
        for site in self.sites().iter().filter(|site| !contested.contains_key(&site.id)) {
            let lineage = self.deployed.iter().find(|lineage| lineage.is_deployed_to(&site.domain));
            let (Some(id), Some(lineage)) = (site.cert_id, lineage) else { continue };
            let (sites, lineages) = records.entry(id).or_default();
            sites.push(site.domain.to_string());
            if !lineages.contains(&lineage.title()) {
                lineages.push(lineage.title());
            }
        }
        records.retain(|_, (_, lineages)| lineages.len() > 1);
        records
    }

    /// Reports the sites that a deployment would leave as they are, unless another finding explains why.
    fn blocked(
        &self,
        lineage: &HostLineage,
        contested: &ContestedSites<'_>,
        shared: &SharedRecords,
    ) -> Vec<DoctorFinding> {
        let Some(leaf) = &lineage.leaf else { return Vec::new() };
        let request = PlanRequest {
            covers: &|domain| lineage.covers(domain),
            domains: &lineage.policy.domains,
            later_leaf: &|record| {
                let stored = self.deployments.leaves_in(record).into_iter().filter(|stored| {
                    stored.leaf.not_before > leaf.issued && stored.leaf.not_after >= self.now
                });
                let later = stored.max_by_key(|stored| stored.leaf.not_before)?;
                Some(RecordLeaf { leaf: (*later.leaf).clone(), is_certain: later.is_certain })
            },
            // A deployment learns more from the edges; a separate finding reports the incomplete listing.
            keeps_names: &|_| true,
            not_needed: &HashMap::new(),
            missed: &HashMap::new(),
            allow: lineage.policy.allow,
        };
        let plan = Plan::new(&plan::Account::whole(self.account), &request);
        let is_reported = |site: &Site| {
            contested.contains_key(&site.id) || site.cert_id.is_some_and(|id| shared.contains_key(&id))
        };
        let targets = plan.targets.iter().filter(|target| target.wanted && !is_reported(target.site));
        let blocked = targets.filter_map(|target| match &target.action {
            Action::Leave(blocker) => Some(blocked_finding(lineage, target.site, blocker, plan.can_rebind)),
            _ => None,
        });
        blocked.collect()
    }
}

fn unknown_site(title: &str, domain: &Domain) -> DoctorFinding {
    let detail = format!("{title} is for {domain}, which is not a site of the account");
    let remedy = "create the site, or remove the name from the lineage's `domains`";
    DoctorFinding::fail(Subject::Lineage, ErrorKind::Service, detail, remedy)
}

fn contested_finding(site: &Site, lineages: &[String]) -> DoctorFinding {
    let lineages = text::list(lineages);
    let detail = format!(
        "{} is covered by {lineages}; the certificate that was issued last is deployed; the others are superseded",
        site.domain
    );
    let remedy = "delete the lineages that are no longer needed, or give each its own sites with `domains` in a [[lineage]] of the configuration";
    DoctorFinding::warn(Subject::Record, detail, remedy)
}

fn shared_finding(sites: &[String], lineages: &[String]) -> DoctorFinding {
    let detail = format!(
        "{} are bound to one record, but covered by {}; each deployment replaces the certificate of the other",
        text::list(sites),
        text::list(lineages)
    );
    let remedy = "set rebind for one of them, so that each has its own record";
    DoctorFinding::fail(Subject::Record, ErrorKind::Config, detail, remedy)
}

fn blocked_finding(lineage: &HostLineage, site: &Site, blocker: &Blocker, can_rebind: bool) -> DoctorFinding {
    let kind = if blocker.is_guard() { ErrorKind::Refused } else { ErrorKind::Service };
    let detail = format!("{} cannot be deployed to {}: {blocker}", lineage.title(), site.domain);
    DoctorFinding::fail(Subject::Record, kind, detail, blocker.hint(can_rebind))
}
