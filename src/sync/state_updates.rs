//! Records in the state what `sync` finds out about lineages that it does not deploy.

use std::path::Path;
use std::time::Duration;

use time::OffsetDateTime;

use super::decision::SupersededSites;
use super::edge_check::CheckedLineage;
use super::scan::Candidate;
use super::workers::open_journal;
use crate::api::Site;
use crate::clock::Deadline;
use crate::outcome::Outcome;
use crate::report::{DeployReport, SiteReport, SourceReport};
use crate::sightings::{EdgeFindings, EdgeMemory};
use crate::state::SiteState;

/// Time to wait for another run on the lineage; what that run records is newer anyway.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Records what the edges of an unchanged lineage serve, unless another run has begun to deploy it.
pub(super) async fn record_edge_check(
    checked: &CheckedLineage<'_>,
    state_dir: &Path,
    now: OffsetDateTime,
) -> DeployReport {
    let mut report = DeployReport::new("deploy");
    if !checked.has_changes(now) {
        return report;
    }
    let deadline = Deadline::after(LOCK_TIMEOUT);
    match open_journal(checked.lineage, state_dir, deadline, &mut report).await {
        Ok(mut journal) if !journal.has_newer_run() => {
            journal.update_sites(|site| checked.update(site, now), checked.checked_at(now), &mut report);
        }
        Ok(_) => {}
        Err(error) => log::info!("{}: {error}", checked.lineage.name),
    }
    report
}

/// Records that a lineage is superseded on some sites, or on all of them; nothing is pending then.
pub(super) async fn record_superseded(
    lineage: &Candidate,
    superseded: &SupersededSites<'_>,
    state_dir: &Path,
) -> DeployReport {
    let mut report = DeployReport::new("deploy");
    report.body.source = Some(SourceReport::new(&lineage.source));
    let deadline = Deadline::after(LOCK_TIMEOUT);
    let mut journal = match open_journal(lineage, state_dir, deadline, &mut report).await {
        Ok(journal) => journal,
        Err(error) => {
            log::info!("{}: {error}", lineage.name);
            return report;
        }
    };
    let leaf = lineage.leaf.clone().filter(|_| superseded.is_complete && !journal.has_newer_run());
    if let Some(leaf) = leaf {
        report.body.sites = superseded.reports();
        journal.supersede(leaf, &mut report);
    } else if !journal.has_newer_run() {
        journal.update_sites(|site| superseded.update(site), None, &mut report);
    }
    report
}

impl SupersededSites<'_> {
    /// The sites as a deployment would report them.
    pub(super) fn reports(&self) -> Vec<SiteReport> {
        self.sites.iter().map(|(site, reason)| superseded_site(site, reason)).collect()
    }

    /// Marks a site as superseded if it is one of these.
    pub(super) fn update(&self, known: &mut SiteState) {
        let mut sites = self.sites.iter();
        if let Some((_, reason)) = sites.find(|(site, _)| known.id == Some(site.id)) {
            (known.outcome, known.detail) = (Outcome::Superseded, Some(reason.clone()));
            known.edge = EdgeMemory::default();
        }
    }
}

fn superseded_site(site: &Site, reason: &str) -> SiteReport {
    SiteReport {
        id: Some(site.id),
        cert_id_before: site.cert_id,
        cert_id: site.cert_id,
        findings: EdgeFindings::left_to_others(),
        cname: site.cname.as_deref().map(str::to_owned),
        ..SiteReport::new(site.domain.spelled(), Outcome::Superseded, Some(reason.to_owned()))
    }
}
