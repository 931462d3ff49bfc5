//! State files: for each lineage, what was to be deployed and the result.
//!
//! The intent is on disk before the first request, the result after the last. The files are small, for people as well as
//! for edgecert, and never hold a private key or the API key. `store` reads and writes them, `lock` keeps two runs off one
//! lineage.

mod issue_dates;
mod lock;
mod store;

use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::outcome::Outcome;
use crate::settings::Layer;
use crate::text::{self, rfc3339};

pub(crate) use self::issue_dates::IssueDates;
pub(crate) use self::lock::{Lock, LockError, LockTimeout};
pub(crate) use self::store::{StateError, Store, WriteError};

/// Version of the state files; raised when a field changes its meaning or is removed.
pub(crate) const VERSION: u8 = 1;

/// The state file of a lineage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LineageState {
    pub(crate) version: u8,
    #[serde(rename = "lineage")]
    pub(crate) source: SourceState,
    #[serde(rename = "order")]
    pub(crate) options: DeployOptions,
    /// The leaf to deploy; `None`: no run has been able to read one.
    #[serde(rename = "certificate")]
    pub(crate) leaf: Option<LeafState>,
    /// Number of leaves of this lineage so far.
    pub(crate) generation: u64,
    /// When the last run began.
    #[serde(rename = "begun", with = "rfc3339::millis")]
    pub(crate) begun_at: OffsetDateTime,
    /// How the last run ended; `None`: it is running, or it was killed.
    pub(crate) result: Option<RunResult>,
    /// When the first run began that has had no successful one after it; `None`: nothing is pending.
    #[serde(default, with = "rfc3339::millis::option")]
    pub(crate) pending_since: Option<OffsetDateTime>,
    #[serde(default, with = "rfc3339::millis::option")]
    pub(crate) last_success: Option<OffsetDateTime>,
    /// When a run found and reported that the files of the lineage are missing; `None`: they are not.
    #[serde(rename = "gone_since", default, with = "rfc3339::millis::option")]
    pub(crate) missing_since: Option<OffsetDateTime>,
    /// The sites of the last run that reported any.
    pub(crate) sites: Vec<SiteState>,
    /// The leaf which that run deployed to `sites`, not necessarily the present one; `None`: there was no such run.
    #[serde(rename = "told", default)]
    pub(crate) sites_leaf: Option<DatedLeaf>,
    /// The leaf of the last success before the present deployment; `None`: none is known.
    #[serde(rename = "deployed_before", default)]
    pub(crate) previously_deployed: Option<LeafState>,
}

/// Where the files of a lineage are. The paths are absolute; every run reads the files again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SourceState {
    pub(crate) client: String,
    pub(crate) cert: PathBuf,
    pub(crate) issuers: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) directory: Option<PathBuf>,
}

/// How a lineage is to be deployed. The API key is not part of it: every run reads it from its own settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeployOptions {
    /// Base URL of the service; `None`: no run has been able to read its settings.
    pub(crate) service: Option<String>,
    /// The sites to deploy to; empty: every covered one.
    pub(crate) domains: Vec<String>,
    /// Settings of the command line and the environment, for the runs that retry.
    #[serde(rename = "asked")]
    pub(crate) overrides: Overrides,
    pub(crate) allow_shrink: bool,
    pub(crate) allow_older: bool,
    pub(crate) replace_lets: bool,
}

/// What a run was given beside the configuration file, which every run reads again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Overrides {
    pub(crate) domains: Vec<String>,
    pub(crate) settings: Layer,
}

/// A leaf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeafState {
    pub(crate) fingerprint: String,
    pub(crate) names: Vec<String>,
    #[serde(with = "rfc3339")]
    pub(crate) not_before: OffsetDateTime,
    #[serde(with = "rfc3339")]
    pub(crate) not_after: OffsetDateTime,
}

