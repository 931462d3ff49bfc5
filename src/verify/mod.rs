//! Verifies by TLS handshakes which leaf each address of an edge serves to the visitors of a site.
//!
//! What the service reports about its edge is no proof; a handshake is. No chain is validated here: the question is
//! only whether it is the expected leaf.

mod edge_view;
mod handshake;
mod handshake_error;
mod handshake_round;
mod resolve;
mod schemes;

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::sleep;

#[cfg(test)]
pub(crate) use self::edge_view::OtherLeaf;
pub(crate) use self::edge_view::{EdgeView, ServedOf};
pub(crate) use self::handshake::{Handshakes, MAX_HANDSHAKES};
use self::handshake_round::{ExpectedLeaf, HandshakeRound};
use self::resolve::{resolve_address, resolve_cname, server_name};
use crate::bundle::Chain;
use crate::cert::KeyType;
use crate::clock::Deadline;
use crate::names::Domain;

/// Time limit of one handshake, and of one DNS lookup.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of attempts if connections break.
const MAX_ATTEMPTS: u32 = 5;
/// Pause after the first attempt; later pauses double.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The domain of a site, and the `cname` that its edge has.
pub(crate) type SiteNames<'s> = (&'s Domain, Option<&'s str>);

/// The edge and the leaf that it is expected to serve.
pub(crate) struct Edge<'a> {
    expected: ExpectedLeaf<'a>,
    /// Used instead of the addresses of each site; `HOST:PORT`.
    addresses: &'a [String],
    handshakes: &'a Handshakes,
}

impl<'a> Edge<'a> {
    /// Expects the leaf of a chain. `addresses` are used instead of those of each site, unless there are none. Edges that
    /// share `handshakes` share its limit on concurrency.
    pub(crate) fn new(chain: &'a Chain, addresses: &'a [String], handshakes: &'a Handshakes) -> Self {
        let key_type = Some(chain.leaf.public_key.key_type.clone());
        let expected = ExpectedLeaf { fingerprint: chain.leaf.fingerprint(), key_type, chain: Some(chain) };
        Self { expected, addresses, handshakes }
    }

    /// Expects a leaf known only by its fingerprint and possibly its key type.
    pub(crate) fn for_leaf(
        fingerprint: &str,
        key_type: Option<KeyType>,
        addresses: &'a [String],
        handshakes: &'a Handshakes,
    ) -> Self {
        let expected = ExpectedLeaf { fingerprint: fingerprint.to_owned(), key_type, chain: None };
        Self { expected, addresses, handshakes }
    }

    /// Makes handshakes with every address of a site's edge that has not served the expected leaf yet, and records in
    /// `view` what they serve.
    pub(crate) async fn observe(&self, site: SiteNames<'_>, view: &mut EdgeView, deadline: Deadline) {
        let (domain, cname) = site;
        let Some(name) = server_name(domain) else {
            let reason = "its domain is an IP address, which cannot be a TLS server name";
            view.unresolved = vec![reason.into()];
            return;
        };
        if view.is_incomplete() {
            self.resolve(cname, view, deadline.left().min(ATTEMPT_TIMEOUT)).await;
        }
        let pending = view.pending();
        let rounds = pending.iter().map(|address| {
            HandshakeRound::run(self.handshakes, &self.expected, domain, (*address, &name), deadline)
        });
        for (address, round) in pending.iter().zip(join_all(rounds).await) {
            round.other_leaves().for_each(|leaf| view.note_other(leaf));
            let is_mixed = round.is_mixed();
            view.record(*address, round.observation(&self.expected), is_mixed);
        }
    }

    /// Calls `observe`, and retries if a connection broke: an edge that refuses one kind of client may close the connection
    /// before its alert arrives.
    pub(crate) async fn observe_retrying(
        &self,
        site: SiteNames<'_>,
        view: &mut EdgeView,
        deadline: Deadline,
    ) {
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=MAX_ATTEMPTS {
            self.observe(site, view, deadline).await;
            let is_last = attempt == MAX_ATTEMPTS || deadline.left() <= pause;
            if is_last || !view.has_broken_connection() {
                break;
            }
            sleep(pause).await;
            pause *= 2;
        }
    }

    /// Adds the addresses of a site's edge to `view`, or why there may be further ones.
    async fn resolve(&self, cname: Option<&str>, view: &mut EdgeView, limit: Duration) {
        let resolved = match self.addresses {
            [] => vec![resolve_cname(cname, limit).await],
            addresses => join_all(addresses.iter().map(|address| resolve_address(address, limit))).await,
        };
        view.unresolved.clear();
        for result in resolved {
            match result {
                Ok(found) => view.add_addresses(found),
                Err(reason) => view.unresolved.push(reason),
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod fixture;

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::runtime::Runtime;

    /// Observes an edge that breaks the first connections and closes the others, and returns how many there were.
    fn connections(broken: usize, key_type: Option<KeyType>, limit: Duration) -> usize {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addresses = [listener.local_addr().unwrap().to_string()];
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        std::thread::spawn(move || {
            for mut connection in listener.incoming().flatten() {
                // The system resets a connection that is closed with unread data.
                let is_broken = counted.fetch_add(1, Ordering::SeqCst) < broken;
                let _ = connection.read(&mut [0; 4096][..if is_broken { 1 } else { 4096 }]);
            }
        });
        let handshakes = Handshakes::new(MAX_HANDSHAKES).unwrap();
        let edge = Edge::for_leaf("aa", key_type, &addresses, &handshakes);
        let (site, mut view) = ("a.example".parse().unwrap(), EdgeView::new(false));
        let observed = edge.observe_retrying((&site, None), &mut view, Deadline::after(limit));
        Runtime::new().unwrap().block_on(observed);
        count.load(Ordering::SeqCst)
    }

    #[test]
    fn edge_is_observed_again_if_a_connection_breaks() {
        let (known, minute) = (|| Some(KeyType::P256), Duration::from_secs(60));
        assert_eq!(connections(0, known(), minute), 4);
        assert_eq!(connections(0, None, minute), 6, "either kind of client may get the leaf");
        assert_eq!(connections(4, known(), minute), 8);
        assert!(connections(4, known(), FIRST_PAUSE) <= 4, "no time is left");
    }
}
