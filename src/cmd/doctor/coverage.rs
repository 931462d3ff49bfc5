//! Compares the lineages of this host with the sites and records of an account: lineages that replace each other's
//! certificates, sites that a deployment would leave as they are, and sites that no lineage covers. Pure.

use std::collections::{BTreeMap, HashSet};

use time::OffsetDateTime;

use super::finding::{DoctorFinding, Subject};
use super::lineages::HostLineage;
use crate::api::{Listing, Site};
use crate::deploy::AccountSnapshot;
use crate::error::ErrorKind;
use crate::state::ServiceDeployments;
use crate::text::{self, rfc3339};

/// Maximum number of uncovered sites that are listed; the rest are counted.
const MAX_NAMES: usize = 3;

/// The lineages of an account.
pub(super) struct Coverage<'a> {
    account: &'a AccountSnapshot,
    /// Lineages that are deployed at each renewal.
    deployed: Vec<&'a HostLineage>,
    /// Other lineages that cover sites.
    idle: Vec<&'a HostLineage>,
}

impl<'a> Coverage<'a> {
    pub(super) fn new(account: &'a AccountSnapshot, lineages: impl Iterator<Item = &'a HostLineage>) -> Self {
        let (deployed, idle) = lineages.partition(|lineage| lineage.is_deployed());
        Self { account, deployed, idle }
    }

    /// One finding for each problem, or a single `ok` finding for all covered sites; then those of the other sites.
    pub(super) fn findings(&self) -> Vec<DoctorFinding> {
        let sites = &self.listing().sites;
        let unmanaged = self.deployed.iter().chain(&self.idle).filter(|lineage| !lineage.is_managed);
        let unmanaged: Vec<DoctorFinding> = unmanaged.map(|lineage| self.unmanaged(lineage)).collect();
        let (mut findings, mut explained) = (Vec::new(), HashSet::new());
        // The sites of each record, and the lineages that they have.
        let mut records: BTreeMap<u64, (Vec<String>, Vec<String>)> = BTreeMap::new();
        for site in sites {
            let domain = site.domain.to_string();
            let lineages = self.deployed.iter().filter(|lineage| lineage.is_deployed_to(&site.domain));
            let mut lineages: Vec<String> = lineages.map(|lineage| lineage.title.clone()).collect();
            if lineages.len() > 1 {
                findings.push(contested(&domain, &lineages));
                explained.insert(domain);
            } else if let (Some(lineage), Some(id)) = (lineages.pop(), site.cert_id) {
                let (domains, lineages) = records.entry(id).or_default();
                domains.push(domain);
                if !lineages.contains(&lineage) {
                    lineages.push(lineage);
                }
            }
        }
        for (domains, lineages) in records.into_values().filter(|(_, lineages)| lineages.len() > 1) {
            findings.push(shared(&domains, &lineages));
            explained.extend(domains);
        }
        let blocked = self.deployed.iter().flat_map(|lineage| &lineage.blocked);
        let blocked = blocked.filter(|error| error.site().is_none_or(|site| !explained.contains(site)));
        findings.extend(blocked.map(|error| {
            let subject = if error.is_misuse() { Subject::Lineage } else { Subject::Record };
            DoctorFinding::from_error(subject, error.clone())
        }));
        let uncovered: Vec<&Site> = sites.iter().filter(|site| self.is_uncovered(site)).collect();
        if findings.is_empty() && uncovered.len() < sites.len() {
            findings.push(DoctorFinding::ok(Subject::Site, self.summary(uncovered.len())));
        }
        let uncovered = uncovered_sites(&uncovered, &self.account.deployments);
        unmanaged.into_iter().chain(findings).chain(uncovered).collect()
    }

    /// The finding about a lineage that covers sites and that edgecert does not manage.
    fn unmanaged(&self, lineage: &HostLineage) -> DoctorFinding {
        let sites = self.listing().sites.iter().filter(|site| lineage.covers(&site.domain));
        let sites: Vec<&Site> = sites.collect();
        let is_deployed = |site: &&Site| self.deployed.iter().any(|other| other.is_deployed_to(&site.domain));
        lineage.unmanaged_finding(&sites, sites.iter().all(is_deployed))
    }

    fn listing(&self) -> &Listing {
        self.account.listing.listing()
    }

    fn is_renewed_by_service(&self, site: &Site) -> bool {
        let record = site.cert_id.and_then(|id| self.account.listing.record(id));
        record.is_some_and(|record| record.is_system_issued)
    }

