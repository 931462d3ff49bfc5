//! One round of handshakes with an address: several at once, and their combined result.
//!
//! A single handshake is not proof, because an address may stand for several nodes.

use std::iter::repeat_n;
use std::mem::swap;
use std::net::SocketAddr;

use futures_util::future::{join, join_all};
use rustls::pki_types::ServerName;

use super::expected::ExpectedLeaf;
use super::handshake::{HandshakeResult, Handshakes};
use super::handshake_error::HandshakeError;
use super::observation::{Observation, OtherLeaf};
use super::schemes::{ANY, ClientKinds, NO_RSA_CLIENTS};
use crate::clock::Deadline;
use crate::names::Domain;

/// Handshakes per round that must all show the leaf, each on a connection of its own.
const HANDSHAKES: usize = 3;

/// Description of the clients that get another leaf if only some of the handshakes showed it.
const SOME_CONNECTIONS: &str = "some connections";

/// The results of a round, in which both kinds of clients connect, because an address may hold a certificate for each.
pub(super) struct HandshakeRound {
    own: Vec<HandshakeResult>,
    other: Vec<HandshakeResult>,
}

impl HandshakeRound {
    /// Makes the handshakes.
    pub(super) async fn run(
        handshakes: &Handshakes,
        expected: &ExpectedLeaf<'_>,
        address: SocketAddr,
        name: &ServerName<'static>,
        deadline: Deadline,
    ) -> Self {
        let ClientKinds { own, other, .. } = expected.client_kinds();
        let handshake = |schemes| handshakes.handshake(address, name, schemes, deadline);
        // Only one kind gets the leaf. If the key type is unknown, so is the kind.
        let other_count = if expected.key_type.is_some() { 1 } else { HANDSHAKES };
        let own = join_all(repeat_n(own, HANDSHAKES).map(handshake));
        let other = join_all(repeat_n(other, other_count).map(handshake));
        let (mut own, other) = join(own, other).await;
        // An edge may refuse both kinds and accept clients that do not choose.
        if own.iter().chain(&other).all(HandshakeResult::is_refused) {
            own = join_all(repeat_n(ANY, HANDSHAKES).map(handshake)).await;
        }
        Self { own, other }
    }

    /// The leaves that were shown in place of the expected one.
    pub(super) fn other_leaves(
        &self,
        expected: &ExpectedLeaf<'_>,
        site: &Domain,
    ) -> impl Iterator<Item = OtherLeaf> {
        self.own.iter().chain(&self.other).filter_map(|result| expected.other_leaf(result, site))
    }

    /// Whether clients of one kind got the expected leaf in some connections only.
    pub(super) fn is_mixed(&self, expected: &ExpectedLeaf<'_>) -> bool {
        let is_shown = |result: &HandshakeResult| expected.is_shown(result);
        let is_not =
            |result: &HandshakeResult| result.is_refused() || !result.chain.is_empty() && !is_shown(result);
        let kinds = [&self.own, &self.other];
        kinds.iter().any(|results| results.iter().any(is_shown) && results.iter().any(is_not))
    }

    /// The combined result.
    pub(super) fn observation(self, expected: &ExpectedLeaf<'_>, site: &Domain) -> Observation {
        let Self { mut own, mut other } = self;
        let is_shown_to =
            |results: &[HandshakeResult]| results.iter().any(|result| expected.is_shown(result));
        let mut other_name = expected.client_kinds().other_name;
        // If the key type is unknown, the kind of client that gets the leaf reveals it.
        if expected.key_type.is_none() && is_shown_to(&other) && !is_shown_to(&own) {
            swap(&mut own, &mut other);
            other_name = NO_RSA_CLIENTS;
        }
        let some = is_shown_to(&own).then_some(SOME_CONNECTIONS);
        if let Some(observation) = other_leaf(&own, some, expected, site) {
            return observation;
        }
        if let Some(observation) = other_leaf(&other, Some(other_name), expected, site) {
            return observation;
        }
        let chain = own.iter().map(|result| expected.compare_chain(&result.chain)).max();
        let other = failures(other).filter(|error| !error.is_from_edge());
        // An edge without a certificate for the other kind rejects its handshakes. Any other failure says nothing.
        match (chain, failures(own).max_by_key(|error| error.cause), other.max_by_key(|error| error.cause)) {
            (_, Some(error), _) if expected.is_refusal_conclusive() => Observation::Failed(error),
            (_, Some(error), _) => Observation::Failed(error.without_refusal()),
            (_, None, Some(error)) => Observation::Failed(error),
            (Some(chain), None, None) => Observation::Expected { chain },
            (None, None, None) => Observation::Unchecked,
        }
    }
}

/// Returns the observation of another leaf if one of the handshakes showed it; of several leaves, the one that expires
/// first. `clients` are those that get it, if not all do.
fn other_leaf(
    results: &[HandshakeResult],
    clients: Option<&'static str>,
    expected: &ExpectedLeaf<'_>,
    site: &Domain,
) -> Option<Observation> {
    let is_other = |result: &&HandshakeResult| !result.chain.is_empty() && !expected.is_shown(result);
    let others: Vec<&HandshakeResult> = results.iter().filter(is_other).collect();
    let leaves = others.iter().filter_map(|result| expected.other_leaf(result, site));
    let leaf = leaves.min_by_key(|other| other.leaf.not_after);
    (!others.is_empty()).then_some(Observation::Other { leaf, clients })
}

fn failures(results: Vec<HandshakeResult>) -> impl Iterator<Item = HandshakeError> {
    results.into_iter().filter_map(HandshakeResult::failure)
}

#[cfg(test)]
mod tests;
