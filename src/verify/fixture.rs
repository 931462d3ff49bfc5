//! Views of modelled edges, for unit tests.

use std::net::SocketAddr;

use super::edge_view::{Observation, ServedChain};
use super::handshake_error::{Cause, HandshakeError};
use super::{EdgeView, OtherLeaf};

/// What an address shows in a handshake.
#[derive(Clone)]
pub(crate) enum Shown {
    Expected,
    Other(OtherLeaf),
    /// It refuses the name.
    Refusal,
    Unreachable,
    /// This host has no route to it.
    NoRoute,
}

impl EdgeView {
    /// Records what an address shows.
    pub(crate) fn show(&mut self, address: u8, shown: Shown) {
        let address = SocketAddr::from(([192, 0, 2, address], 443));
        self.add_addresses(vec![address]);
        let failed =
            |cause| Observation::Failed(HandshakeError { cause, ..HandshakeError::no_certificate() });
        let observation = match shown {
            Shown::Expected => Observation::Expected { chain: ServedChain::Same },
            Shown::Other(leaf) => {
                self.note_other(&leaf);
                Observation::Other { leaf: Some(leaf), clients: None }
            }
            Shown::Refusal => failed(Cause::Refused),
            Shown::Unreachable => failed(Cause::Unreachable),
            Shown::NoRoute => failed(Cause::NoRoute),
        };
        self.record(address, observation, false);
    }
}
