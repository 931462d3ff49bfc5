//! The additional addresses of the edge: opens them at run time, and closes them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::address::{Behavior, EdgeAddress};
use crate::accept::{accept, bind};
use crate::app::App;

type Tasks = BTreeMap<SocketAddr, JoinHandle<()>>;

/// The tasks that serve the open additional addresses.
#[derive(Default)]
pub(crate) struct EdgeListeners(Mutex<Tasks>);

/// Opens an address, served by `runtime`, and returns it. Port 0 picks a free port.
pub(crate) fn open(
    app: &Arc<App>,
    address: &EdgeAddress,
    at: SocketAddr,
    runtime: &Handle,
) -> Result<SocketAddr, String> {
    let behavior = Behavior::new(app, address)?;
    let _context = runtime.enter();
    let (listener, bound) = bind(at).map_err(|error| error.to_string())?;
    let task = spawn(listener, app.clone(), bound, behavior);
    app.edge_listeners.lock().insert(bound, task);
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
    /// Closes an address. Connections that it accepted before stay open. Returns whether there was such an address.
    pub(crate) async fn close(&self, address: SocketAddr) -> bool {
        let Some(task) = self.lock().remove(&address) else { return false };
        task.abort();
        // Waits until the port is closed.
        let _ = task.await;
        true
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
