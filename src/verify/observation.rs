//! What one round of handshakes with an address shows.

use time::OffsetDateTime;

use super::handshake_error::{Cause, HandshakeError};
use crate::cert::Certificate;
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::sightings::Sighting;
use crate::text;

/// What the latest handshakes with an address showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Observation {
    /// No handshake was made yet.
    Unchecked,
    /// It serves the expected leaf, in every handshake.
    Expected { chain: ServedChain },
    /// It serves another leaf.
    Other {
        /// `None` if it cannot be parsed.
        leaf: Option<OtherLeaf>,
        /// The clients or connections that get it, if not all do.
        clients: Option<&'static str>,
    },
    /// It serves no leaf.
    Failed(HandshakeError),
}

impl Observation {
    pub(super) fn is_other(&self) -> bool {
        matches!(self, Self::Other { .. })
    }

    pub(super) fn is_expected(&self) -> bool {
        matches!(self, Self::Expected { .. })
    }

    /// What visitors get now, given the expected leaf; `None` if unknown.
    pub(super) fn sighting(&self, expected: &Leaf, now: OffsetDateTime) -> Option<Sighting> {
        let seen = |leaf: &Leaf, not_after| {
            let (fingerprint, not_before) = (leaf.fingerprint.clone(), leaf.not_before);
            Some(Sighting::Leaf(Leaf { fingerprint, names: Vec::new(), not_before, not_after, issuer: None }))
        };
        match self {
            Self::Unchecked => None,
            Self::Expected { .. } => seen(expected, expected.not_after),
            Self::Other { leaf: Some(other), clients } if other.is_accepted(now) => {
                // Other clients or connections get the expected leaf.
                let shared = clients.map(|_| expected.not_after);
                let until = other.leaf.not_after;
                seen(&other.leaf, shared.map_or(until, |shared| shared.min(until)))
            }
            Self::Other { .. } => Some(Sighting::Nothing),
            Self::Failed(error) => error.is_refusal().then_some(Sighting::Nothing),
        }
    }

    /// Many clients cannot fetch missing intermediates.
    pub(super) fn has_broken_chain(&self) -> bool {
        matches!(self, Self::Expected { chain: ServedChain::Broken })
    }

    pub(super) fn failed_with(&self, cause: Cause) -> bool {
        matches!(self, Self::Failed(error) if error.cause == cause)
    }
}

/// The chain that is served with the expected leaf, compared with the chain to deploy. The worst is last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ServedChain {
    /// The same chain, or the chain to deploy is unknown.
    Same,
    /// Other intermediates.
    Other,
    /// No intermediate, or one that did not issue the leaf, although there are others to deploy.
    Broken,
}

/// A leaf that an edge serves, other than the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OtherLeaf {
    pub(crate) leaf: Leaf,
    /// Whether it covers the site.
    pub(crate) covers_site: bool,
}

impl OtherLeaf {
    pub(super) fn new(leaf: &Certificate, site: &Domain) -> Self {
        let covers_site = site.is_covered_by_any(leaf.dns_names());
        Self { leaf: Leaf { issuer: Some(leaf.issuer.short.clone()), ..leaf.to_leaf() }, covers_site }
    }

    /// Whether visitors may accept it.
    pub(super) fn is_accepted(&self, now: OffsetDateTime) -> bool {
        self.covers_site && self.leaf.not_before <= now
    }

    pub(super) fn describe(leaf: Option<&Self>) -> String {
        leaf.map_or_else(
            || "a certificate that cannot be read".into(),
            |Self { leaf, .. }| {
                let (issuer, expiry) =
                    (leaf.issuer.as_deref().unwrap_or_default(), text::rfc3339(leaf.not_after));
                format!("the certificate of {issuer} that expires at {expiry}")
            },
        )
    }
}
