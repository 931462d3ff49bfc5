//! Binds and serves the three ports and runs the push worker, in one thread with its own runtime.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::app::App;
use crate::authority::Authority;
use crate::error::Error;
use crate::options::Options;
use crate::transport::{self, SocketHandle};
use crate::{api, control, edge, push};

/// Name of the CA certificate in the run's temporary directory.
pub(crate) const CA_FILE: &str = "ca.pem";

/// How long to wait before accepting again when the process is out of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

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

/// Starts the thread and returns once the ports are bound. Dropping the sender of `stop` ends the thread.
pub(crate) fn start(
    app: Arc<App>,
    options: Options,
    tls: Option<TlsAcceptor>,
    stop: oneshot::Receiver<()>,
) -> Result<(JoinHandle<()>, Addresses), Error> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
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
    Ok((thread, addresses))
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
        app.handshakes.add_address(edge_address);
        let serve_edge = move |app, tcp, _| edge::serve(app, edge_address, tcp);
        tokio::spawn(accept(self.edge, app.clone(), serve_edge));
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

/// Accepts connections and numbers them from 1.
async fn accept<F>(listener: TcpListener, app: Arc<App>, serve: impl Fn(Arc<App>, TcpStream, u64) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let next_number = AtomicU64::new(1);
    loop {
        match listener.accept().await {
            Ok((tcp, _)) => {
                // With Nagle's algorithm small responses would wait for the client's acknowledgement.
                let _ = tcp.set_nodelay(true);
                tokio::spawn(serve(app.clone(), tcp, next_number.fetch_add(1, Ordering::Relaxed)));
            }
            Err(error) => {
                app.notice(&format!("cannot accept a connection: {error}"));
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
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
