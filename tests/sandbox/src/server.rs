//! Binds and serves the three ports and runs the push worker, in one thread with its own runtime.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::accept::{accept, bind};
use crate::app::App;
use crate::authority::Authority;
use crate::edge::address::Behavior;
use crate::edge::{listeners, site};
use crate::error::Error;
use crate::options::Options;
use crate::transport::{self, SocketHandle};
use crate::{api, control, push};

/// Name of the CA certificate in the run's temporary directory.
pub(crate) const CA_FILE: &str = "ca.pem";

/// Creates a CA and a certificate for the API. The directory holds the CA file and is removed on drop.
pub(crate) fn create_tls() -> Result<(TlsAcceptor, TempDir), Error> {
    let directory = tempfile::Builder::new().prefix("edgecert-sandbox-").tempdir();
    let directory = directory.map_err(|source| Error::File { path: std::env::temp_dir(), source })?;
    let authority = Authority::new("edgecert-sandbox API, for rehearsal only,")?;
    let issued = authority.issue(&["localhost", "127.0.0.1", "::1"])?;
    let path = directory.path().join(CA_FILE);
    std::fs::write(&path, authority.root()).map_err(|source| Error::File { path, source })?;
    let config = site::server_config(&issued.fullchain(), &issued.key).map_err(Error::Authority)?;
    Ok((TlsAcceptor::from(config), directory))
}

/// A thread that serves the ports.
pub(crate) struct Server {
    pub(crate) thread: JoinHandle<()>,
    pub(crate) runtime: Handle,
    pub(crate) api: SocketAddr,
    pub(crate) edge: SocketAddr,
    pub(crate) control: SocketAddr,
}

/// Binds the ports and starts the thread. Dropping the sender of `stop` ends it, and with it the tasks.
pub(crate) fn start(
    app: &Arc<App>,
    options: &Options,
    tls: Option<TlsAcceptor>,
    stop: oneshot::Receiver<()>,
) -> Result<Server, Error> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    let context = runtime.enter();
    let (api_listener, api) = bind(options.listen)?;
    let (edge_listener, edge) = bind(options.edge_listen)?;
    let (control_listener, control) = bind(options.control_listen)?;
    tokio::spawn(push::run(app.clone()));
    listeners::spawn(edge_listener, app.clone(), edge, Behavior::main());
    tokio::spawn(accept(control_listener, app.clone(), |app, tcp, _| serve_control(app, tcp)));
    tokio::spawn(accept(api_listener, app.clone(), move |app, tcp, connection| {
        serve_api(app, tcp, connection, tls.clone())
    }));
    drop(context);
    let handle = runtime.handle().clone();
    let thread = std::thread::spawn(move || drop(runtime.block_on(stop)));
    Ok(Server { thread, runtime: handle, api, edge, control })
}

async fn serve_api(app: Arc<App>, tcp: TcpStream, connection: u64, tls: Option<TlsAcceptor>) {
    let socket = SocketHandle::new(&tcp);
    let handler = move |request, abort| api::handle(app.clone(), connection, request, abort);
    match tls {
        None => transport::serve(tcp, socket, handler).await,
        Some(tls) => {
            if let Ok(tls) = tls.accept(tcp).await {
                transport::serve(tls, socket, handler).await;
            }
        }
    }
}

async fn serve_control(app: Arc<App>, tcp: TcpStream) {
    let socket = SocketHandle::new(&tcp);
    transport::serve(tcp, socket, move |request, _| control::handle(app.clone(), request)).await;
}
