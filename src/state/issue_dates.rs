//! When the leaves in the service's records were issued, as far as state files tell; the guard `older` compares with it.

use std::collections::HashMap;

use time::OffsetDateTime;

use super::LineageState;

/// Issue dates of the leaves that were deployed into records.
#[derive(Debug, Default)]
pub(crate) struct IssueDates {
    /// By service and record id.
    latest: HashMap<String, HashMap<u64, Deployed>>,
}

/// The last deployment into a record.
#[derive(Clone, Copy, Debug)]
struct Deployed {
    at: OffsetDateTime,
    issued: OffsetDateTime,
}

impl IssueDates {
    /// Adds the records of a lineage.
    pub(crate) fn add(&mut self, state: &LineageState) {
        let (Some(service), Some(dated)) = (&state.options.service, &state.sites_leaf) else { return };
        let deployed = Deployed { at: dated.at, issued: dated.leaf.not_before };
        let records = self.latest.entry(service.clone()).or_default();
        for record in state.records() {
            let known = records.entry(record).or_insert(deployed);
            // Two lineages may have used one record: the later deployment counts.
            if deployed.at > known.at {
                *known = deployed;
            }
        }
    }

    /// The issue dates by record id of this service.
    pub(crate) fn of_service(&self, service: &str) -> HashMap<u64, OffsetDateTime> {
        let records = self.latest.get(service).into_iter().flatten();
        records.map(|(record, deployed)| (*record, deployed.issued)).collect()
    }
}
