//! Compares the lineages of this host with the sites and records of an account: lineages that replace each other's
//! certificates, sites that a deployment would leave as they are, and sites that no lineage covers. Pure.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::finding::{DoctorFinding, Subject};
use super::lineages::HostLineage;
use crate::api::Site;
use crate::deploy::AccountSnapshot;
use crate::text;

/// One finding for each lineage that is not managed, if a hook deploys it or nothing else does, and for each problem, or a
/// single `ok` finding for all covered sites; then those of the other sites.
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
        let covered: Vec<&Site> = sites.iter().filter(|site| lineage.is_for(&site.domain)).collect();
        if lineage.is_deployed() || covered.iter().any(|site| deployed_to(site).is_empty()) {
            findings.push(lineage.unmanaged_finding(&covered));
        }
    }
    let (mut problems, mut explained) = (Vec::new(), HashSet::new());
    // The sites of each record, with their lineages.
    let mut records: BTreeMap<u64, Vec<(String, &str)>> = BTreeMap::new();
    for site in sites {
        let domain = site.domain.to_string();
        match (deployed_to(site).as_slice(), site.cert_id) {
            (&[lineage], Some(id)) => records.entry(id).or_default().push((domain, lineage)),
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
    for sites in records.into_values() {
        let (domains, lineages): (Vec<String>, BTreeSet<&str>) = sites.into_iter().unzip();
        if lineages.len() < 2 {
            continue;
        }
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
    for error in blocked.filter(|error| !error.site().is_some_and(|site| explained.contains(site))) {
        let subject = if error.is_misuse() { Subject::Lineage } else { Subject::Record };
        problems.push(subject.failed(error.clone()));
    }
    let (covered, uncovered): (Vec<&Site>, Vec<&Site>) =
        sites.iter().partition(|site| lineages.iter().any(|lineage| lineage.is_for(&site.domain)));
    if problems.is_empty() && !covered.is_empty() {
        let covered = text::count(covered.len(), "site");
        problems.push(Subject::Site.ok(format!("{covered}, each covered by one lineage")));
    }
    findings.extend(problems);
    // Usually the service or another host of the account renews them.
    let (unrenewed, others): (Vec<&Site>, Vec<&Site>) =
        uncovered.into_iter().partition(|site| is_unrenewed(site, account));
    let names = |sites: &[&Site]| text::list(sites.iter().map(|site| &site.domain));
    if !unrenewed.is_empty() {
        let names = names(&unrenewed);
        let detail = format!(
            "no lineage of this host covers {names}, and no other host seems to deploy a certificate there"
        );
        let remedy = "add the names to a certificate that edgecert deploys, or let another host or the service renew them";
        findings.push(Subject::Site.warn(detail, remedy));
    }
    if !others.is_empty() {
        let (count, verb) = (text::count(others.len(), "site"), if others.len() == 1 { "is" } else { "are" });
        let detail = format!("{count} {verb} not covered by this host: {}", names(&others));
        findings.push(Subject::Site.note(detail));
    }
    findings
}

/// Whether a site has no certificate, or the one that this host deployed earlier.
fn is_unrenewed(site: &Site, account: &AccountSnapshot) -> bool {
    let Some(id) = site.cert_id else { return site.is_unbound() && site.serves_https() };
    let is_system_issued = account.listing.record(id).is_some_and(|record| record.is_system_issued);
    let deployed = account.deployments.stored_in(id).filter(|_| !is_system_issued);
    deployed.is_some_and(|own| site.domain.is_covered_by_any(own.leaf.names.iter().map(String::as_str)))
}
