//! Counts the connections and TLS handshakes of each edge address, and how many are in progress at once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Connections to the edge since the start or the last reset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Handshakes {
    /// Counts by address (host and port), including addresses that were closed.
    pub addresses: BTreeMap<String, AddressHandshakes>,
    /// Most connections in progress at once, over all addresses. A connection is in progress from its
    /// acceptance until the edge responds: no longer than the client waits, so that a client that makes one
    /// handshake after another is not counted as making two at once.
    pub max_in_progress: u64,
}

/// Connections to one edge address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AddressHandshakes {
    /// Accepted TCP connections.
    pub connections: u64,
    /// Connections on which the client began a TLS handshake, whether or not it succeeded.
    pub handshakes: u64,
    /// Most connections in progress at once.
    pub max_in_progress: u64,
}

impl Handshakes {
    /// Returns the number of handshakes with all addresses.
    pub fn total(&self) -> u64 {
        self.addresses.values().map(|counts| counts.handshakes).sum()
    }
}

/// Counts connections as they are accepted and finish their handshakes.
#[derive(Default)]
pub(crate) struct HandshakeCounter(Mutex<State>);

#[derive(Default)]
struct State {
    counts: Handshakes,
    in_progress: BTreeMap<String, u64>,
}

impl State {
    fn counts(&mut self, address: &str) -> &mut AddressHandshakes {
        self.counts.addresses.entry(address.to_owned()).or_default()
    }

    fn in_progress(&mut self, address: &str) -> &mut u64 {
        self.in_progress.entry(address.to_owned()).or_default()
    }

    fn all_in_progress(&self) -> u64 {
        self.in_progress.values().sum()
    }
}

impl HandshakeCounter {
    /// Lists an address before its first connection.
    pub(crate) fn add_address(&self, address: SocketAddr) {
        self.lock().counts(&address.to_string());
    }

    /// Counts an accepted connection, which is in progress until the returned guard is dropped.
    pub(super) async fn begin(&self, address: SocketAddr) -> InProgress<'_> {
        let handshake = InProgress { counter: self, address: address.to_string() };
        let address = &handshake.address;
        self.lock().counts(address).connections += 1;
        *self.lock().in_progress(address) += 1;
        // Lets the runtime notice connections that clients closed before they opened this one.
        tokio::task::yield_now().await;
        let mut state = self.lock();
        let (here, all) = (*state.in_progress(address), state.all_in_progress());
        let counts = state.counts(address);
        counts.max_in_progress = counts.max_in_progress.max(here);
        state.counts.max_in_progress = state.counts.max_in_progress.max(all);
        drop(state);
        handshake
    }

    /// Returns the counts.
    pub(crate) fn counts(&self) -> Handshakes {
        self.lock().counts.clone()
    }

    /// Counts from zero. Connections in progress remain in progress.
    pub(crate) fn reset(&self) {
        let State { counts, in_progress } = &mut *self.lock();
        for (address, counts) in &mut counts.addresses {
            let max_in_progress = in_progress.get(address).copied().unwrap_or_default();
            *counts = AddressHandshakes { max_in_progress, ..AddressHandshakes::default() };
        }
        counts.max_in_progress = in_progress.values().sum();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection whose handshake is in progress.
pub(super) struct InProgress<'a> {
    counter: &'a HandshakeCounter,
    address: String,
}

impl InProgress<'_> {
    /// Counts a handshake that the client began.
    pub(super) fn count_handshake(&self) {
        self.counter.lock().counts(&self.address).handshakes += 1;
    }
}

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        *self.counter.lock().in_progress(&self.address) -= 1;
    }
}
