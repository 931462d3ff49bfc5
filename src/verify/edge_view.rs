//! What has been seen of a site's edge so far, address by address, and what that amounts to.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use time::OffsetDateTime;

use super::handshake::{Cause, HandshakeError};
use crate::cert::Certificate;
use crate::text;

/// What one address showed when it was last looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Observation {
    /// It has not been looked at.
    Untried,
    /// The new leaf.
    New { same_chain: bool },
    /// Another leaf, in words, when it expires if it can be read, and to whom it is shown if not to everyone.
    Other { leaf: String, not_after: Option<OffsetDateTime>, clients: Option<&'static str> },
    /// No certificate.
    Nothing(HandshakeError),
}

/// What the edge of one site shows.
#[derive(Debug)]
pub(crate) struct EdgeView {
    addresses: BTreeMap<SocketAddr, Observation>,
    /// Why addresses are not known.
    blind: Vec<String>,
    /// Whether every address counts, even one that this machine has no route to.
    strict: bool,
}

impl Observation {
    pub(super) fn other(chain: &[Vec<u8>], clients: Option<&'static str>) -> Self {
        let leaf = chain.first().and_then(|der| Certificate::from_der(der).ok());
        let not_after = leaf.as_ref().map(|leaf| leaf.not_after);
        let leaf = leaf.map_or_else(
            || "something that is no certificate".into(),
            |leaf| {
                format!(
                    "the certificate of {} that expires at {}",
                    leaf.issuer.short,
                    text::rfc3339(leaf.not_after)
                )
            },
        );
        Self::Other { leaf, not_after, clients }
    }
}

impl EdgeView {
    /// Nothing has been seen yet.
    pub(crate) fn new(strict: bool) -> Self {
        Self { addresses: BTreeMap::new(), blind: Vec::new(), strict }
    }

    /// Whether there may be addresses that are not known.
    pub(super) fn is_blind(&self) -> bool {
        self.addresses.is_empty() || !self.blind.is_empty()
    }

    pub(super) fn meet(&mut self, addresses: Vec<SocketAddr>) {
        for address in addresses {
            self.addresses.entry(address).or_insert(Observation::Untried);
        }
    }

    pub(super) fn blind(&mut self, reasons: Vec<String>) {
        self.blind = reasons;
    }

    /// A leaf that was seen is not forgotten when a later look sees nothing.
    pub(super) fn see(&mut self, address: SocketAddr, sight: Observation) {
        let before = self.addresses.entry(address).or_insert(Observation::Untried);
        match (&*before, &sight) {
            (Observation::Other { .. }, Observation::Nothing(_)) => {}
            (_, Observation::Nothing(problem)) if problem.cause == Cause::TooLittleTime => {}
            _ => *before = sight,
        }
    }

    /// Addresses that have not shown the new leaf.
    pub(super) fn pending(&self) -> Vec<SocketAddr> {
        let pending = self.addresses.iter().filter(|(_, sight)| !matches!(sight, Observation::New { .. }));
        pending.map(|(address, _)| *address).collect()
    }

    /// Whether every address showed the new leaf.
    pub(crate) fn is_served(&self) -> bool {
        !self.is_blind() && self.judged().all(|(_, sight)| matches!(sight, Observation::New { .. }))
    }

    /// Whether a connection to one of the addresses broke, which says nothing about what it shows.
    pub(crate) fn is_broken(&self) -> bool {
        let broken = |sight: &Observation| matches!(sight, Observation::Nothing(problem) if problem.cause == Cause::Broken);
        self.addresses.values().any(broken)
    }

    /// How many addresses showed the new leaf, and of how many.
    pub(crate) fn score(&self) -> (usize, usize) {
        let new = |(_, sight): &(_, &Observation)| matches!(sight, Observation::New { .. });
        (self.judged().filter(new).count(), self.judged().count())
    }

    /// The addresses that still show another leaf, in words.
    pub(crate) fn stale(&self) -> Vec<String> {
        let stale = |(address, sight): (&SocketAddr, &Observation)| match sight {
            Observation::Other { leaf, clients: None, .. } => Some(format!("{address} still shows {leaf}")),
            Observation::Other { leaf, clients: Some(clients), .. } => {
                Some(format!("{address} still shows {clients} {leaf}"))
            }
            _ => None,
        };
        self.addresses.iter().filter_map(stale).collect()
    }

    /// When the first of the other leaves expires that addresses still show.
    pub(crate) fn stale_until(&self) -> Option<OffsetDateTime> {
        let until = |sight: &Observation| match sight {
            Observation::Other { not_after, .. } => *not_after,
            _ => None,
        };
        self.addresses.values().filter_map(until).min()
    }

    /// Why there is no proof, where no other leaf was seen.
    pub(crate) fn unseen(&self) -> Vec<String> {
        let unseen = |(address, sight): (&SocketAddr, &Observation)| match sight {
            Observation::Nothing(problem) => Some(format!("{address} {}", problem.reason)),
            Observation::Untried => Some(format!("{address} was not asked in time")),
            _ => None,
        };
        self.blind.iter().cloned().chain(self.judged().filter_map(unseen)).collect()
    }

    /// What is strange about an edge that serves the new leaf.
    pub(crate) fn notes(&self) -> Vec<String> {
        let other_chain = |(address, sight): (&SocketAddr, &Observation)| {
            matches!(sight, Observation::New { same_chain: false })
                .then(|| format!("{address} shows other certificates behind the leaf than were uploaded"))
        };
        let left_out = self.addresses.len() - self.judged().count();
        let no_route = (left_out > 0).then(|| {
            format!("this machine has no route to {} of the edge", text::count(left_out, "other address"))
        });
        self.addresses.iter().filter_map(other_chain).chain(no_route).collect()
    }

    /// The addresses that count. One that this machine has no route to, as a machine without IPv6 has none to half of
    /// the edge, says nothing about the edge, unless there is no other.
    fn judged(&self) -> impl Iterator<Item = (&SocketAddr, &Observation)> {
        let routed = |sight: &Observation| !matches!(sight, Observation::Nothing(problem) if problem.cause == Cause::NoRoute);
        let any = !self.strict && self.addresses.values().any(routed);
        self.addresses.iter().filter(move |(_, sight)| !any || routed(sight))
    }
}
