//! Verifies by TLS handshakes which leaf each address of an edge serves to the visitors of a site.
//!
//! What the service reports about its edge is no proof; a handshake is. No chain is validated here: the question is
//! only whether it is the expected leaf.

mod edge_view;
mod handshake;
mod resolve;
mod schemes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use rustls::pki_types::ServerName;
use tokio::time::sleep;

pub(crate) use self::edge_view::{EdgeView, OtherLeaf};
use self::edge_view::{Observation, ServedChain};
pub(crate) use self::handshake::Handshakes;
use self::handshake::{HandshakeError, HandshakeResult};
use self::resolve::{resolve_address, resolve_cname, server_name};
use self::schemes::{ClientKinds, NO_RSA_CLIENTS};
use crate::bundle::Chain;
use crate::cert::{self, Certificate, KeyType};
use crate::clock::Deadline;
use crate::names::Domain;

/// Time limit of one handshake, and of one DNS lookup.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of attempts if connections break.
const MAX_ATTEMPTS: u32 = 5;
/// Pause after the first attempt; later pauses double.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The edge and the leaf that it is expected to serve.
pub(crate) struct Edge<'a> {
    expected: ExpectedLeaf<'a>,
    /// Used instead of the addresses of each site; `HOST:PORT`.
    addresses: &'a [String],
    handshakes: Arc<Handshakes>,
}

