//! A leaf apart from its files: as state files record it, records of the service hold it, and edges show it.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::text::rfc3339;

/// A leaf, identified by its fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Leaf {
    pub(crate) fingerprint: String,
    /// The DNS names that it covers; untrusted text if an edge showed it. What is recorded of an edge has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) names: Vec<String>,
    #[serde(with = "rfc3339")]
    pub(crate) not_before: OffsetDateTime,
    #[serde(with = "rfc3339")]
    pub(crate) not_after: OffsetDateTime,
    /// Short name of its issuer, sanitized; `None`: unknown. It is not recorded.
    #[serde(skip)]
    pub(crate) issuer: Option<String>,
}

impl Leaf {
    /// Orders leaves by issue date. The other fields break ties, so that two lineages never supersede each other.
    pub(crate) fn rank(&self) -> (OffsetDateTime, OffsetDateTime, &str) {
        (self.not_before, self.not_after, &self.fingerprint)
    }
}
