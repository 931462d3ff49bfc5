//! The leaf that an edge is expected to serve, and how what it serves differs.

use super::handshake::HandshakeResult;
use super::observation::{OtherLeaf, ServedChain};
use super::schemes::ClientKinds;
use crate::bundle::Chain;
use crate::cert::{self, Certificate, KeyType};
use crate::names::Domain;

/// The leaf that an edge is expected to serve.
pub(super) enum ExpectedLeaf<'a> {
    /// The leaf to deploy, with its chain.
    Chain(&'a Chain),
    /// A leaf known only by its fingerprint; its key type is `None` if its file is gone.
    Fingerprint { fingerprint: &'a str, key_type: Option<KeyType> },
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
        match self {
            Self::Chain(chain) => chain.leaf.der() == der,
            Self::Fingerprint { fingerprint, .. } => cert::fingerprint(der) == **fingerprint,
        }
    }

    /// Compares the served chain with the one to deploy. A root at its end does not matter.
    pub(super) fn compare_chain(&self, served: &[Vec<u8>]) -> ServedChain {
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

    /// Whether a refusal says something about the name. For some key types rustls lacks a signature scheme or a curve, and
    /// an edge that serves them may refuse every handshake.
    pub(super) fn is_refusal_conclusive(&self) -> bool {
        match self {
            Self::Chain(chain) => {
                !chain.leaf.has_pss_key && chain.leaf.public_key.key_type() != KeyType::P521
            }
            Self::Fingerprint { key_type, .. } => *key_type != Some(KeyType::P521),
        }
    }

    fn may_be_issuer(&self, der: &[u8]) -> bool {
        let Self::Chain(chain) = self else { return true };
        Certificate::from_der(der).is_ok_and(|issuer| chain.leaf.may_be_issued_by(&issuer))
    }

    pub(super) fn has_key_type(&self) -> bool {
        !matches!(self, Self::Fingerprint { key_type: None, .. })
    }

    pub(super) fn client_kinds(&self) -> ClientKinds {
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
