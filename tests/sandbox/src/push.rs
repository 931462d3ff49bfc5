//! Pushes saved changes to the edge after a delay. Until then `config_synced` is false and the edge serves
//! the previous configuration. Due times are in the database, so pending pushes survive a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::Notify;

use crate::app::App;
use crate::clock;
use crate::edge::table::TlsCache;
use crate::store::edge;

/// Controls when pushes happen.
pub(crate) struct PushControl {
    /// Time from a saved change to its push.
    pub(crate) delay: Duration,
    is_held: AtomicBool,
    changed: Notify,
}

impl PushControl {
    pub(crate) fn new(delay: Duration) -> Self {
        Self { delay, is_held: AtomicBool::new(false), changed: Notify::new() }
    }

    /// Wakes the worker, because a change was saved or the hold changed.
    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Holds pushes back or releases them. While held, only [`push_all`] pushes.
    pub(crate) fn hold(&self, held: bool) {
        self.is_held.store(held, Ordering::Release);
        self.wake();
    }
}

/// Pushes every pending change now.
pub(crate) fn push_all(app: &App) -> rusqlite::Result<()> {
    push_due(app, i64::MAX)
}

/// Pushes changes as they become due; never returns.
pub(crate) async fn run(app: Arc<App>) {
    loop {
        let changed = app.pushes.changed.notified();
        match time_to_next(&app) {
            None => changed.await,
            Some(Duration::ZERO) => {
                if let Err(error) = push_due(&app, clock::now().as_millisecond()) {
                    app.notice(&format!("push failed: {error}"));
                    changed.await;
                }
            }
            Some(wait) => {
                let _ = tokio::time::timeout(wait, changed).await;
            }
        }
    }
}

/// Returns the time until the next push is due; `None` if none is pending or pushes are held.
fn time_to_next(app: &App) -> Option<Duration> {
    if app.pushes.is_held.load(Ordering::Acquire) {
        return None;
    }
    let due = edge::next_push(app.store().read()).ok().flatten()?;
    let left = due.saturating_sub(clock::now().as_millisecond());
    Some(Duration::from_millis(u64::try_from(left).unwrap_or(0)))
}

fn push_due(app: &App, now_ms: i64) -> rusqlite::Result<()> {
    let mut store = app.store();
    let mut cache = TlsCache::default();
    for site in store.write(|t| edge::push_due(t, now_ms))? {
        publish(app, store.read(), site, &mut cache)?;
    }
    Ok(())
}

/// Updates the edge listener with the last pushed state of a site.
pub(crate) fn publish(app: &App, c: &Connection, site: i64, cache: &mut TlsCache) -> rusqlite::Result<()> {
    match edge::get(c, site)? {
        Some(snapshot) => app.edge.put(&snapshot, cache),
        None => app.edge.remove(site),
    }
    Ok(())
}

/// Updates the edge listener with every site whose snapshot serves this record.
pub(crate) fn publish_record(app: &App, c: &Connection, cert: i64) -> rusqlite::Result<()> {
    let mut cache = TlsCache::default();
    for snapshot in &edge::list_serving(c, cert)? {
        app.edge.put(snapshot, &mut cache);
    }
    Ok(())
}
