//! The additional addresses of the edge: opens them at run time, and closes them.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::address::{Behavior, EdgeAddress, EdgeMode};
use crate::accept::{accept, bind};
use crate::app::App;
use crate::error::Error;

/// The open additional addresses.
#[derive(Default)]
pub(crate) struct EdgeListeners(Mutex<BTreeMap<SocketAddr, Listener>>);

struct Listener {
    mode: EdgeMode,
    task: JoinHandle<()>,
}

/// Opens an address, served by `runtime`, and returns it.
pub(crate) fn open(app: &Arc<App>, address: &EdgeAddress, runtime: &Handle) -> Result<SocketAddr, Error> {
    let behavior = address.behavior().map_err(Error::InvalidEdgeAddress)?.with_snapshot(app);
    let requested = address.listen.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    if !requested.ip().is_loopback() {
        return Err(Error::NotLoopback(requested));
    }
    let _context = runtime.enter();
    let (listener, bound) = bind(requested)?;
    let task = spawn(listener, app.clone(), bound, behavior);
    app.edge_listeners.lock().insert(bound, Listener { mode: address.mode, task });
    Ok(bound)
}

/// Starts a task that serves an address of the edge.
pub(crate) fn spawn(
    listener: TcpListener,
    app: Arc<App>,
    address: SocketAddr,
    behavior: Behavior,
) -> JoinHandle<()> {
    app.handshakes.add_address(address);
    let behavior = Arc::new(behavior);
    let serve = move |app, tcp, number| super::serve(app, address, behavior.clone(), tcp, number);
    tokio::spawn(accept(listener, app, serve))
}

impl EdgeListeners {
    /// Closes an address, given with or without its host. Connections that it accepted before stay open.
    /// Returns whether there was such an address.
    pub(crate) async fn close(&self, address: &str) -> bool {
        let Some(listener) = self.take(address) else { return false };
        listener.task.abort();
        // Waits until the port is closed.
        let _ = listener.task.await;
        true
    }

    /// Lists the open addresses.
    pub(crate) fn list(&self) -> Value {
        let entry = |(address, listener): (&SocketAddr, &Listener)| json!({ "address": address.to_string(), "mode": listener.mode });
        self.lock().iter().map(entry).collect()
    }

    fn take(&self, address: &str) -> Option<Listener> {
        let mut listeners = self.lock();
        let is_meant = |open: &&SocketAddr| open.to_string() == address || open.port().to_string() == address;
        let found = listeners.keys().find(is_meant).copied()?;
        listeners.remove(&found)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, Listener>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