    fn summary(&self, uncovered: usize) -> String {
        let sites = &self.listing().sites;
        let renewed_by_service = sites.iter().filter(|site| self.is_renewed_by_service(site)).count();
        let covered = text::count(sites.len() - renewed_by_service - uncovered, "site");
        match renewed_by_service {
            0 => format!("{covered}, each covered by one lineage"),
            number => {
                let others = text::count(number, "site");
                format!("{covered}, each covered by one lineage; {others} renewed by the service")
            }
        }
    }

    /// Whether neither a lineage of this host nor the service renews a site.
    fn is_uncovered(&self, site: &Site) -> bool {
        let mut lineages = self.deployed.iter().chain(&self.idle);
        !lineages.any(|lineage| lineage.is_deployed_to(&site.domain)) && !self.is_renewed_by_service(site)
    }
}

fn contested(domain: &str, lineages: &[String]) -> DoctorFinding {
    let lineages = text::list(lineages);
    let detail = format!(
        "{domain} is covered by {lineages}; the certificate that was issued last is deployed; the others are superseded"
    );
    let remedy = "delete the lineages that are no longer needed, or give each its own sites with `domains` in a [[lineage]] of the configuration";
    DoctorFinding::warn(Subject::Record, detail, remedy)
}

fn shared(domains: &[String], lineages: &[String]) -> DoctorFinding {
    let detail = format!(
        "{} are bound to one record, but covered by {}; each deployment replaces the certificate of the other",
        text::list(domains),
        text::list(lineages)
    );
    let remedy = "set rebind for one of them, so that each has its own record";
    DoctorFinding::fail(Subject::Record, ErrorKind::Config, detail, remedy)
}

/// Reports sites that no lineage of this host covers. Usually another host of the account renews them. Warns about those
/// that no host can be renewing, of each kind in one finding, and notes the others.
fn uncovered_sites(sites: &[&Site], deployments: &ServiceDeployments) -> Vec<DoctorFinding> {
    let (mut left, mut bare, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let (mut first_expiry, mut findings) = (None, Vec::new());
    for site in sites {
        let is_bound = site.cert_id.is_some() || site.unreadable_cert_id.is_some();
        let expiry = left_expiry(site, deployments);
        first_expiry = first_expiry.into_iter().chain(expiry).min();
        let of_kind = match expiry {
            Some(_) => &mut left,
            None if !is_bound && site.serves_https() => &mut bare,
            None => &mut others,
        };
        of_kind.push(site.domain.to_string());
    }
    if let Some(at) = first_expiry {
        let detail = format!(
            "no lineage of this host covers {} any more; the certificates deployed earlier stay in place, the first until {}",
            names(&left),
            rfc3339(at)
        );
        let remedy = "add the names to a certificate that edgecert deploys, or let another host renew them";
        findings.push(DoctorFinding::warn(Subject::Site, detail, remedy));
    }
    if !bare.is_empty() {
        let (verb, them) = if bare.len() == 1 { ("has", "it") } else { ("have", "them") };
        let names = names(&bare);
        let detail = format!("{names} {verb} no certificate, and no lineage of this host covers {them}");
        let remedy = "add the names to a certificate that edgecert deploys, or let the service issue one";
        findings.push(DoctorFinding::warn(Subject::Site, detail, remedy));
    }
    if !others.is_empty() {
        let (count, verb) = (text::count(others.len(), "site"), if others.len() == 1 { "is" } else { "are" });
        let detail = format!("{count} {verb} not covered by this host: {}", names(&others));
        findings.push(DoctorFinding::note(Subject::Site, detail));
    }
    findings
}

/// Expiry of the certificate that this host deployed to a site earlier.
fn left_expiry(site: &Site, deployments: &ServiceDeployments) -> Option<OffsetDateTime> {
    let stored = deployments.leaves_in(site.cert_id?).into_iter().filter(|leaf| leaf.is_certain);
    let leaves = stored.map(|stored| &stored.leaf);
    let covering = leaves.filter(|leaf| site.domain.is_covered_by_any(leaf.names.iter().map(String::as_str)));
    covering.map(|leaf| leaf.not_after).max()
}

fn names(domains: &[String]) -> String {
    match domains.get(..MAX_NAMES - 1) {
        Some(shown) if domains.len() > MAX_NAMES => {
            format!("{} and {} more", shown.join(", "), domains.len() - shown.len())
        }
        _ => text::list(domains),
    }
}
