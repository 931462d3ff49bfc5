//! The proof: what the addresses of the edge show a visitor of a site, seen by TLS handshakes with each of them.
//!
//! What the service says about its edge proves nothing; a handshake does. No chain is verified here: the question is
//! whether it is this leaf, and the answer lies in its bytes.

mod edge_view;
mod handshake;

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::{join, join_all};
use rustls::pki_types::ServerName;
use time::OffsetDateTime;
use tokio::net::lookup_host;
use tokio::time::timeout;

pub(crate) use self::edge_view::EdgeView;
use self::edge_view::Observation;
use self::handshake::{HandshakeError, HandshakeResult, Handshakes};
use crate::api::Site;
use crate::bundle::Chain;
use crate::cert::{self, Certificate, KeyType};
use crate::clock::Deadline;
use crate::names::Domain;
use crate::text::sanitize;

/// A single handshake, or looking up a name, may take so long.
const ATTEMPT: Duration = Duration::from_secs(5);
/// So many addresses are asked before anything is changed.
const MAX_BEFOREHAND: usize = 4;
const HTTPS: u16 = 443;

/// The edge of one run, and what it is expected to show.
pub(crate) struct Edge<'a> {
    wanted: Wanted<'a>,
    /// Asked in place of the sites' own addresses; `HOST:PORT` each.
    instead: &'a [String],
    handshakes: Handshakes,
}

/// What an edge is expected to show.
enum Wanted<'a> {
    /// What was uploaded.
    Chain(&'a Chain),
    /// A leaf of which this is known; `None`: its file is gone.
    Leaf { fingerprint: &'a str, key_type: Option<KeyType> },
}

impl<'a> Edge<'a> {
    /// Nothing is asked yet.
    pub(crate) fn new(chain: &'a Chain, instead: &'a [String]) -> Result<Self, rustls::Error> {
        Ok(Self { wanted: Wanted::Chain(chain), instead, handshakes: Handshakes::new()? })
    }

    /// The same for a leaf of which no more is known than this.
    pub(crate) fn for_leaf(
        fingerprint: &'a str,
        key_type: Option<KeyType>,
        instead: &'a [String],
    ) -> Result<Self, rustls::Error> {
        let wanted = Wanted::Leaf { fingerprint, key_type };
        Ok(Self { wanted, instead, handshakes: Handshakes::new()? })
    }

    /// Looks again at every address of a site's edge that has not shown the leaf yet.
    pub(crate) async fn look(&self, site: &Site, view: &mut EdgeView, until: Deadline) {
        self.look_at(&site.domain, site.cname.as_deref(), view, until).await;
    }

    /// The same for a site of which domain and host name of the edge are known.
    pub(crate) async fn look_at(
        &self,
        domain: &Domain,
        cname: Option<&str>,
        view: &mut EdgeView,
        until: Deadline,
    ) {
        let Some(name) = server_name(domain) else {
            return view.blind(vec!["its domain is an address, and visitors ask an edge for names".into()]);
        };
        if view.is_blind() {
            let (addresses, unknown) = self.addresses(cname, until.left().min(ATTEMPT)).await;
            view.meet(addresses);
            view.blind(unknown);
        }
        let limit = until.left().min(ATTEMPT);
        let pending = view.pending();
        let sights = pending.iter().map(|address| self.sight(*address, &name, limit));
        for (address, sight) in pending.iter().zip(join_all(sights).await) {
            view.see(*address, sight);
        }
    }

    /// When the latest leaf was issued that a site's edge shows now to whomever, where it shows one for the site.
    pub(crate) async fn issued(&self, site: &Site, limit: Duration) -> Option<OffsetDateTime> {
        let name = server_name(&site.domain)?;
        let (addresses, _) = self.addresses(site.cname.as_deref(), limit).await;
        let (own, others) = self.wanted.schemes();
        let asked = addresses.iter().take(MAX_BEFOREHAND).flat_map(|address| {
            [own, others.schemes].map(|schemes| self.handshakes.handshake(*address, &name, schemes, limit))
        });
        let shown = join_all(asked).await.into_iter().filter_map(|shown| shown.chain.into_iter().next());
        let leaves = shown.filter_map(|leaf| Certificate::from_der(&leaf).ok());
        let for_the_site = leaves.filter(|leaf| site.domain.is_covered_by_any(leaf.san()));
        for_the_site.map(|leaf| leaf.not_before).max()
    }

    /// What one address shows to clients that take the leaf's type of key, and to those that take only others: it may
    /// hold a certificate for each.
    async fn sight(&self, address: SocketAddr, name: &ServerName<'static>, limit: Duration) -> Observation {
        let (own, Others { schemes, mut clients }) = self.wanted.schemes();
        let handshake = |schemes| self.handshakes.handshake(address, name, schemes, limit);
        let (mut own, mut others) = join(handshake(own), handshake(schemes)).await;
        let is_new = |shown: &HandshakeResult| shown.chain.first().is_some_and(|leaf| self.wanted.is(leaf));
        // Where the type of its key is not known, who shows it tells.
        if matches!(self.wanted, Wanted::Leaf { key_type: None, .. }) && is_new(&others) && !is_new(&own) {
            std::mem::swap(&mut own, &mut others);
            clients = "clients that do not take RSA";
        }
        let other = (!others.chain.is_empty() && !is_new(&others))
            .then(|| Observation::other(&others.chain, Some(clients)));
        if !own.chain.is_empty() && !is_new(&own) {
            return Observation::other(&own.chain, None);
        }
        if let Some(other) = other {
            return other;
        }
        if own.chain.is_empty() || own.problem.is_some() {
            return Observation::Nothing(own.problem.unwrap_or_else(HandshakeError::bare));
        }
        // Who holds no certificate of another type refuses that handshake; a connection that breaks says nothing.
        if let Some(problem) = others.problem.filter(|problem| !problem.is_refusal()) {
            return Observation::Nothing(problem);
        }
        Observation::New { same_chain: self.wanted.is_chain(&own.chain) }
    }

    /// IPv4 and IPv6 addresses of the edge of a site, and why others are not known.
    async fn addresses(&self, cname: Option<&str>, limit: Duration) -> (Vec<SocketAddr>, Vec<String>) {
        let found = match (self.instead, cname) {
            ([], None) => vec![Err("the service names no edge for it".to_owned())],
            ([], Some(cname)) => vec![match cname.parse::<Domain>() {
                Ok(host) => resolve(host.host(), HTTPS, limit).await,
                Err(_) => Err(format!("`{}` is no name of an edge", sanitize(cname))),
            }],
            (edges, _) => join_all(edges.iter().map(|edge| resolve_edge(edge, limit))).await,
        };
        let (known, unknown): (Vec<_>, Vec<_>) = found.into_iter().partition(Result::is_ok);
        (
            known.into_iter().flatten().flatten().collect(),
            unknown.into_iter().filter_map(Result::err).collect(),
        )
    }
}

impl Wanted<'_> {
    /// Whether this is the leaf.
    fn is(&self, der: &[u8]) -> bool {
        match self {
            Self::Chain(chain) => chain.leaf.der() == der,
            Self::Leaf { fingerprint, .. } => cert::fingerprint(der) == **fingerprint,
        }
    }

    /// Whether the certificates behind the leaf are those that were uploaded, where these are known; a root at the end
    /// does not count.
    fn is_chain(&self, shown: &[Vec<u8>]) -> bool {
        let Self::Chain(chain) = self else { return true };
        let without_root = |mut chain: Vec<Vec<u8>>| {
            let is_root = |der: &Vec<u8>| {
                Certificate::from_der(der).is_ok_and(|certificate| certificate.issuer == certificate.subject)
            };
            if chain.len() > 1 && chain.last().is_some_and(is_root) {
                chain.pop();
            }
            chain
        };
        let own = std::iter::once(&chain.leaf).chain(&chain.issuers);
        without_root(own.map(|certificate| certificate.der().to_vec()).collect())
            == without_root(shown.to_vec())
    }

    /// What clients offer that take the leaf's type of key alone, and those that take all but this type. Where the type
    /// is not known, the first are those that take no RSA.
    fn schemes(&self) -> (handshake::Schemes, Others) {
        match self {
            Self::Chain(chain) => schemes_of(&chain.leaf.public_key.key_type()),
            Self::Leaf { key_type: Some(key_type), .. } => schemes_of(key_type),
            Self::Leaf { key_type: None, .. } => (
                handshake::NOT_RSA,
                Others { schemes: handshake::RSA, clients: "clients that take only RSA" },
            ),
        }
    }
}