enum ExpectedLeaf<'a> {
    /// The leaf that was uploaded, with its chain.
    Chain(&'a Chain),
    /// A leaf known only by its fingerprint; its key type is `None` if its file is gone.
    Fingerprint { fingerprint: &'a str, key_type: Option<KeyType> },
}

impl<'a> Edge<'a> {
    /// Expects the leaf of a chain. `addresses` are used instead of those of each site, unless there are none.
    pub(crate) fn new(chain: &'a Chain, addresses: &'a [String]) -> Result<Self, rustls::Error> {
        Ok(Self { expected: ExpectedLeaf::Chain(chain), addresses, handshakes: Arc::new(Handshakes::new()?) })
    }

    /// Expects a leaf known only by its fingerprint and possibly its key type. Edges that share `handshakes` share its limit
    /// on concurrency.
    pub(crate) fn for_leaf(
        fingerprint: &'a str,
        key_type: Option<KeyType>,
        addresses: &'a [String],
        handshakes: &Arc<Handshakes>,
    ) -> Self {
        let expected = ExpectedLeaf::Fingerprint { fingerprint, key_type };
        Self { expected, addresses, handshakes: Arc::clone(handshakes) }
    }

    /// Makes handshakes with every address of a site's edge that has not served the expected leaf yet, and records in
    /// `view` what they serve.
    pub(crate) async fn observe(
        &self,
        domain: &Domain,
        cname: Option<&str>,
        view: &mut EdgeView,
        deadline: Deadline,
    ) {
        let Some(name) = server_name(domain) else {
            return view.set_unresolved(vec![
                "its domain is an IP address, which cannot be a TLS server name".into(),
            ]);
        };
        if view.is_incomplete() {
            let (addresses, reasons) = self.resolve(cname, deadline.left().min(ATTEMPT_TIMEOUT)).await;
            view.add_addresses(addresses);
            view.set_unresolved(reasons);
        }
        let pending = view.pending();
        let observations = pending.iter().map(|address| self.observe_address(*address, &name, deadline));
        for (address, results) in pending.iter().zip(join_all(observations).await) {
            for leaf in results.iter().filter_map(|result| self.other_leaf(result, domain)) {
                view.note_other(leaf);
            }
            view.record(*address, self.combine(results, domain));
        }
    }

    /// Makes handshakes with an address as both kinds of clients, because it may hold a certificate for each.
    async fn observe_address(
        &self,
        address: SocketAddr,
        name: &ServerName<'static>,
        deadline: Deadline,
    ) -> [HandshakeResult; 2] {
        let ClientKinds { own, other, .. } = self.expected.client_kinds();
        let handshake = |schemes| self.handshakes.handshake(address, name, schemes, deadline);
        join(handshake(own), handshake(other)).await.into()
    }

    fn combine(&self, [mut own, mut other]: [HandshakeResult; 2], site: &Domain) -> Observation {
        let mut other_name = self.expected.client_kinds().other_name;
        // If the key type is unknown, the kind of client that gets the leaf reveals it.
        if !self.expected.has_key_type() && self.is_served(&other) && !self.is_served(&own) {
            std::mem::swap(&mut own, &mut other);
            other_name = NO_RSA_CLIENTS;
        }
        if !own.chain.is_empty() && !self.is_served(&own) {
            return Observation::Other { leaf: self.other_leaf(&own, site), clients: None };
        }
        if !other.chain.is_empty() && !self.is_served(&other) {
            return Observation::Other { leaf: self.other_leaf(&other, site), clients: Some(other_name) };
        }
        if own.chain.is_empty() || own.error.is_some() {
            return Observation::Failed(own.error.unwrap_or_else(HandshakeError::no_certificate));
        }
        // An edge without a certificate for the other kind rejects its handshake. Any other failure says nothing.
        if let Some(error) = other.error.filter(|error| !error.is_from_edge()) {
            return Observation::Failed(error);
        }
        Observation::Expected { chain: self.expected.compare_chain(&own.chain) }
    }

    /// Calls `observe`, and retries if a connection broke: an edge that refuses one kind of client may close the connection
    /// before its alert arrives.
    pub(crate) async fn observe_with_retries(
        &self,
        domain: &Domain,
        cname: Option<&str>,
        view: &mut EdgeView,
        deadline: Deadline,
    ) {
        let mut pause = FIRST_PAUSE;
        for _ in 0..MAX_ATTEMPTS {
            self.observe(domain, cname, view, deadline).await;
            if !view.has_broken_connection() || deadline.left() <= pause {
                break;
            }
            sleep(pause).await;
            pause *= 2;
        }
    }

    /// Returns the leaf of a handshake if it is not the expected one.
    fn other_leaf(&self, result: &HandshakeResult, site: &Domain) -> Option<OtherLeaf> {
        let der = result.chain.first().filter(|der| !self.expected.is_leaf(der))?;
        Some(OtherLeaf::new(&Certificate::from_der(der).ok()?, site))
    }

    fn is_served(&self, result: &HandshakeResult) -> bool {
        result.chain.first().is_some_and(|leaf| self.expected.is_leaf(leaf))
    }

    /// Resolves the addresses of a site's edge; also returns why there may be further ones.
    async fn resolve(&self, cname: Option<&str>, limit: Duration) -> (Vec<SocketAddr>, Vec<String>) {
        let resolved = match self.addresses {
            [] => vec![resolve_cname(cname, limit).await],
            addresses => join_all(addresses.iter().map(|address| resolve_address(address, limit))).await,
        };
        let (mut addresses, mut reasons) = (Vec::new(), Vec::new());
        for result in resolved {
            match result {
                Ok(found) => addresses.extend(found),
                Err(reason) => reasons.push(reason),
            }
        }
        (addresses, reasons)
    }
}

impl ExpectedLeaf<'_> {
    fn is_leaf(&self, der: &[u8]) -> bool {
        match self {
            Self::Chain(chain) => chain.leaf.der() == der,
            Self::Fingerprint { fingerprint, .. } => cert::fingerprint(der) == **fingerprint,
        }
    }

    /// Compares the served chain with the one to deploy. A root at its end does not matter.
    fn compare_chain(&self, served: &[Vec<u8>]) -> ServedChain {
        let Self::Chain(chain) = self else { return ServedChain::Same };
        let uploaded = std::iter::once(&chain.leaf).chain(&chain.issuers);
        let uploaded: Vec<&[u8]> = uploaded.map(Certificate::der).collect();
        let served: Vec<&[u8]> = served.iter().map(Vec::as_slice).collect();
        match (without_root(&uploaded), without_root(&served)) {
            (uploaded, served) if uploaded == served => ServedChain::Same,
            (_, [_, issuer, ..]) if self.may_be_issuer(issuer) => ServedChain::Other,
            _ => ServedChain::Broken,
        }
    }

    fn may_be_issuer(&self, der: &[u8]) -> bool {
        let Self::Chain(chain) = self else { return true };
        Certificate::from_der(der).is_ok_and(|issuer| chain.leaf.may_be_issued_by(&issuer))
    }

    fn has_key_type(&self) -> bool {
        !matches!(self, Self::Fingerprint { key_type: None, .. })
    }

    fn client_kinds(&self) -> ClientKinds {
        match self {
            Self::Chain(chain) => ClientKinds::new(Some(&chain.leaf.public_key.key_type())),
            Self::Fingerprint { key_type, .. } => ClientKinds::new(key_type.as_ref()),
        }
    }
}

fn without_root<'c>(chain: &'c [&'c [u8]]) -> &'c [&'c [u8]] {
    let is_root =
        |der: &[u8]| Certificate::from_der(der).is_ok_and(|certificate| certificate.is_self_issued());
    match chain {
        [rest @ .., last] if !rest.is_empty() && is_root(last) => rest,
        chain => chain,
    }
}

#[cfg(test)]
pub(crate) mod fixture;
