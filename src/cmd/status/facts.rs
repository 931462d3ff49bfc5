//! What is known of a lineage. `gather` finds it, `verify` adds what is served, the others show it.

use time::{Duration, OffsetDateTime};

use crate::cert::KeyType;
use crate::outcome::Outcome;
use crate::state::RunResult;

/// One lineage.
pub(super) struct Lineage {
    /// What its memory is called, or where its entry of the configuration leads.
    pub(super) name: String,
    pub(super) client: Option<&'static str>,
    pub(super) cert: Option<String>,
    /// Whether an entry of the configuration names it.
    pub(super) configured: bool,
    /// Whether anything is remembered of it.
    pub(super) remembered: bool,
    pub(super) generation: u64,
    /// Since when what should be deployed is not; of what no run has seen yet since it was written.
    pub(super) pending_since: Option<OffsetDateTime>,
    /// Whether a run has begun what is pending.
    pub(super) begun: bool,
    pub(super) last_success: Option<OffsetDateTime>,
    /// How the last run ended, if not well.
    pub(super) last_error: Option<RunResult>,
    pub(super) disk: Disk,
    /// The leaf of the last deployment that succeeded.
    pub(super) deployed: Option<Leaf>,
    pub(super) sites: Vec<Site>,
    /// The edge to ask in place of the sites' own, as it is remembered or the entry says.
    pub(super) edge_address: Option<String>,
}

/// The certificate in the lineage's files.
pub(super) enum Disk {
    Leaf {
        leaf: Leaf,
        key_type: KeyType,
        age: Age,
    },
    Gone,
    /// Why it is not known.
    ReadError(String),
}

/// The leaf on disk in relation to the one that was to be deployed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Age {
    Same,
    /// No run has seen it yet.
    Newer,
    Older,
}

/// A leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    pub(super) fingerprint: String,
    pub(super) names: Vec<String>,
    pub(super) not_after: OffsetDateTime,
}

/// One site of a lineage.
pub(super) struct Site {
    pub(super) id: Option<u64>,
    pub(super) domain: String,
    pub(super) cname: Option<String>,
    pub(super) cert_id: Option<u64>,
    pub(super) outcome: Outcome,
    pub(super) detail: Option<String>,
    /// Whether its record holds the leaf that is on disk; `None`: that is not known.
    pub(super) is_on_record: Option<bool>,
    /// When the leaf expires that visitors get, as far as it is known.
    pub(super) not_after: Option<OffsetDateTime>,
    /// What its edge shows now; `None`: it was not asked.
    pub(super) served: Option<Shown>,
}

/// What the edge of a site shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// So many addresses show the leaf.
    pub(super) served: usize,
    pub(super) addresses: usize,
    pub(super) is_proven: bool,
    /// Addresses that show another leaf, in words, and when the first of those leaves expires.
    pub(super) stale: Vec<String>,
    pub(super) stale_until: Option<OffsetDateTime>,
    /// Why others are not known.
    pub(super) unseen: Vec<String>,
}

/// What a lineage is up to, in the word of the JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Deployed,
    /// A deployment was begun and is not done.
    Pending,
    /// The files hold a leaf that no run has seen yet.
    Renewed,
    /// The files are gone.
    Gone,
    /// It was never deployed.
    New,
}

impl Lineage {
    pub(super) fn state(&self) -> State {
        match &self.disk {
            Disk::Gone => State::Gone,
            _ if !self.remembered => State::New,
            _ if self.begun => State::Pending,
            Disk::Leaf { age: Age::Newer, .. } => State::Renewed,
            _ => State::Deployed,
        }
    }

    /// How long it has been pending.
    pub(super) fn lag(&self, now: OffsetDateTime) -> Option<Duration> {
        self.pending_since.map(|since| now - since)
    }

    /// Whether anybody depends on its files.
    pub(super) fn is_needed(&self) -> bool {
        self.configured || self.begun || self.sites.iter().any(|site| site.not_after.is_some())
    }
}

impl Site {
    /// When the leaf expires that visitors get: as was seen now, else as the last result tells.
    pub(super) fn expiry(&self) -> Option<OffsetDateTime> {
        self.served.as_ref().and_then(|served| served.stale_until).or(self.not_after)
    }
}

impl Shown {
    /// The outcome in a word.
    pub(super) fn word(&self) -> &'static str {
        match () {
            () if self.is_proven => "served",
            () if !self.stale.is_empty() => "stale",
            () => "unreachable",
        }
    }
}

/// Whole days until then; negative afterwards.
pub(super) fn days_left(until: OffsetDateTime, now: OffsetDateTime) -> i64 {
    (until - now).whole_seconds().div_euclid(24 * 60 * 60)
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Deployed => "deployed",
            Self::Pending => "pending",
            Self::Renewed => "renewed",
            Self::Gone => "gone",
            Self::New => "new",
        }
    }
}

impl Disk {
    pub(super) fn leaf(&self) -> Option<&Leaf> {
        match self {
            Self::Leaf { leaf, .. } => Some(leaf),
            Self::Gone | Self::ReadError(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn a_lineage_is_in_one_state() {
        let words = |lineage: Lineage| lineage.state().word();
        assert_eq!(words(fixture::deployed("x", 1)), "deployed");
        assert_eq!(words(fixture::pending("x", 1, Duration::ZERO)), "pending");
        assert_eq!(words(fixture::renewed("x", Duration::ZERO)), "renewed");
        assert_eq!(words(fixture::gone("x")), "gone");
        assert_eq!(words(Lineage { remembered: false, ..fixture::renewed("x", Duration::ZERO) }), "new");
    }

    #[test]
    fn days_are_whole_and_negative_once_they_are_over() {
        let now = fixture::NOW;
        for (hours, days) in [(0, 0), (23, 0), (24, 1), (-1, -1), (-25, -2)] {
            assert_eq!(days_left(now + Duration::hours(hours), now), days, "{hours} hours");
        }
    }
}
