//! One round of handshakes with an address: several at once, and their combined result.
//!
//! A single handshake is not proof, because an address may stand for several nodes.

use std::iter::{once, repeat_n};
use std::mem::swap;
use std::net::SocketAddr;

use futures_util::future::{join, join_all};
use rustls::pki_types::ServerName;

use super::edge_view::{Observation, OtherLeaf, ServedChain};
use super::handshake::{HandshakeResult, Handshakes};
use super::handshake_error::{Cause, HandshakeError};
use super::schemes::{ANY, ClientKinds, NO_RSA_CLIENTS};
use crate::bundle::Chain;
use crate::cert::{self, Certificate, KeyType};
use crate::clock::Deadline;
use crate::names::Domain;

/// Handshakes per round that must all show the leaf, each on a connection of its own.
const HANDSHAKES: usize = 3;

/// Description of the clients that get another leaf if only some of the handshakes showed it.
const SOME_CONNECTIONS: &str = "some connections";

/// The leaf that an edge is expected to serve.
pub(super) struct ExpectedLeaf<'a> {
    pub(super) fingerprint: String,
    /// `None`: unknown.
    pub(super) key_type: Option<KeyType>,
    /// The chain to deploy; `None`: unknown.
    pub(super) chain: Option<&'a Chain>,
}

/// What one handshake showed.
enum Shown {
    /// The expected leaf. With an error, the peer did not prove that it holds the key.
    Expected(ServedChain, Option<HandshakeError>),
    /// Another leaf; `None` if it cannot be parsed.
    Other(Option<OtherLeaf>),
    Nothing(HandshakeError),
}

/// What a round showed, in which both kinds of clients connect, because an address may hold a certificate for each.
pub(super) struct HandshakeRound {
    own: Vec<Shown>,
    other: Vec<Shown>,
}

impl ExpectedLeaf<'_> {
    /// What a handshake for a site showed.
    fn shown_by(&self, HandshakeResult { chain, error }: HandshakeResult, site: &Domain) -> Shown {
        let Some(leaf) = chain.first() else {
            return Shown::Nothing(error.unwrap_or_else(HandshakeError::no_certificate));
        };
        if cert::fingerprint(leaf) != self.fingerprint {
            return Shown::Other(Certificate::from_der(leaf).map(|leaf| OtherLeaf::new(&leaf, site)));
        }
        // An edge that sends its certificate accepts the name, even if it then requires a client certificate.
        Shown::Expected(self.compare_chain(&chain), error.map(HandshakeError::without_refusal))
    }

    /// Compares the served chain with the one to deploy. A root at its end does not matter.
    fn compare_chain(&self, served: &[Vec<u8>]) -> ServedChain {
        let Some(Chain { leaf, issuers, .. }) = self.chain else { return ServedChain::Same };
        let uploaded: Vec<&[u8]> = once(leaf).chain(issuers).map(|certificate| &*certificate.der).collect();
        let served: Vec<&[u8]> = served.iter().map(Vec::as_slice).collect();
        let may_issue = |der| Certificate::from_der(der).is_some_and(|issuer| leaf.may_be_issued_by(&issuer));
        match (without_root(&uploaded), without_root(&served)) {
            (uploaded, served) if uploaded == served => ServedChain::Same,
            (_, [_, issuer, ..]) if may_issue(issuer) => ServedChain::Other,
            _ => ServedChain::Broken,
        }
    }

    /// Whether a refusal says something about the name. For some key types rustls lacks a signature scheme or a curve, and
    /// an edge that serves them may refuse every handshake.
    fn is_refusal_conclusive(&self) -> bool {
        let has_pss_key = self.chain.is_some_and(|chain| chain.leaf.has_pss_key);
        !has_pss_key && self.key_type != Some(KeyType::P521)
    }
}

