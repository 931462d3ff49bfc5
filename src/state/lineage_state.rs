//! The contents of a state file. Its keys are those of the first release; fields with other names are renamed.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::given::{Given, Origin, PendingRun, RunOptions};
use super::records::RecordMemory;
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::outcome::{ChangedRecords, Outcome};
use crate::sightings::EdgeMemory;
use crate::source::Source;
use crate::text::rfc3339;

/// Version of the state files; raised when a field changes its meaning or is removed.
pub(crate) const VERSION: u8 = 1;

/// The state file of a lineage. By default, nothing is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineageState {
    pub(crate) version: u8,
    #[serde(rename = "lineage")]
    pub(crate) source: Source,
    /// Base URL of the service of the last run; `None`: no run has been able to read its settings.
    pub(crate) service: Option<String>,
    /// The sites that the lineage is for, including those of the configuration; empty: every covered one.
    pub(crate) domains: Vec<Domain>,
    /// The options for later leaves and for drift: those of the last hook, else of the last run by hand that succeeded;
    /// `None`: there was neither.
    #[serde(default, deserialize_with = "Given::deserialize_cached")]
    pub(super) standing: Option<Given>,
    /// Whether a hook or the configuration chose them: a run by hand then never replaces them.
    pub(super) is_standing_kept: bool,
    /// The last run with options of its own, if it has not ended well: they are for its retries.
    pub(super) pending: Option<PendingRun>,
    /// The leaf to deploy; `None`: no run has been able to read one.
    #[serde(rename = "certificate")]
    pub(crate) leaf: Option<Leaf>,
    /// Number of leaves of this lineage so far.
    pub(crate) generation: u64,
    /// When the last run began; `None`: none did.
    #[serde(rename = "begun", with = "rfc3339::millis::option")]
    pub(crate) begun_at: Option<OffsetDateTime>,
    /// How the last run ended; `None`: it is running, or it was killed.
    pub(crate) result: Option<RunResult>,
    /// Start of the first run after the last success; `None`: nothing is pending.
    #[serde(default, with = "rfc3339::millis::option")]
    pub(crate) pending_since: Option<OffsetDateTime>,
    #[serde(default, with = "rfc3339::millis::option")]
    pub(crate) last_success: Option<OffsetDateTime>,
    /// When a run found and reported that the files of the lineage are missing; `None`: they are not.
    #[serde(rename = "gone_since", default, with = "rfc3339::millis::option")]
    pub(crate) missing_since: Option<OffsetDateTime>,
    /// The sites of the last run that reported any.
    pub(crate) sites: Vec<SiteState>,
    /// Base URL of their service; `None`: no run has reported sites.
    sites_service: Option<String>,
    /// What the records hold, see [`LineageState::records`].
    pub(super) records: RecordMemory,
    /// The leaf of the last success before the current deployment; `None`: none is known.
    #[serde(rename = "deployed_before", default)]
    pub(crate) previously_deployed: Option<Leaf>,
    /// When `sync` last checked the edges of all sites without a deployment; `None`: not since the last deployment.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "rfc3339::millis::option")]
    pub(crate) edge_checked_at: Option<OffsetDateTime>,
    /// Whether an ACME client's hook ever ran for the lineage.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_hook_run: bool,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunResult {
    #[serde(with = "rfc3339::millis")]
    pub(crate) at: OffsetDateTime,
    pub(crate) exit_code: u8,
    pub(crate) error: Option<String>,
}

/// A site as a run reported it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SiteState {
    /// `None`: the run did not list sites.
    pub(crate) id: Option<u64>,
    pub(crate) domain: Domain,
    /// Host name of its edge.
    pub(crate) cname: Option<String>,
    pub(crate) cert_id: Option<u64>,
    pub(crate) outcome: Outcome,
    pub(crate) detail: Option<String>,
    /// Fingerprint of the leaf that the run was to deploy.
    pub(crate) leaf: Option<String>,
    #[serde(
        default,
        skip_serializing_if = "EdgeMemory::is_empty",
        deserialize_with = "EdgeMemory::deserialize_lenient"
    )]
    pub(crate) edge: EdgeMemory,
}

