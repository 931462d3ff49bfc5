//! Sites that no lineage of this host covers. Usually another host of the account renews them. Pure.

use time::OffsetDateTime;

use super::finding::{DoctorFinding, Subject};
use crate::api::Site;
use crate::state::ServiceDeployments;
use crate::text::{self, rfc3339};

/// Maximum number of names listed; the rest are counted.
const MAX_NAMES: usize = 3;

/// Warns about sites that no host can be renewing, of each kind in one finding, and notes the others.
pub(super) fn findings(sites: &[&Site], deployments: &ServiceDeployments) -> Vec<DoctorFinding> {
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
