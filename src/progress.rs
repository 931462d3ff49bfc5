//! The progress of a run: what it is waiting for. The engines report it, and the terminal shows it.

use std::time::Duration;

/// Receives the progress of a run; `&()` ignores it.
pub trait Progress: Sync {
    /// A phase of a deployment begins or goes on.
    fn enter(&self, phase: Phase);
    /// Work on this many lineages begins.
    fn start(&self, lineages: usize);
    /// One more lineage is done.
    fn advance(&self);
}

/// What a deployment is doing.
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
}

impl Progress for () {
    fn enter(&self, _phase: Phase) {}
    fn start(&self, _lineages: usize) {}
    fn advance(&self) {}
}
