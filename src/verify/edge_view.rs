//! The observations of a site's edge so far, address by address, and the conclusions drawn from them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::Serialize;
use time::OffsetDateTime;

use super::handshake_error::{Cause, HandshakeError};
use crate::cert::Certificate;
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::sightings::{NewSightings, Sighting};
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
}

/// Rounds of handshakes with one address.
#[derive(Debug, Default)]
struct Rounds {
    /// Rounds in which some connections showed the expected leaf and others did not.
    mixed: u32,
    /// The latest rounds, in which all connections showed it.
    good: u32,
}

/// How many addresses of an edge serve the leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ServedOf {
    /// Addresses that served the leaf.
    pub(crate) served: usize,
    /// Addresses that were tried.
    pub(crate) addresses: usize,
}

/// What the edge of one site serves.
#[derive(Debug, Default)]
pub(crate) struct EdgeView {
    addresses: BTreeMap<SocketAddr, Observation>,
    rounds: BTreeMap<SocketAddr, Rounds>,
    /// The latest issued of the other leaves that cover the site and were served to any kind of client.
    pub(crate) latest_other: Option<Leaf>,
    /// Why there may be further addresses.
    pub(super) unresolved: Vec<String>,
    /// Whether addresses that this host has no route to count.
    is_strict: bool,
}

impl EdgeView {
    /// Creates a view without observations. If it is strict, addresses that this host has no route to count.
    pub(crate) fn new(is_strict: bool) -> Self {
        Self { is_strict, ..Self::default() }
    }

    /// Whether there may be unknown addresses.
    pub(super) fn is_incomplete(&self) -> bool {
        self.addresses.is_empty() || !self.unresolved.is_empty()
    }

    pub(super) fn add_addresses(&mut self, addresses: Vec<SocketAddr>) {
        for address in addresses {
            self.addresses.entry(address).or_insert(Observation::Unchecked);
        }
    }

    /// Records the observation of a round of handshakes. A failure does not replace another leaf that was observed
    /// before, nor a refusal.
    pub(super) fn record(&mut self, address: SocketAddr, observation: Observation, is_mixed: bool) {
        let rounds = self.rounds.entry(address).or_default();
        rounds.mixed += u32::from(is_mixed);
        rounds.good = if observation.is_expected() { rounds.good + 1 } else { 0 };
        let known = self.addresses.entry(address).or_insert(Observation::Unchecked);
        let says_less = match &observation {
            // Each connection may reach a different node. The more often some were stale, the likelier it is that a
            // round passes by chance.
            Observation::Expected { .. } => rounds.good <= rounds.mixed,
            Observation::Failed(error) if error.is_refusal() => known.is_other(),
            Observation::Failed(error) => {
                known.is_other() || known.failed_with(Cause::Refused) || error.cause == Cause::TooLittleTime
            }
            Observation::Other { .. } | Observation::Unchecked => false,
        };
        if !says_less {
            *known = observation;
        }
    }

    /// Keeps another leaf if it covers the site and was issued later than those seen before.
    pub(super) fn note_other(&mut self, OtherLeaf { leaf, covers_site }: &OtherLeaf) {
        let is_latest = self.latest_other.as_ref().is_none_or(|known| leaf.not_before > known.not_before);
        if *covers_site && is_latest {
            self.latest_other = Some(leaf.clone());
        }
    }

    /// Whether an address served a leaf.
    pub(crate) fn has_leaf(&self) -> bool {
        self.addresses.values().any(|observation| observation.is_expected() || observation.is_other())
    }

    /// Whether an address served another leaf.
    pub(crate) fn has_other_leaf(&self) -> bool {
        self.addresses.values().any(Observation::is_other)
    }

    /// Whether an address served a leaf that does not cover the site, or that cannot be read.
    pub(crate) fn has_uncovering_leaf(&self) -> bool {
        self.addresses.values().any(|observation| {
            matches!(observation, Observation::Other { leaf, .. } if !leaf.as_ref().is_some_and(|leaf| leaf.covers_site))
        })
    }

    /// The addresses that have not served the expected leaf.
    pub(super) fn pending(&self) -> Vec<SocketAddr> {
        let pending = self.addresses.iter().filter(|(_, observation)| !observation.is_expected());
        pending.map(|(address, _)| *address).collect()
    }

    /// Whether every address served the expected leaf.
    pub(crate) fn is_served(&self) -> bool {
        !self.is_incomplete() && self.relevant().all(|(_, observation)| observation.is_expected())
    }

