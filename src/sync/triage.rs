//! Sorts the lineages of an account: those to deploy, those whose edges have to be checked first, and those to leave alone.

use std::path::Path;

use time::OffsetDateTime;

use super::decision::{Decision, SupersededSites, decide};
use super::edge_check::{self, CheckedLineage};
use super::error::SyncError;
use super::scan::{Candidate, Reason};
use super::state_updates::{record_edge_check, record_superseded};
use super::summary::Summary;
use crate::clock::Deadline;
use crate::plan::IndexedListing;
use crate::report::DeployReport;
use crate::settings::Settings;
use crate::state::ServiceDeployments;

pub(super) struct Triage<'a> {
    pub(super) state_dir: &'a Path,
    pub(super) now: OffsetDateTime,
    /// Receives all lineages that are not returned.
    pub(super) summary: &'a mut Summary,
}

impl Triage<'_> {
    /// Returns the lineages to deploy, each with the reason.
    pub(super) async fn run<'l>(
        &mut self,
        lineages: &[&'l Candidate],
        account: &'l IndexedListing,
        deployments: &ServiceDeployments,
        settings: &Settings,
    ) -> Vec<(&'l Candidate, Reason)> {
        let (mut due, mut checked) = (Vec::new(), Vec::new());
        for &lineage in lineages {
            match decide(lineage, account, deployments, self.now) {
                Decision::Unchanged => self.summary.add_unchanged(1),
                Decision::StillSuperseded => self.summary.add_still_superseded(1),
                Decision::Deploy(reason) => due.push((lineage, reason)),
                Decision::Expired(at) => {
                    self.summary.add_failed(&lineage.name, SyncError::expired(lineage, at));
                }
                Decision::MarkSuperseded(superseded) => {
                    checked.extend(self.mark_superseded(lineage, superseded).await);
                }
                Decision::CheckEdge(check) => checked.push(CheckedLineage::new(lineage, check)),
            }
        }
        due.extend(self.check_edges(checked, settings).await);
        due
    }

    /// Returns the lineage if its other sites are to be checked.
    async fn mark_superseded<'l>(
        &mut self,
        lineage: &'l Candidate,
        superseded: SupersededSites<'l>,
    ) -> Option<CheckedLineage<'l>> {
        let report = record_superseded(lineage, &superseded, self.state_dir).await;
        if superseded.is_complete {
            self.summary.add_superseded(&lineage.name, report);
            return None;
        }
        self.add_warnings(lineage, &report);
        if superseded.check.is_none() {
            self.summary.add_unchanged(1);
        }
        superseded.check.map(|check| CheckedLineage::new(lineage, check))
    }

    /// Returns the lineages whose edges serve another leaf.
    async fn check_edges<'l>(
        &mut self,
        mut lineages: Vec<CheckedLineage<'l>>,
        settings: &Settings,
    ) -> Vec<(&'l Candidate, Reason)> {
        // Deployments wait for this.
        let deadline = Deadline::after(settings.timeout / 3);
        if let Err(error) = edge_check::observe(&mut lineages, deadline).await {
            self.summary.add_warnings([format!("cannot check what the edge serves: {error:#}")]);
        }
        let mut due = Vec::new();
        for checked in lineages {
            if let Some(reason) = checked.drift() {
                due.push((checked.lineage, reason));
            } else {
                let report = record_edge_check(&checked, self.state_dir, self.now).await;
                self.add_warnings(checked.lineage, &report);
                self.summary.add_unchanged(1);
            }
        }
        due
    }

    fn add_warnings(&mut self, lineage: &Candidate, report: &DeployReport) {
        let warnings = report.warnings.iter().map(|warning| format!("{}: {warning}", lineage.name));
        self.summary.add_warnings(warnings);
    }
}