/// `HOST:PORT`, an IPv6 address in brackets.
async fn resolve_edge(edge: &str, limit: Duration) -> Result<Vec<SocketAddr>, String> {
    let (host, port) = edge.rsplit_once(':').unwrap_or((edge, ""));
    resolve(host.trim_matches(['[', ']']), port.parse().unwrap_or(HTTPS), limit).await
}

async fn resolve(host: &str, port: u16, limit: Duration) -> Result<Vec<SocketAddr>, String> {
    let shown = sanitize(host);
    let found = timeout(limit, lookup_host((host, port)))
        .await
        .map_err(|_| format!("looking up {shown} takes too long"))?;
    let mut addresses: Vec<SocketAddr> = found.map_err(|_| format!("{shown} does not resolve"))?.collect();
    addresses.sort();
    addresses.dedup();
    if addresses.is_empty() { Err(format!("{shown} has no address")) } else { Ok(addresses) }
}

/// The name to ask for; for a site that is a wildcard one that no other site is likely to have.
fn server_name(domain: &Domain) -> Option<ServerName<'static>> {
    let host = match domain.host().strip_prefix("*.") {
        Some(parent) => format!("edgecert.{parent}"),
        None => domain.host().to_owned(),
    };
    ServerName::try_from(host).ok().filter(|name| matches!(name, ServerName::DnsName(_)))
}

/// Clients that do not take a leaf's type of key.
struct Others {
    schemes: handshake::Schemes,
    clients: &'static str,
}

/// What clients offer that take a leaf's type of key alone, and those that take all but this type.
fn schemes_of(key_type: &KeyType) -> (handshake::Schemes, Others) {
    let others = |schemes, clients| Others { schemes, clients };
    match key_type {
        KeyType::Rsa { .. } => (handshake::RSA, others(handshake::NOT_RSA, "clients that do not take RSA")),
        KeyType::Ed25519 => {
            (handshake::ED25519, others(handshake::NOT_ED25519, "clients that do not take Ed25519"))
        }
        _ => (handshake::ECDSA, others(handshake::NOT_ECDSA, "clients that take only RSA")),
    }
}