    /// Whether every address that can be reached served the expected leaf, and at least one did.
    pub(crate) fn is_current(&self) -> bool {
        let is_in_reach = |observation: &&Observation| {
            !observation.failed_with(Cause::NoRoute) && !observation.failed_with(Cause::Unreachable)
        };
        let mut reached = self.addresses.values().filter(is_in_reach).peekable();
        !self.is_incomplete()
            && reached.peek().is_some()
            && reached.all(|observation| observation.is_expected() && !observation.has_broken_chain())
    }

    /// Whether an upload may improve what an address showed: another leaf, a broken chain or a refusal.
    pub(crate) fn may_change(&self) -> bool {
        let has_broken_chain = || self.addresses.values().any(Observation::has_broken_chain);
        self.has_other_leaf() || has_broken_chain() || !self.refusals().is_empty()
    }

    /// Whether a connection broke during its handshake, which says nothing about what the address serves.
    pub(crate) fn has_broken_connection(&self) -> bool {
        self.addresses.values().any(|observation| observation.failed_with(Cause::Broken))
    }

    /// How many addresses served the expected leaf, and how many there are.
    pub(crate) fn served_of(&self) -> ServedOf {
        let served = self.relevant().filter(|(_, observation)| observation.is_expected());
        ServedOf { served: served.count(), addresses: self.relevant().count() }
    }

    /// Describes each address that refuses the name.
    pub(crate) fn refusals(&self) -> Vec<String> {
        let refusals = self.addresses.iter().filter_map(|(address, observation)| match observation {
            Observation::Failed(error) if error.is_refusal() => Some(format!("{address} {}", error.reason)),
            _ => None,
        });
        refusals.collect()
    }

    /// Describes each address that serves another leaf. The verb is `serves`, or `still serves` after a deployment.
    pub(crate) fn others(&self, serves: &str) -> Vec<String> {
        let others = self.addresses.iter().filter_map(|(address, observation)| {
            let Observation::Other { leaf, clients } = observation else { return None };
            let leaf = match leaf {
                Some(OtherLeaf { leaf, .. }) => format!(
                    "the certificate of {} that expires at {}",
                    leaf.issuer.as_deref().unwrap_or_default(),
                    text::rfc3339(leaf.not_after)
                ),
                None => "a certificate that cannot be read".to_owned(),
            };
            let clients = clients.map(|clients| format!("{clients} ")).unwrap_or_default();
            Some(format!("{address} {serves} {clients}{leaf}"))
        });
        others.collect()
    }

    /// The first to expire of the other leaves that are still served and that visitors may accept.
    pub(crate) fn earliest_other(&self, now: OffsetDateTime) -> Option<&Leaf> {
        let others = self.addresses.values().filter_map(|observation| match observation {
            Observation::Other { leaf, .. } => leaf.as_ref().filter(|other| other.is_accepted(now)),
            _ => None,
        });
        others.map(|other| &other.leaf).min_by_key(|leaf| leaf.not_after)
    }

    /// What the relevant addresses showed, given the expected leaf.
    pub(crate) fn sightings(&self, expected: &Leaf, now: OffsetDateTime) -> NewSightings {
        let addresses = self.relevant().map(|(address, seen)| (*address, seen.sighting(expected, now)));
        NewSightings { addresses: addresses.collect(), is_complete: !self.is_incomplete() }
    }

    /// Why it is unknown what the edge serves: an entry for each unresolved name and each address without a leaf.
    pub(crate) fn unverified(&self) -> Vec<String> {
        let describe = |(address, observation): (&SocketAddr, &Observation)| match observation {
            Observation::Failed(error) => Some(format!("{address} {}", error.reason)),
            Observation::Unchecked => Some(format!("{address} was not checked in time")),
            _ => None,
        };
        self.unresolved.iter().cloned().chain(self.relevant().filter_map(describe)).collect()
    }

    /// Warnings about an edge that serves the expected leaf.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let other_chain = |(address, observation): (&SocketAddr, &Observation)| {
            matches!(observation, Observation::Expected { chain: ServedChain::Other | ServedChain::Broken })
                .then(|| format!("{address} serves the leaf with other intermediates than those uploaded"))
        };
        let ignored = self.addresses.len() - self.relevant().count();
        let no_route = (ignored > 0).then(|| {
            format!("this host has no route to {} of the edge", text::count(ignored, "other address"))
        });
        self.addresses.iter().filter_map(other_chain).chain(no_route).collect()
    }

    /// The addresses that count. Unless the view is strict, those that this host has no route to are left out if there
    /// are others: a host without IPv6 has no route to half of the edge.
    fn relevant(&self) -> impl Iterator<Item = (&SocketAddr, &Observation)> {
        let has_route = |observation: &Observation| !observation.failed_with(Cause::NoRoute);
        let any = !self.is_strict && self.addresses.values().any(has_route);
        self.addresses.iter().filter(move |(_, observation)| !any || has_route(observation))
    }
}

#[cfg(test)]
mod tests;