/// A leaf, and when the run ended that deployed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DatedLeaf {
    #[serde(rename = "certificate")]
    pub(crate) leaf: LeafState,
    #[serde(with = "rfc3339::millis")]
    pub(crate) at: OffsetDateTime,
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
    pub(crate) domain: String,
    /// Host name of its edge.
    pub(crate) cname: Option<String>,
    pub(crate) cert_id: Option<u64>,
    pub(crate) outcome: Outcome,
    pub(crate) detail: Option<String>,
}

impl LineageState {
    /// Begins a run. The sites of earlier runs stay until this one reports its own. Without a readable `leaf` the last one
    /// stays, too.
    pub(crate) fn begin(
        before: Option<Self>,
        source: SourceState,
        options: DeployOptions,
        leaf: Option<LeafState>,
        now: OffsetDateTime,
    ) -> Self {
        let known = before.as_ref().and_then(|before| before.leaf.clone());
        let is_new = leaf.is_some() && leaf != known;
        let generation = before.as_ref().map_or(0, |before| before.generation) + u64::from(is_new);
        let pending_since = before.as_ref().and_then(|before| before.pending_since);
        let previously_deployed = before.as_ref().and_then(|before| before.deployed().cloned());
        let (last_success, sites, sites_leaf) =
            before.map(|before| (before.last_success, before.sites, before.sites_leaf)).unwrap_or_default();
        Self {
            version: VERSION,
            source,
            options,
            leaf: leaf.or(known),
            generation,
            begun_at: now,
            result: None,
            pending_since: Some(pending_since.unwrap_or(now)),
            last_success,
            missing_since: None,
            sites,
            sites_leaf,
            previously_deployed,
        }
    }

    /// Records how the run ended.
    pub(crate) fn finish(
        &mut self,
        exit_code: u8,
        error: Option<String>,
        sites: Vec<SiteState>,
        now: OffsetDateTime,
    ) {
        if exit_code == 0 {
            self.pending_since = None;
            self.last_success = Some(now);
        }
        if !sites.is_empty() {
            self.sites = sites;
            self.sites_leaf = self.leaf.clone().map(|leaf| DatedLeaf { leaf, at: now });
        }
        self.result = Some(RunResult { at: now, exit_code, error });
    }

    /// Records that the files of the lineage are missing.
    pub(crate) fn mark_missing(&mut self, now: OffsetDateTime) {
        self.missing_since.get_or_insert(now);
    }

    /// The leaf of the last deployment that succeeded.
    pub(crate) fn deployed(&self) -> Option<&LeafState> {
        if self.has_succeeded() { self.leaf.as_ref() } else { self.previously_deployed.as_ref() }
    }

    fn has_succeeded(&self) -> bool {
        self.result.as_ref().is_some_and(|result| result.exit_code == 0)
    }

    /// Whether the last run deployed this leaf with these options.
    pub(crate) fn is_done(&self, leaf: &LeafState, options: &DeployOptions) -> bool {
        self.has_succeeded() && self.leaf.as_ref() == Some(leaf) && self.options == *options
    }

    /// Whether `sites` are those of the present leaf.
    pub(crate) fn has_current_sites(&self) -> bool {
        self.sites_leaf.as_ref().map(|dated| &dated.leaf) == self.leaf.as_ref()
    }

    /// The records that hold the leaf of `sites`.
    fn records(&self) -> impl Iterator<Item = u64> {
        self.sites.iter().filter(|site| site.outcome.is_bound()).filter_map(|site| site.cert_id)
    }
}

/// Names the files of a lineage after `place`, a path that stays the same when it is renewed: readable, and unique even if
/// two directories have the same name.
pub(crate) fn lineage_name(place: &Path) -> String {
    let absolute = std::path::absolute(place).unwrap_or_else(|_| place.to_owned());
    let digest = digest(&SHA256, absolute.as_os_str().as_encoded_bytes());
    let directory = absolute.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    let plain: String = directory
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' })
        .take(60)
        .collect();
    let unique = text::hex(digest.as_ref().get(..5).unwrap_or_default());
    format!("{}-{unique}", plain.trim_start_matches('.'))
}

