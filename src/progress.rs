//! The progress of a run: what it is waiting for. The engines report it, and the terminal shows it.

use std::time::Duration;

/// Receives the phases of a run: each begins or goes on.
pub(crate) type Progress = dyn Fn(Phase) + Sync;

/// What a run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The local checks.
    Checking,
    /// Reading the account, and what its edges serve.
    Reading,
    Uploading {
        uploads: usize,
    },
    /// Waiting until the service has pushed the configuration to the edge.
    Pushing {
        limit: Duration,
    },
    /// Handshakes, until every site is served.
    Verifying {
        served: usize,
        sites: usize,
        limit: Duration,
    },
    /// Several lineages, deployed at once.
    Lineages {
        done: usize,
        total: usize,
    },
}
