//! Binds and serves the three ports and runs the push worker, in one thread with its own runtime.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::accept::accept;
use crate::app::App;
use crate::authority::Authority;
use crate::edge::address::Behavior;
use crate::edge::listeners;
use crate::error::Error;
use crate::options::Options;
use crate::transport::{self, SocketHandle};
use crate::{api, control, push};

/// Name of the CA certificate in the run's temporary directory.
pub(crate) const CA_FILE: &str = "ca.pem";

/// The addresses that were bound.
pub(crate) struct Addresses {
    pub(crate) api: SocketAddr,
    pub(crate) edge: SocketAddr,
    pub(crate) control: SocketAddr,
}

/// The bound sockets.
struct Listeners {
    api: TcpListener,
    edge: TcpListener,
    control: TcpListener,
}

/// Creates a CA and a certificate for the API. The directory holds the CA file and is removed on drop.
pub(crate) fn create_tls() -> Result<(TlsAcceptor, TempDir), Error> {
    let directory = tempfile::Builder::new().prefix("edgecert-sandbox-").tempdir();
    let directory = directory.map_err(|source| Error::File { path: std::env::temp_dir(), source })?;
    let authority = Authority::new("edgecert-sandbox API, for rehearsal only,")?;
    let issued = authority.issue(&["localhost", "127.0.0.1", "::1"])?;
    let path = directory.path().join(CA_FILE);
    std::fs::write(&path, authority.root()).map_err(|source| Error::File { path, source })?;
    let mut config = issued.server_config()?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((TlsAcceptor::from(Arc::new(config)), directory))
}

/// A thread that serves the ports.
pub(crate) struct Server {
    pub(crate) thread: JoinHandle<()>,
    pub(crate) runtime: Handle,
    pub(crate) addresses: Addresses,
}

/// Starts the thread and returns once the ports are bound. Dropping the sender of `stop` ends the thread.
pub(crate) fn start(
    app: Arc<App>,
    options: Options,
    tls: Option<TlsAcceptor>,
    stop: oneshot::Receiver<()>,
) -> Result<Server, Error> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    let handle = runtime.handle().clone();
    let (bound_sender, bound) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        runtime.block_on(async {
            let bound = Listeners::bind(&options).await.map(|(listeners, addresses)| {
                listeners.serve(&app, tls, addresses.edge);
                addresses
            });
            let is_serving = bound.is_ok();
            if bound_sender.send(bound).is_ok() && is_serving {
                let _ = stop.await;
            }
        });
    });
    let thread_ended = |_| Error::Runtime(io::Error::other("the server thread ended"));
    let addresses = bound.recv().map_err(thread_ended)??;
    Ok(Server { thread, runtime: handle, addresses })
}

impl Listeners {
    async fn bind(options: &Options) -> Result<(Self, Addresses), Error> {
        let (api, api_addr) = bind(options.listen).await?;
        let (edge, edge_addr) = bind(options.edge_listen).await?;
        let (control, control_addr) = bind(options.control_listen).await?;
        let addresses = Addresses { api: api_addr, edge: edge_addr, control: control_addr };
        Ok((Self { api, edge, control }, addresses))
    }

    /// Spawns the tasks, which end with the runtime.
    fn serve(self, app: &Arc<App>, tls: Option<TlsAcceptor>, edge_address: SocketAddr) {
        tokio::spawn(push::run(app.clone()));
        listeners::spawn(self.edge, app.clone(), edge_address, Behavior::main());
        tokio::spawn(accept(self.control, app.clone(), |app, tcp, _| serve_control(app, tcp)));
        tokio::spawn(accept(self.api, app.clone(), move |app, tcp, connection| {
            serve_api(app, tcp, connection, tls.clone())
        }));
    }
}

async fn bind(addr: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let bound = TcpListener::bind(addr).await.and_then(|listener| {
        let addr = listener.local_addr()?;
        Ok((listener, addr))
    });
    bound.map_err(|source| Error::Listen { addr, source })
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
