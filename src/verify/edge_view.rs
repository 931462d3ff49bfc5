//! The observations of a site's edge so far, address by address, and the conclusions drawn from them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use time::OffsetDateTime;

use super::handshake::{Cause, HandshakeError};
use crate::cert::Certificate;
use crate::text;

/// The result of the latest handshakes with an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Observation {
    /// No handshake was made yet.
    Unchecked,
    /// It serves the expected leaf.
    Expected { same_chain: bool },
    /// It serves another leaf.
    Other {
        /// For messages.
        leaf: String,
        /// `None` if the leaf cannot be parsed.
        not_after: Option<OffsetDateTime>,
        /// The clients that get it, if not all do.
        clients: Option<&'static str>,
    },
    /// It serves no leaf.
    Failed(HandshakeError),
}

impl Observation {
    pub(super) fn other(chain: &[Vec<u8>], clients: Option<&'static str>) -> Self {
        let Some(leaf) = chain.first().and_then(|der| Certificate::from_der(der).ok()) else {
            return Self::Other {
                leaf: "a certificate that cannot be read".into(),
                not_after: None,
                clients,
            };
        };
        let (issuer, expiry) = (&leaf.issuer.short, text::rfc3339(leaf.not_after));
        let shown = format!("the certificate of {issuer} that expires at {expiry}");
        Self::Other { leaf: shown, not_after: Some(leaf.not_after), clients }
    }

    fn is_expected(&self) -> bool {
        matches!(self, Self::Expected { .. })
    }

    fn failed_with(&self, cause: Cause) -> bool {
        matches!(self, Self::Failed(error) if error.cause == cause)
    }
}

/// What the edge of one site serves.
#[derive(Debug)]
pub(crate) struct EdgeView {
    addresses: BTreeMap<SocketAddr, Observation>,
    /// Why there may be further addresses.
    unresolved: Vec<String>,
    /// Whether addresses that this host has no route to count.
    is_strict: bool,
}

impl EdgeView {
    /// Creates a view without observations. If it is strict, addresses that this host has no route to count.
    pub(crate) fn new(is_strict: bool) -> Self {
        Self { addresses: BTreeMap::new(), unresolved: Vec::new(), is_strict }
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

    pub(super) fn set_unresolved(&mut self, reasons: Vec<String>) {
        self.unresolved = reasons;
    }

    /// Records an observation. A failure does not replace another leaf that was observed before.
    pub(super) fn record(&mut self, address: SocketAddr, observation: Observation) {
        let known = self.addresses.entry(address).or_insert(Observation::Unchecked);
        let hides_other_leaf =
            matches!(observation, Observation::Failed(_)) && matches!(known, Observation::Other { .. });
        if !hides_other_leaf && !observation.failed_with(Cause::TooLittleTime) {
            *known = observation;
        }
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

    /// Whether a connection broke during its handshake, which says nothing about what the address serves.
    pub(crate) fn has_broken_connection(&self) -> bool {
        self.addresses.values().any(|observation| observation.failed_with(Cause::Broken))
    }

    /// How many addresses served the expected leaf, and how many there are.
    pub(crate) fn served_of(&self) -> (usize, usize) {
        let served = self.relevant().filter(|(_, observation)| observation.is_expected());
        (served.count(), self.relevant().count())
    }

    /// Describes each address that still serves another leaf.
    pub(crate) fn stale(&self) -> Vec<String> {
        let describe = |(address, observation): (&SocketAddr, &Observation)| match observation {
            Observation::Other { leaf, clients: None, .. } => Some(format!("{address} still serves {leaf}")),
            Observation::Other { leaf, clients: Some(clients), .. } => {
                Some(format!("{address} still serves {clients} {leaf}"))
            }
            _ => None,
        };
        self.addresses.iter().filter_map(describe).collect()
    }

    /// Earliest expiry of the other leaves that are still served.
    pub(crate) fn stale_until(&self) -> Option<OffsetDateTime> {
        let not_after = |observation: &Observation| match observation {
            Observation::Other { not_after, .. } => *not_after,
            _ => None,
        };
        self.addresses.values().filter_map(not_after).min()
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
            matches!(observation, Observation::Expected { same_chain: false })
                .then(|| format!("{address} serves the leaf with other intermediates than were uploaded"))
        };
        let ignored = self.addresses.len() - self.relevant().count();
        let no_route = (ignored > 0).then(|| {
            format!("this host has no route to {} of the edge", text::count(ignored, "other address"))
        });
        self.addresses.iter().filter_map(other_chain).chain(no_route).collect()
    }

    /// The addresses that count. Unless the view is strict, those that this host has no route to are left out if there are
    /// others: a host without IPv6 has no route to half of the edge.
    fn relevant(&self) -> impl Iterator<Item = (&SocketAddr, &Observation)> {
        let has_route = |observation: &Observation| !observation.failed_with(Cause::NoRoute);
        let any = !self.is_strict && self.addresses.values().any(has_route);
        self.addresses.iter().filter(move |(_, observation)| !any || has_route(observation))
    }
}