fn without_root<'c>(chain: &'c [&'c [u8]]) -> &'c [&'c [u8]] {
    let is_root = |der: &[u8]| Certificate::from_der(der).is_some_and(|found| found.is_self_issued());
    match chain {
        [rest @ .., last] if !rest.is_empty() && is_root(last) => rest,
        chain => chain,
    }
}

impl Shown {
    fn expected(&self) -> Option<ServedChain> {
        if let Self::Expected(chain, _) = self { Some(*chain) } else { None }
    }

    fn is_refusal(&self) -> bool {
        matches!(self, Self::Nothing(error) if error.is_refusal())
    }

    fn other(&self) -> Option<&Option<OtherLeaf>> {
        if let Self::Other(leaf) = self { Some(leaf) } else { None }
    }

    /// Why no leaf was proven.
    fn failure(self) -> Option<HandshakeError> {
        match self {
            Self::Expected(_, error) => error,
            Self::Other(_) => None,
            Self::Nothing(error) => Some(error),
        }
    }
}

impl HandshakeRound {
    /// Makes the handshakes.
    pub(super) async fn run(
        handshakes: &Handshakes,
        expected: &ExpectedLeaf<'_>,
        site: &Domain,
        (address, name): (SocketAddr, &ServerName<'static>),
        deadline: Deadline,
    ) -> Self {
        let ClientKinds { own, other, .. } = ClientKinds::new(expected.key_type.as_ref());
        let handshake = async |schemes| {
            let result = handshakes.handshake(address, name, schemes, deadline).await;
            expected.shown_by(result, site)
        };
        // Only one kind gets the leaf. If the key type is unknown, so is the kind.
        let other_count = if expected.key_type.is_some() { 1 } else { HANDSHAKES };
        let own = join_all(repeat_n(own, HANDSHAKES).map(handshake));
        let other = join_all(repeat_n(other, other_count).map(handshake));
        let (mut own, other) = join(own, other).await;
        // An edge may refuse both kinds and accept clients that do not choose.
        if own.iter().chain(&other).all(Shown::is_refusal) {
            own = join_all(repeat_n(ANY, HANDSHAKES).map(handshake)).await;
        }
        Self { own, other }
    }

    /// The leaves that were shown in place of the expected one.
    pub(super) fn other_leaves(&self) -> impl Iterator<Item = &OtherLeaf> {
        self.own.iter().chain(&self.other).filter_map(Shown::other).flatten()
    }

    /// Whether clients of one kind got the expected leaf in some connections only.
    pub(super) fn is_mixed(&self) -> bool {
        let is_not = |shown: &Shown| shown.is_refusal() || shown.other().is_some();
        let kinds = [&self.own, &self.other];
        kinds
            .iter()
            .any(|shown| shown.iter().any(|shown| shown.expected().is_some()) && shown.iter().any(is_not))
    }

    /// The combined result.
    pub(super) fn observation(self, expected: &ExpectedLeaf<'_>) -> Observation {
        let Self { mut own, mut other } = self;
        let is_shown_to = |shown: &[Shown]| shown.iter().any(|shown| shown.expected().is_some());
        let mut other_name = ClientKinds::new(expected.key_type.as_ref()).other_name;
        // If the key type is unknown, the kind of client that gets the leaf reveals it.
        if expected.key_type.is_none() && is_shown_to(&other) && !is_shown_to(&own) {
            swap(&mut own, &mut other);
            other_name = NO_RSA_CLIENTS;
        }
        let some = is_shown_to(&own).then_some(SOME_CONNECTIONS);
        for (shown, clients) in [(&own, some), (&other, Some(other_name))] {
            if shown.iter().any(|shown| shown.other().is_some()) {
                let leaves = shown.iter().filter_map(Shown::other).flatten();
                let leaf = leaves.min_by_key(|other| other.leaf.not_after).cloned();
                return Observation::Other { leaf, clients };
            }
        }
        let chain = own.iter().filter_map(Shown::expected).max();
        let failure = own.into_iter().filter_map(Shown::failure).max_by_key(|error| error.cause);
        // An edge without a certificate for the other kind rejects its handshakes. Any other failure says nothing.
        let is_rejected = |error: &HandshakeError| matches!(error.cause, Cause::Edge | Cause::Refused);
        let others = other.into_iter().filter_map(Shown::failure).filter(|error| !is_rejected(error));
        match (chain, failure, others.max_by_key(|error| error.cause)) {
            (_, Some(error), _) if expected.is_refusal_conclusive() => Observation::Failed(error),
            (_, Some(error), _) => Observation::Failed(error.without_refusal()),
            (_, None, Some(error)) => Observation::Failed(error),
            (Some(chain), None, None) => Observation::Expected { chain },
            (None, None, None) => Observation::Unchecked,
        }
    }
}

#[cfg(test)]
mod tests;