impl LineageState {
    /// Begins a run. Keeps the sites of earlier runs until this one reports its own, and the last leaf if `leaf` is
    /// `None`.
    pub(crate) fn begin(
        before: Option<Self>,
        source: Source,
        options: &RunOptions,
        leaf: Option<Leaf>,
        now: OffsetDateTime,
    ) -> Self {
        let mut before = before.unwrap_or_default();
        // A run whose sites were all skipped deployed nothing.
        if before.sites.iter().any(|site| site.outcome != Outcome::Skipped) {
            before.previously_deployed = before.deployed().cloned();
        }
        let is_new = leaf.is_some() && leaf != before.leaf;
        let mut state = Self {
            version: VERSION,
            source,
            leaf: leaf.or_else(|| before.leaf.clone()),
            generation: before.generation.saturating_add(is_new.into()),
            begun_at: Some(now),
            result: None,
            missing_since: None,
            records: before.records(),
            edge_checked_at: None,
            has_hook_run: before.has_hook_run || options.origin == Origin::Hook,
            ..before
        };
        state.begin_with(options);
        state.pending_since.get_or_insert(now);
        state
    }

    /// Whether this intent adds nothing to `before`, so that a run may begin without writing it: the same deployment is
    /// already pending, and even if the run is killed, the records can hold nothing that `before` does not allow for.
    pub(crate) fn adds_nothing_to(&self, before: &Self) -> bool {
        let Self { begun_at, result, records, .. } = before.clone();
        self.records().leaves == before.records().leaves
            && Self { begun_at, result, records, ..self.clone() } == *before
    }

    /// Records how the run ended.
    pub(crate) fn finish(
        &mut self,
        (exit_code, error): (u8, Option<String>),
        mut sites: Vec<SiteState>,
        changed: &ChangedRecords,
        options: &RunOptions,
        now: OffsetDateTime,
    ) {
        self.remember(&sites, changed, now);
        if !sites.is_empty() {
            let leaf = self.leaf.as_ref().map(|leaf| &leaf.fingerprint);
            for site in sites.iter_mut().filter(|site| site.leaf.is_none()) {
                site.leaf = leaf.cloned();
            }
            // A run with options given by hand leaves the other sites as they were.
            if self.is_pending_by_hand() && self.sites_service() == self.service.as_deref() {
                let reported: HashSet<&str> = sites.iter().map(|site| site.domain.host()).collect();
                self.sites.retain(|site| !reported.contains(site.domain.host()));
                sites.append(&mut self.sites);
                sites.sort_by_cached_key(|site| site.domain.spelled().to_owned());
            }
            self.sites = sites;
            self.sites_service.clone_from(&self.service);
        }
        self.result = Some(RunResult { at: now, exit_code, error });
        if exit_code == 0 {
            self.last_success = Some(now);
            self.end_pending(options);
        }
    }

    /// Base URL of the service that `sites` belong to.
    pub(crate) fn sites_service(&self) -> Option<&str> {
        self.sites_service.as_deref().or(self.service.as_deref())
    }

    /// The recorded sites, if they are sites of this service.
    pub(crate) fn sites_of(&self, service: Option<&str>) -> &[SiteState] {
        if self.sites_service() == service { &self.sites } else { &[] }
    }

    /// Records that the files of the lineage are missing.
    pub(crate) fn mark_missing(&mut self, now: OffsetDateTime) {
        self.missing_since.get_or_insert(now);
    }

    /// The leaf of the last deployment that succeeded.
    pub(crate) fn deployed(&self) -> Option<&Leaf> {
        let has_succeeded = self.result.as_ref().is_some_and(|result| result.exit_code == 0);
        if has_succeeded { self.leaf.as_ref() } else { self.previously_deployed.as_ref() }
    }

    /// Whether a site that the lineage is for was left without the current leaf, because a run by hand deployed to others
    /// only.
    pub(crate) fn has_earlier_leaf(&self) -> bool {
        let mut own =
            self.sites.iter().filter(|site| self.is_for(site) && site.outcome != Outcome::Superseded);
        own.any(|site| !self.is_of_current_leaf(site) || site.outcome.is_failed())
    }

