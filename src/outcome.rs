//! The result of a deployment: for one site, as reports and state files spell it, and for the records of the service.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// The result of a deployment for one site; the most severe first, in the order of exit codes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// A guard refused: deploying would break something else.
    Guarded,
    /// The service refused.
    Refused,
    /// Another record is bound to the site.
    Misbound,
    /// A temporary failure; it is recorded, and `edgecert sync` retries it.
    Queued,
    /// An address of the edge still serves another leaf.
    Stale,
    /// Bound; the push is not confirmed.
    Uploaded,
    /// Bound and pushed, but not verified by a handshake.
    Synced,
    /// Every address of the edge served the new leaf.
    Served,
    /// Another lineage of this host provides the certificate of the site.
    Superseded,
    /// Not requested, or the account has no such site and `skip_unmatched` is set.
    Skipped,
    /// An outcome that a later release wrote to a state file.
    #[serde(untagged)]
    Unknown(String),
}

crate::text::display_as_serialized!(Outcome);

/// The records in which a deployment stored its leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangedRecords {
    pub(crate) stored: BTreeSet<u64>,
    /// Those in which the leaf may be stored: the response was lost.
    pub(crate) maybe_stored: BTreeSet<u64>,
    /// Whether it may be stored in any other record: the response was lost, and the records were not listed.
    pub(crate) is_any_possible: bool,
}

impl Outcome {
    /// Whether the uploaded record was bound to the site when the deployment ended.
    pub(crate) fn is_bound(&self) -> bool {
        matches!(self, Self::Served | Self::Synced | Self::Uploaded | Self::Stale)
    }

    /// Whether the site did not get the uploaded record.
    pub(crate) fn is_failed(&self) -> bool {
        matches!(self, Self::Queued | Self::Guarded | Self::Refused | Self::Misbound)
    }

    /// Whether the record was bound and no address of the edge served another leaf.
    pub(crate) fn is_deployed(&self) -> bool {
        self.is_bound() && *self != Self::Stale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_and_serde_agree() {
        for outcome in [Outcome::Served, Outcome::Misbound, Outcome::Unknown("later".into())] {
            let json = serde_json::to_string(&outcome).unwrap();
            assert_eq!(json, format!("\"{outcome}\""));
            assert_eq!(serde_json::from_str::<Outcome>(&json).unwrap(), outcome);
        }
        assert_eq!(Outcome::Served.to_string(), "served");
        assert!(serde_json::from_str::<Outcome>("5").is_err());
    }
}
