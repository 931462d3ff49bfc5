//! The state that the listeners and the push worker share.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedSender;

use crate::edge::handshakes::HandshakeCounter;
use crate::edge::listeners::EdgeListeners;
use crate::edge::table::EdgeTable;
use crate::faults::Faults;
use crate::push::PushControl;
use crate::quirks::Quirks;
use crate::request_log::RequestLog;
use crate::store::Store;

/// The state of a running sandbox.
pub(crate) struct App {
    store: Mutex<Store>,
    pub(crate) quirks: Quirks,
    pub(crate) faults: Faults,
    pub(crate) request_log: RequestLog,
    pub(crate) pushes: PushControl,
    pub(crate) edge: EdgeTable,
    pub(crate) edge_listeners: EdgeListeners,
    pub(crate) handshakes: HandshakeCounter,
    notices: UnboundedSender<String>,
}

impl App {
    pub(crate) fn new(
        store: Store,
        quirks: Quirks,
        push_delay: Duration,
        notices: UnboundedSender<String>,
    ) -> Self {
        Self {
            store: Mutex::new(store),
            quirks,
            faults: Faults::default(),
            request_log: RequestLog::default(),
            pushes: PushControl::new(push_delay),
            edge: EdgeTable::default(),
            edge_listeners: EdgeListeners::default(),
            handshakes: HandshakeCounter::default(),
            notices,
        }
    }

    /// Locks the database, so that requests run one after another.
    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a line for the terminal. Control characters, which a request may contain, are replaced.
    pub(crate) fn notice(&self, text: &str) {
        let text = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        // In a test there is no receiver.
        let _ = self.notices.send(text);
    }

    /// Returns when a change saved at `now` is pushed to the edge, in milliseconds since 1970.
    pub(crate) fn push_at(&self, now: Timestamp) -> i64 {
        let delay = i64::try_from(self.pushes.delay.as_millis()).unwrap_or(i64::MAX);
        now.as_millisecond().saturating_add(delay)
    }
}
