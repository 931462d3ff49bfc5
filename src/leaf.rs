//! A leaf apart from its files: as state files record it, records of the service hold it, and edges show it.

use serde::{Deserialize, Serialize};
use time::{Duration, OffsetDateTime};

use crate::text::rfc3339;

/// A leaf. Two are equal if all that is known of them is; [`Leaf::rank`] orders them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Leaf {
    pub(crate) fingerprint: String,
    /// Its DNS names and IP addresses, sanitized; empty in what is recorded of an edge.
    #[serde(default)]
    pub(crate) names: Vec<String>,
    #[serde(with = "rfc3339::millis")]
    pub(crate) not_before: OffsetDateTime,
    #[serde(with = "rfc3339::millis")]
    pub(crate) not_after: OffsetDateTime,
    /// Short name of its issuer, sanitized; `None`: unknown. It is not recorded.
    #[serde(skip)]
    pub(crate) issuer: Option<String>,
}

impl Leaf {
    /// How long it is valid; `None` if its dates contradict each other.
    pub(crate) fn lifetime(&self) -> Option<Duration> {
        Some(self.not_after - self.not_before).filter(|lifetime| lifetime.is_positive())
    }

    /// Orders leaves by issue date. The other fields break ties, so that two lineages never supersede each other.
    pub(crate) fn rank(&self) -> (OffsetDateTime, OffsetDateTime, &str) {
        (self.not_before, self.not_after, &self.fingerprint)
    }
}
