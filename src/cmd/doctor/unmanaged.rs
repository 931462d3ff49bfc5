//! Lineages that ACME clients keep on this host and that edgecert does not manage, although they cover sites.

use std::collections::HashSet;
use std::path::PathBuf;

use super::finding::DoctorFinding;
use super::hook_detection::{self, HookStatus};
use super::host::Host;
use super::lineages::{DeployPolicy, HostLineage, LeafNames};
use super::renewals::Renewals;
use super::{clients, hooks};
use crate::api::Site;
use crate::bundle;
use crate::source::Source;

/// A lineage that was never deployed or configured.
pub(super) struct Unmanaged<'a> {
    pub(super) lineage: HostLineage,
    /// The sites that it covers; at least one.
    pub(super) sites: Vec<&'a Site>,
    pub(super) hook: HookStatus,
}

/// Finds the unmanaged lineages that cover sites, and reports directories that cannot be searched.
pub(super) fn find<'a>(
    host: &Host<'_>,
    renewals: &Renewals<'_>,
    managed: &[HostLineage],
    sites: &'a [Site],
) -> (Vec<Unmanaged<'a>>, Vec<DoctorFinding>) {
    let (found, denied) = clients::find(host);
    // Resolved once, as there may be thousands of either.
    let paths: HashSet<PathBuf> = managed.iter().map(|lineage| lineage.source.real_path()).collect();
    let found = found.into_iter().filter(|source| !paths.contains(&source.real_path()));
    let unmanaged = found.filter_map(read).filter_map(|lineage| {
        let sites: Vec<&Site> = sites.iter().filter(|site| lineage.covers(&site.domain)).collect();
        if sites.is_empty() {
            return None;
        }
        let hook = hook_detection::detect(&lineage.source, host, renewals);
        Some(Unmanaged { lineage, sites, hook })
    });
    (unmanaged.collect(), denied)
}

/// Reads the certificate of a lineage; `None` if it cannot be read.
fn read(source: Source) -> Option<HostLineage> {
    let certificate = bundle::load_chain(&source.files).ok()?;
    let leaf = LeafNames::new(certificate.chain.as_ref().ok()?);
    Some(HostLineage { source, policy: DeployPolicy::default(), leaf: Some(leaf) })
}

/// Checks the hooks of unmanaged lineages.
pub(super) fn check_hooks(
    unmanaged: &[Unmanaged<'_>],
    managed: &[HostLineage],
    host: &Host<'_>,
) -> Vec<DoctorFinding> {
    let hooked = unmanaged.iter().filter(|other| other.hook.is_installed()).map(|other| &other.lineage);
    let deployed: Vec<&HostLineage> = managed.iter().chain(hooked).collect();
    let is_deployed_to = |site: &&Site| deployed.iter().any(|lineage| lineage.is_deployed_to(&site.domain));
    let finding =
        |other: &Unmanaged<'_>| hooks::check_unmanaged(other, other.sites.iter().all(is_deployed_to), host);
    unmanaged.iter().map(finding).collect()
}
