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
    let (left, others): (Vec<&Site>, Vec<&Site>) =
        sites.iter().partition(|site| left_expiry(site, deployments).is_some());
    let is_bare =
        |site: &&Site| site.cert_id.is_none() && site.unreadable_cert_id.is_none() && site.serves_https();
    let (bare, others): (Vec<&Site>, Vec<&Site>) = others.into_iter().partition(is_bare);
    let left = left.first().map(|_| left_behind(&left, deployments));
    let bare = bare.first().map(|_| without_certificate(&bare));
    let others = others.first().map(|_| {
        let detail = format!("{} not covered by this host: {}", are(&others), names(&others));
        DoctorFinding::note(Subject::Site, detail)
    });
    left.into_iter().chain(bare).chain(others).collect()
}

/// Expiry of the certificate that this host deployed to a site earlier.
fn left_expiry(site: &Site, deployments: &ServiceDeployments) -> Option<OffsetDateTime> {
    let stored = deployments.leaves_in(site.cert_id?).into_iter().filter(|leaf| leaf.is_certain);
    let leaves = stored.map(|stored| &stored.leaf);
    let covering = leaves.filter(|leaf| site.domain.is_covered_by_any(leaf.names.iter().map(String::as_str)));
    covering.map(|leaf| leaf.not_after).max()
}

fn left_behind(sites: &[&Site], deployments: &ServiceDeployments) -> DoctorFinding {
    let first = sites.iter().filter_map(|site| left_expiry(site, deployments)).min();
    let expiry = first.map(|at| format!(", the first until {}", rfc3339(at))).unwrap_or_default();
    let detail = format!(
        "no lineage of this host covers {} any more; the certificates deployed earlier stay in place{expiry}",
        names(sites)
    );
    let remedy = "add the names to a certificate that edgecert deploys, or let another host renew them";
    DoctorFinding::warn(Subject::Site, detail, remedy)
}

fn without_certificate(sites: &[&Site]) -> DoctorFinding {
    let (verb, them) = if sites.len() == 1 { ("has", "it") } else { ("have", "them") };
    let detail = format!("{} {verb} no certificate, and no lineage of this host covers {them}", names(sites));
    let remedy = "add the names to a certificate that edgecert deploys, or let the service issue one";
    DoctorFinding::warn(Subject::Site, detail, remedy)
}

fn are(sites: &[&Site]) -> String {
    let verb = if sites.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", text::count(sites.len(), "site"))
}

fn names(sites: &[&Site]) -> String {
    let names: Vec<String> = sites.iter().map(|site| site.domain.to_string()).collect();
    if names.len() <= MAX_NAMES {
        return text::list(&names);
    }
    let shown: Vec<&str> = names.iter().take(MAX_NAMES - 1).map(String::as_str).collect();
    format!("{} and {} more", shown.join(", "), names.len() - shown.len())
}
