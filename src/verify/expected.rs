//! The leaf that an edge is expected to serve, and how what it serves differs.

use super::handshake::HandshakeResult;
use super::observation::{OtherLeaf, ServedChain};
use super::schemes::ClientKinds;
use crate::bundle::Chain;
use crate::cert::{self, Certificate, KeyType};
use crate::names::Domain;

/// The leaf that an edge is expected to serve.
pub(super) struct ExpectedLeaf<'a> {
    pub(super) fingerprint: String,
    /// `None`: its file is gone.
    pub(super) key_type: Option<KeyType>,
    /// The chain to deploy; `None`: unknown.
    pub(super) chain: Option<&'a Chain>,
}

impl ExpectedLeaf<'_> {
    /// Whether a handshake showed the leaf.
    pub(super) fn is_shown(&self, result: &HandshakeResult) -> bool {
        result.chain.first().is_some_and(|leaf| self.is_leaf(leaf))
    }

    /// The leaf of a handshake if it is another one.
    pub(super) fn other_leaf(&self, result: &HandshakeResult, site: &Domain) -> Option<OtherLeaf> {
        let der = result.chain.first().filter(|der| !self.is_leaf(der))?;
        Some(OtherLeaf::new(&Certificate::from_der(der).ok()?, site))
    }

    fn is_leaf(&self, der: &[u8]) -> bool {
        cert::fingerprint(der) == self.fingerprint
    }

    /// Compares the served chain with the one to deploy. A root at its end does not matter.
    pub(super) fn compare_chain(&self, served: &[Vec<u8>]) -> ServedChain {
        let Some(Chain { leaf, issuers, .. }) = self.chain else { return ServedChain::Same };
        let uploaded: Vec<&[u8]> = std::iter::once(leaf).chain(issuers).map(Certificate::der).collect();
        let served: Vec<&[u8]> = served.iter().map(Vec::as_slice).collect();
        let may_be_issuer =
            |der| Certificate::from_der(der).is_ok_and(|issuer| leaf.may_be_issued_by(&issuer));
        match (without_root(&uploaded), without_root(&served)) {
            (uploaded, served) if uploaded == served => ServedChain::Same,
            (_, [_, issuer, ..]) if may_be_issuer(issuer) => ServedChain::Other,
            _ => ServedChain::Broken,
        }
    }

    /// Whether a refusal says something about the name. For some key types rustls lacks a signature scheme or a curve, and
    /// an edge that serves them may refuse every handshake.
    pub(super) fn is_refusal_conclusive(&self) -> bool {
        let has_pss_key = self.chain.is_some_and(|chain| chain.leaf.has_pss_key);
        !has_pss_key && self.key_type != Some(KeyType::P521)
    }

    pub(super) fn client_kinds(&self) -> ClientKinds {
        ClientKinds::new(self.key_type.as_ref())
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
