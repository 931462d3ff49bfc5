//! Issue dates of the leaves in the service's records, as far as state files record them; used by the guard `Older`.

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

    /// The issue dates for this service, by record id.
    pub(crate) fn of_service(&self, service: &str) -> HashMap<u64, OffsetDateTime> {
        let records = self.latest.get(service).into_iter().flatten();
        records.map(|(record, deployed)| (*record, deployed.issued)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{DAY_1, DAY_2, ISSUED, SERVICE, begin, deployed, leaf};
    use super::*;
    use time::macros::datetime;

    fn issue_dates(states: [&LineageState; 2]) -> IssueDates {
        let mut dates = IssueDates::default();
        for state in states {
            dates.add(state);
        }
        dates
    }

    #[test]
    fn later_deployment_decides_issue_date() {
        let first = deployed(leaf("aa", datetime!(2026-01-02 00:00 UTC)), DAY_1);
        let second = deployed(leaf("bb", ISSUED), DAY_2);
        for states in [[&first, &second], [&second, &first]] {
            let dates = issue_dates(states);
            assert_eq!(dates.of_service(SERVICE)[&5], ISSUED);
            assert!(dates.of_service("https://other.example.net").is_empty());
        }
    }

    #[test]
    fn run_without_sites_keeps_issue_date() {
        let state = deployed(leaf("aa", ISSUED), DAY_1);
        let mut newer = begin(Some(state.clone()), leaf("bb", DAY_1), DAY_2);
        newer.finish(75, Some("down".into()), Vec::new(), DAY_2);
        assert!(state.has_current_sites() && !newer.has_current_sites());
        assert_eq!(issue_dates([&newer, &newer]).of_service(SERVICE)[&5], ISSUED);
    }
}
