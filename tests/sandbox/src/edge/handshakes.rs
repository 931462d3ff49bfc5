//! Counts the connections and TLS handshakes of each edge address, and how many are in progress at once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

/// Connections to the edge since the start or the last reset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Handshakes {
    /// Counts by address (host and port), including addresses that were closed.
    pub addresses: BTreeMap<String, AddressHandshakes>,
    /// Most connections in progress at once, over all addresses. A connection is in progress from its
    /// acceptance until the edge responds: no longer than the client waits, so that a client that makes one
    /// handshake after another is not counted as making two at once.
    pub max_in_progress: u64,
}

/// Connections to one edge address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
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
    addresses: BTreeMap<SocketAddr, Counted>,
    all: Level,
}

#[derive(Default)]
struct Counted {
    connections: u64,
    handshakes: u64,
    level: Level,
}

/// A number that rises and falls, and its maximum.
#[derive(Default)]
struct Level {
    now: u64,
    max: u64,
}

impl Level {
    fn rise(&mut self) {
        self.now += 1;
    }

    fn fall(&mut self) {
        self.now = self.now.saturating_sub(1);
    }

    fn record(&mut self) {
        self.max = self.max.max(self.now);
    }

    fn reset(&mut self) {
        self.max = self.now;
    }
}

impl HandshakeCounter {
    /// Lists an address before its first connection.
    pub(crate) fn add_address(&self, address: SocketAddr) {
        self.lock().addresses.entry(address).or_default();
    }

    /// Counts an accepted connection, which is in progress until the returned guard is dropped.
    pub(super) async fn begin(&self, address: SocketAddr) -> InProgress<'_> {
        self.change(address, |counted, all| {
            counted.connections += 1;
            counted.level.rise();
            all.rise();
        });
        let handshake = InProgress { counter: self, address };
        // Lets the runtime notice connections that clients closed before they opened this one.
        tokio::task::yield_now().await;
        self.change(address, |counted, all| {
            counted.level.record();
            all.record();
        });
        handshake
    }

    /// Returns the counts.
    pub(crate) fn counts(&self) -> Handshakes {
        let state = self.lock();
        let counts = |(address, counted): (&SocketAddr, &Counted)| {
            let counts = AddressHandshakes {
                connections: counted.connections,
                handshakes: counted.handshakes,
                max_in_progress: counted.level.max,
            };
            (address.to_string(), counts)
        };
        Handshakes { addresses: state.addresses.iter().map(counts).collect(), max_in_progress: state.all.max }
    }

    /// Counts from zero. Connections in progress remain in progress.
    pub(crate) fn reset(&self) {
        let mut state = self.lock();
        state.all.reset();
        for counted in state.addresses.values_mut() {
            (counted.connections, counted.handshakes) = (0, 0);
            counted.level.reset();
        }
    }

    fn change(&self, address: SocketAddr, change: impl FnOnce(&mut Counted, &mut Level)) {
        let State { addresses, all } = &mut *self.lock();
        change(addresses.entry(address).or_default(), all);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection whose handshake is in progress.
pub(super) struct InProgress<'a> {
    counter: &'a HandshakeCounter,
    address: SocketAddr,
}

impl InProgress<'_> {
    /// Counts a handshake that the client began.
    pub(super) fn count_handshake(&self) {
        self.counter.change(self.address, |counted, _| counted.handshakes += 1);
    }
}

impl Drop for InProgress<'_> {
    fn drop(&mut self) {
        self.counter.change(self.address, |counted, all| {
            counted.level.fall();
            all.fall();
        });
    }
}