/// Hashes a name to an evenly distributed number that is the same on every host.
pub(crate) fn stable_hash(name: &str) -> u64 {
    let digest = digest(&SHA256, name.as_bytes());
    digest.as_ref().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    const ISSUED: OffsetDateTime = datetime!(2026-01-01 00:00 UTC);
    const DAY_1: OffsetDateTime = datetime!(2026-02-01 00:00 UTC);
    const DAY_2: OffsetDateTime = datetime!(2026-02-02 00:00 UTC);
    const SERVICE: &str = "https://api.example.net";

    fn leaf(fingerprint: &str, not_before: OffsetDateTime) -> LeafState {
        LeafState {
            fingerprint: fingerprint.into(),
            names: vec!["a.example".into()],
            not_before,
            not_after: datetime!(2027-01-01 00:00 UTC),
        }
    }

    fn begin(before: Option<LineageState>, leaf: LeafState, now: OffsetDateTime) -> LineageState {
        let source = SourceState {
            client: "files".into(),
            cert: "/c".into(),
            issuers: None,
            key: None,
            directory: None,
        };
        let options = DeployOptions { service: Some(SERVICE.into()), ..DeployOptions::default() };
        LineageState::begin(before, source, options, Some(leaf), now)
    }

    /// A site to which record 5 is bound.
    fn served() -> Vec<SiteState> {
        vec![SiteState {
            id: Some(1),
            domain: "a.example".into(),
            cname: None,
            cert_id: Some(5),
            outcome: Outcome::Served,
            detail: None,
        }]
    }

    fn deployed(leaf: LeafState, now: OffsetDateTime) -> LineageState {
        let mut state = begin(None, leaf, now);
        state.finish(0, None, served(), now);
        state
    }

    fn issue_dates(states: [&LineageState; 2]) -> IssueDates {
        let mut dates = IssueDates::default();
        for state in states {
            dates.add(state);
        }
        dates
    }

    #[test]
    fn pending_since_is_kept_until_success() {
        let mut first = begin(None, leaf("aa", ISSUED), DAY_1);
        assert_eq!((first.generation, first.result.is_none()), (1, true));
        first.finish(75, Some("busy".into()), Vec::new(), DAY_1);
        let mut second = begin(Some(first), leaf("aa", ISSUED), DAY_2);
        assert_eq!((second.generation, second.pending_since), (1, Some(DAY_1)));
        second.finish(0, None, served(), DAY_2);
        assert_eq!(second.pending_since, None);
        assert!(second.is_done(&leaf("aa", ISSUED), &second.options.clone()));
        let third = begin(Some(second), leaf("bb", ISSUED), DAY_2);
        assert_eq!((third.generation, third.sites, third.result), (2, served(), None));
    }

    #[test]
    fn deployed_leaf_is_kept_until_success() {
        let mut state = begin(None, leaf("aa", ISSUED), DAY_1);
        assert_eq!(state.deployed(), None);
        state.finish(0, None, served(), DAY_1);
        assert_eq!(state.deployed(), Some(&leaf("aa", ISSUED)));
        for fingerprint in ["bb", "cc"] {
            state = begin(Some(state), leaf(fingerprint, ISSUED), DAY_2);
            assert_eq!(state.deployed(), Some(&leaf("aa", ISSUED)));
            state.finish(75, None, Vec::new(), DAY_2);
            assert_eq!(state.deployed(), Some(&leaf("aa", ISSUED)));
        }
        state.finish(0, None, served(), DAY_2);
        assert_eq!(state.deployed(), Some(&leaf("cc", ISSUED)));
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

    #[test]
    fn lineage_names_are_readable_and_unique() {
        let paths = ["/etc/le/live/shop/fullchain.pem", "/srv/live/shop/fullchain.pem", "/x/*.a b/c.pem"];
        let [first, second, third] = paths.map(|path| lineage_name(Path::new(path)));
        assert!(first.starts_with("shop-") && second.starts_with("shop-") && first != second);
        assert!(third.starts_with("_.a_b-"), "{third}");
    }
}
