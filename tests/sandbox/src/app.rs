//! Everything that the listeners share.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedSender;

use crate::edge::table::EdgeTable;
use crate::faults::Faults;
use crate::push::Pushes;
use crate::quirks::Quirks;
use crate::request_log::Journal;
use crate::store::Store;

/// The service.
pub(crate) struct App {
    store: Mutex<Store>,
    pub(crate) quirks: Quirks,
    pub(crate) faults: Faults,
    pub(crate) journal: Journal,
    pub(crate) pushes: Pushes,
    pub(crate) edge: EdgeTable,
    notices: UnboundedSender<String>,
}

impl App {
    pub(crate) fn new(
        store: Store,
        quirks: Quirks,
        delay: Duration,
        notices: UnboundedSender<String>,
    ) -> Self {
        Self {
            store: Mutex::new(store),
            quirks,
            faults: Faults::default(),
            journal: Journal::default(),
            pushes: Pushes::new(delay),
            edge: EdgeTable::default(),
            notices,
        }
    }

    /// The database, for one request at a time.
    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the person at the terminal, who must not be addressed by what a request brings.
    pub(crate) fn notice(&self, text: &str) {
        let text = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        // Nobody listens when the sandbox runs inside a test.
        let _ = self.notices.send(text);
    }

    /// When a change that is saved now reaches the edge, in milliseconds.
    pub(crate) fn push_at(&self, now: Timestamp) -> i64 {
        let delay = i64::try_from(self.pushes.delay.as_millis()).unwrap_or(i64::MAX);
        now.as_millisecond().saturating_add(delay)
    }
}