    /// Whether the lineage is for a site.
    pub(crate) fn is_for(&self, site: &SiteState) -> bool {
        self.domains.is_empty() || self.domains.contains(&site.domain)
    }

    /// Whether the run that reported a site was to deploy the current leaf.
    pub(crate) fn is_of_current_leaf(&self, site: &SiteState) -> bool {
        site.leaf.as_ref() == self.leaf.as_ref().map(|leaf| &leaf.fingerprint)
    }

    /// The record of each site that a leaf did not reach because this record feeds the site, by site.
    pub(crate) fn missed_sites(&self, service: &str, leaf: &Leaf) -> HashMap<u64, u64> {
        let misbound = self.sites_of(Some(service)).iter().filter(|site| site.outcome == Outcome::Misbound);
        let missed = misbound.filter(|site| site.leaf.as_ref() == Some(&leaf.fingerprint));
        missed.filter_map(|site| Some((site.id?, site.cert_id?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{
        DAY_1, DAY_2, ISSUED, SERVICE, begin, deployed, finish, leaf, options, served, source,
    };
    use super::*;

    #[test]
    fn pending_since_is_kept_until_success() {
        let mut first = begin(None, leaf("aa", ISSUED), DAY_1);
        assert_eq!((first.generation, first.result.is_none()), (1, true));
        finish(&mut first, 75, Vec::new(), &ChangedRecords::default(), DAY_1);
        let mut second = begin(Some(first), leaf("aa", ISSUED), DAY_2);
        assert_eq!((second.generation, second.pending_since), (1, Some(DAY_1)));
        finish(&mut second, 0, served(), &ChangedRecords::default(), DAY_2);
        assert_eq!(second.pending_since, None);
        assert!(!second.has_earlier_leaf());
        let third = begin(Some(second.clone()), leaf("bb", ISSUED), DAY_2);
        assert_eq!((third.generation, third.sites.len(), &third.result), (2, 1, &None));
        assert!(third.has_earlier_leaf());
        let unread = LineageState::begin(Some(second.clone()), source(), &options(), None, DAY_2);
        assert_eq!((unread.generation, unread.leaf), (1, second.leaf));
    }

    #[test]
    fn skipped_run_deploys_nothing() {
        for (outcome, expected) in [(Outcome::Served, Some("aa")), (Outcome::Skipped, None)] {
            let mut state = begin(None, leaf("aa", ISSUED), DAY_1);
            let site = SiteState { outcome, ..served().remove(0) };
            finish(&mut state, 0, vec![site], &ChangedRecords::default(), DAY_1);
            let next = begin(Some(state), leaf("bb", ISSUED), DAY_2);
            assert_eq!(next.previously_deployed.map(|leaf| leaf.fingerprint).as_deref(), expected);
        }
    }

    #[test]
    fn same_intent_adds_nothing() {
        let adds_nothing = |before: &LineageState, fingerprint| {
            begin(Some(before.clone()), leaf(fingerprint, ISSUED), DAY_2).adds_nothing_to(before)
        };
        let mut state = begin(None, leaf("aa", ISSUED), DAY_1);
        assert!(adds_nothing(&state, "aa") && !adds_nothing(&state, "bb"));
        finish(&mut state, 75, Vec::new(), &ChangedRecords::default(), DAY_1);
        assert!(adds_nothing(&state, "aa"));
        finish(&mut state, 0, served(), &ChangedRecords::default(), DAY_1);
        assert!(!adds_nothing(&state, "aa"), "nothing is pending");
        let mut renewed = begin(Some(state), leaf("bb", ISSUED), DAY_1);
        assert!(adds_nothing(&renewed, "bb"));
        finish(&mut renewed, 69, Vec::new(), &ChangedRecords::default(), DAY_1);
        assert!(!adds_nothing(&renewed, "bb"), "if it is killed, the record may hold the leaf");
    }

    #[test]
    fn run_by_hand_keeps_other_sites() {
        for (origin, service, expected) in [
            (Origin::Hand, SERVICE, &["0.example", "a.example"][..]),
            (Origin::Hook, SERVICE, &["0.example"]),
            (Origin::Hand, "https://other.example.net", &["0.example"]),
        ] {
            let options = RunOptions { service: Some(service.into()), origin, ..options() };
            let before = Some(deployed(leaf("aa", ISSUED), DAY_1));
            let mut state = LineageState::begin(before, source(), &options, None, DAY_2);
            assert!(state.has_hook_run);
            let mut sites = served();
            sites[0].domain = "0.example".parse().unwrap();
            state.finish((0, None), sites, &ChangedRecords::default(), &options, DAY_2);
            let hosts: Vec<&str> = state.sites.iter().map(|site| site.domain.host()).collect();
            assert_eq!(hosts, expected, "{service}");
        }
        let options = RunOptions { origin: Origin::Hand, ..options() };
        assert!(!LineageState::begin(None, source(), &options, None, DAY_1).has_hook_run);
    }

    #[test]
    fn misbound_site_was_missed() {
        for (outcome, missed) in [(Outcome::Served, 0), (Outcome::Misbound, 1), (Outcome::Queued, 0)] {
            let mut state = begin(None, leaf("aa", ISSUED), DAY_1);
            let sites = served().into_iter().map(|site| SiteState { outcome: outcome.clone(), ..site });
            finish(&mut state, 75, sites.collect(), &ChangedRecords::default(), DAY_1);
            let sites = |service, fingerprint| state.missed_sites(service, &leaf(fingerprint, ISSUED)).len();
            assert_eq!(sites(SERVICE, "aa"), missed, "{outcome}");
            assert_eq!([sites(SERVICE, "bb"), sites("https://other.example.net", "aa")], [0; 2]);
        }
    }

    #[test]
    fn deployed_leaf_is_kept_until_success() {
        let mut state = begin(None, leaf("aa", ISSUED), DAY_1);
        assert_eq!(state.deployed(), None);
        finish(&mut state, 0, served(), &ChangedRecords::default(), DAY_1);
        assert_eq!(state.deployed(), Some(&leaf("aa", ISSUED)));
        for fingerprint in ["bb", "cc"] {
            state = begin(Some(state), leaf(fingerprint, ISSUED), DAY_2);
            assert_eq!(state.deployed(), Some(&leaf("aa", ISSUED)));
            finish(&mut state, 75, Vec::new(), &ChangedRecords::default(), DAY_2);
            assert_eq!(state.deployed(), Some(&leaf("aa", ISSUED)));
        }
        finish(&mut state, 0, served(), &ChangedRecords::default(), DAY_2);
        assert_eq!(state.deployed(), Some(&leaf("cc", ISSUED)));
    }

    #[test]
    fn failed_sites_lack_the_leaf() {
        use Outcome::{Guarded, Misbound, Queued, Refused, Served, Skipped, Stale, Superseded};
        let rows = [(Queued, true), (Guarded, true), (Refused, true), (Misbound, true)];
        let rest = [Served, Stale, Skipped, Superseded].map(|outcome| (outcome, false));
        for (outcome, expected) in rows.into_iter().chain(rest) {
            let mut sites = served();
            sites[0].outcome = outcome.clone();
            for (domain, is_own) in [("A.Example.", true), ("b.example", false)] {
                let mut state = begin(None, leaf("aa", ISSUED), DAY_1);
                state.domains = vec![domain.parse().unwrap()];
                assert!(!state.is_superseded(), "no sites");
                finish(&mut state, 0, sites.clone(), &ChangedRecords::default(), DAY_1);
                assert_eq!(state.is_superseded(), outcome == Superseded);
                assert_eq!(state.has_earlier_leaf(), expected && is_own, "{outcome} {domain}");
                state.leaf = Some(leaf("bb", ISSUED));
                assert_eq!(state.has_earlier_leaf(), outcome != Superseded && is_own, "{outcome} {domain}");
            }
        }
    }
}
