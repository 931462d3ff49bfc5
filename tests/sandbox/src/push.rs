//! Brings saved changes to the edge, some time after they were saved: until then `config_synced` is false and
//! the edge serves what it had. Due times are in the database, so a killed sandbox goes on where it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::Notify;

use crate::app::App;
use crate::clock;
use crate::edge::table::Memo;
use crate::store::edge;

/// When pushes happen.
pub(crate) struct Pushes {
    /// From saving to pushing.
    pub(crate) delay: Duration,
    held: AtomicBool,
    changed: Notify,
}

impl Pushes {
    pub(crate) fn new(delay: Duration) -> Self {
        Self { delay, held: AtomicBool::new(false), changed: Notify::new() }
    }

    /// Something was saved, or the hold was changed.
    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    /// While held, nothing is pushed unless [`now`] is called.
    pub(crate) fn hold(&self, held: bool) {
        self.held.store(held, Ordering::Release);
        self.wake();
    }
}

/// Finishes every pending push at once.
pub(crate) fn now(app: &App) -> rusqlite::Result<()> {
    push(app, i64::MAX)
}

/// Pushes what is due, for ever.
pub(crate) async fn run(app: Arc<App>) {
    loop {
        let changed = app.pushes.changed.notified();
        match wait(&app) {
            None => changed.await,
            Some(Duration::ZERO) => {
                if let Err(error) = push(&app, clock::now().as_millisecond()) {
                    app.notice(&format!("a push failed: {error}"));
                    changed.await;
                }
            }
            Some(wait) => {
                let _ = tokio::time::timeout(wait, changed).await;
            }
        }
    }
}

/// How long until something is due.
fn wait(app: &App) -> Option<Duration> {
    if app.pushes.held.load(Ordering::Acquire) {
        return None;
    }
    let due = edge::next_push(app.store().read()).ok().flatten()?;
    let left = due.saturating_sub(clock::now().as_millisecond());
    Some(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
}

fn push(app: &App, until: i64) -> rusqlite::Result<()> {
    let mut store = app.store();
    let mut memo = Memo::default();
    for site in store.write(|t| edge::push_due(t, until))? {
        show(app, store.read(), site, &mut memo)?;
    }
    Ok(())
}

/// Lets the listeners see what the edge has of a site.
pub(crate) fn show(app: &App, c: &Connection, site: i64, memo: &mut Memo) -> rusqlite::Result<()> {
    match edge::get(c, site)? {
        Some(snapshot) => app.edge.put(&snapshot, memo),
        None => app.edge.remove(site),
    }
    Ok(())
}
