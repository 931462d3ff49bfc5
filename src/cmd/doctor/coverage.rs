//! Compares the lineages of this host with the sites and records of an account: lineages that replace each other's
//! certificates, sites that a deployment would leave as they are, and sites that no lineage covers. Pure.

use std::collections::{BTreeMap, HashSet};

use time::OffsetDateTime;

use super::finding::{DoctorFinding, Subject};
use super::lineages::HostLineage;
use crate::api::Site;
use crate::deploy::AccountSnapshot;
use crate::state::ServiceDeployments;
use crate::text::{self, rfc3339};

/// Maximum number of uncovered sites that are listed; the rest are counted.
const MAX_NAMES: usize = 3;

/// One finding for each lineage that is not managed, and for each problem, or a single `ok` finding for all covered sites;
/// then those of the other sites.
pub(super) fn check(account: &AccountSnapshot, lineages: &[&HostLineage]) -> Vec<DoctorFinding> {
    let sites = &account.listing.listing().sites.items;
    // The lineages that their renewals deploy to a site.
    let deployed_to = |site: &Site| -> Vec<&str> {
        let deployed =
            lineages.iter().filter(|lineage| lineage.is_deployed() && lineage.is_for(&site.domain));
        deployed.map(|lineage| lineage.title.as_str()).collect()
    };
    let mut findings = Vec::new();
    for lineage in lineages.iter().filter(|lineage| !lineage.is_managed) {
        let covered: Vec<&Site> = sites.iter().filter(|site| lineage.covers(&site.domain)).collect();
        let have_others = covered.iter().all(|site| !deployed_to(site).is_empty());
        findings.push(lineage.unmanaged_finding(&covered, have_others));
    }
    let (mut problems, mut explained) = (Vec::new(), HashSet::new());
    // The sites of each record, and their lineages.
    let mut records: BTreeMap<u64, (Vec<String>, Vec<&str>)> = BTreeMap::new();
    for site in sites {
        let domain = site.domain.to_string();
        match (deployed_to(site).as_slice(), site.cert_id) {
            (&[lineage], Some(id)) => {
                let (domains, lineages) = records.entry(id).or_default();
                domains.push(domain);
                if !lineages.contains(&lineage) {
                    lineages.push(lineage);
                }
            }
            ([] | [_], _) => {}
            (several, _) => {
                let detail = format!(
                    "{domain} is covered by {}; the certificate that was issued last is deployed; the others are superseded",
                    text::list(several)
                );
                let remedy = "delete the lineages that are no longer needed, or give each its own sites with `domains` in a [[lineage]] of the configuration";
                problems.push(Subject::Record.warn(detail, remedy));
                explained.insert(domain);
            }
        }
    }
    for (domains, lineages) in records.into_values().filter(|(_, lineages)| lineages.len() > 1) {
        let detail = format!(
            "{} are bound to one record, but covered by {}; each deployment replaces the certificate of the other",
            text::list(&domains),
            text::list(&lineages)
        );
        let remedy = "set rebind for one of them, so that each has its own record";
        problems.push(Subject::Record.fail(detail, remedy));
        explained.extend(domains);
    }
    let blocked = lineages.iter().flat_map(|lineage| &lineage.blocked);
    problems.extend(blocked.filter(|error| error.site().is_none_or(|site| !explained.contains(site))).map(
        |error| {
            let subject = if error.is_misuse() { Subject::Lineage } else { Subject::Record };
            subject.failed(error.clone())
        },
    ));
    let is_renewed_by_service = |site: &&Site| {
        let record = site.cert_id.and_then(|id| account.listing.record(id));
        record.is_some_and(|record| record.is_system_issued)
    };
    let (renewed, others): (Vec<&Site>, Vec<&Site>) = sites.iter().partition(is_renewed_by_service);
    let (covered, uncovered): (Vec<&Site>, Vec<&Site>) =
        others.into_iter().partition(|site| lineages.iter().any(|lineage| lineage.is_for(&site.domain)));
    if problems.is_empty() && uncovered.len() < sites.len() {
        let covered = text::count(covered.len(), "site");
        let renewed = match renewed.len() {
            0 => String::new(),
            number => format!("; {} renewed by the service", text::count(number, "site")),
        };
        problems.push(Subject::Site.ok(format!("{covered}, each covered by one lineage{renewed}")));
    }
    findings.extend(problems);
    findings.extend(uncovered_sites(uncovered, &account.deployments));
    findings
}

/// Reports sites that no lineage of this host covers. Usually another host of the account renews them. Warns about those
/// that no host can be renewing, of each kind in one finding, and notes the others.
fn uncovered_sites(sites: Vec<&Site>, deployments: &ServiceDeployments) -> Vec<DoctorFinding> {
    let expiry = |site: &&Site| left_expiry(site, deployments);
    let (left, rest): (Vec<&Site>, Vec<&Site>) = sites.into_iter().partition(|site| expiry(site).is_some());
    let (bare, others): (Vec<&Site>, Vec<&Site>) =
        rest.into_iter().partition(|site| site.is_unbound() && site.serves_https());
    let mut findings = Vec::new();
    if let Some(at) = left.iter().filter_map(expiry).min() {
        let detail = format!(
            "no lineage of this host covers {} any more; the certificates deployed earlier stay in place, the first until {}",
            names(&left),
            rfc3339(at)
        );
        let remedy = "add the names to a certificate that edgecert deploys, or let another host renew them";
        findings.push(Subject::Site.warn(detail, remedy));
    }
    if !bare.is_empty() {
        let (verb, them) = if bare.len() == 1 { ("has", "it") } else { ("have", "them") };
        let names = names(&bare);
        let detail = format!("{names} {verb} no certificate, and no lineage of this host covers {them}");
        let remedy = "add the names to a certificate that edgecert deploys, or let the service issue one";
        findings.push(Subject::Site.warn(detail, remedy));
    }
    if !others.is_empty() {
        let (count, verb) = (text::count(others.len(), "site"), if others.len() == 1 { "is" } else { "are" });
        let detail = format!("{count} {verb} not covered by this host: {}", names(&others));
        findings.push(Subject::Site.note(detail));
    }
    findings
}

/// Expiry of the certificate that this host deployed to a site earlier.
fn left_expiry(site: &Site, deployments: &ServiceDeployments) -> Option<OffsetDateTime> {
    let leaf = &deployments.stored_in(site.cert_id?)?.leaf;
    let is_covered = site.domain.is_covered_by_any(leaf.names.iter().map(String::as_str));
    is_covered.then_some(leaf.not_after)
}

fn names(sites: &[&Site]) -> String {
    let domains = sites.iter().map(|site| &site.domain);
    if sites.len() > MAX_NAMES { text::list_first(domains, MAX_NAMES - 1) } else { text::list(domains) }
}
