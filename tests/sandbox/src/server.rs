//! The three listeners and the worker, on one runtime in one thread of their own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::app::App;
use crate::authority::{self, Authority};
use crate::error::Error;
use crate::options::Options;
use crate::transport::Hangup;
use crate::{api, control, edge, push, transport};

/// The file with the run's CA, in a directory that goes with the run.
pub(crate) const CA_FILE: &str = "ca.pem";

/// Addresses that were really bound.
pub(crate) struct Addresses {
    pub(crate) api: SocketAddr,
    pub(crate) edge: SocketAddr,
    pub(crate) control: SocketAddr,
}

/// Bound sockets; connections wait in their queues until they are served.
struct Listeners {
    api: TcpListener,
    edge: TcpListener,
    control: TcpListener,
}

/// Makes the CA of the run and the API's certificate.
pub(crate) fn tls() -> Result<(TlsAcceptor, TempDir), Error> {
    let files = tempfile::Builder::new().prefix("edgecert-sandbox-").tempdir();
    let files = files.map_err(|source| Error::File { path: std::env::temp_dir(), source })?;
    let authority = Authority::new("edgecert-sandbox API, for rehearsal only,")?;
    let issued = authority.issue(&["localhost", "127.0.0.1", "::1"])?;
    let path = files.path().join(CA_FILE);
    std::fs::write(&path, authority.root()).map_err(|source| Error::File { path, source })?;
    let mut config = authority::server_config(&issued)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((TlsAcceptor::from(Arc::new(config)), files))
}

/// Starts the thread and waits until the ports are bound. It ends when `stopped` does.
pub(crate) fn start(
    app: Arc<App>,
    options: Options,
    tls: Option<TlsAcceptor>,
    stopped: oneshot::Receiver<()>,
) -> Result<(JoinHandle<()>, Addresses), Error> {
    let (tell, bound) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(source) => {
                return drop(tell.send(Err(Error::Listen { addr: options.listen, source })));
            }
        };
        runtime.block_on(async {
            let bound = Listeners::bind(&options).await;
            let addresses = bound.map(|(listeners, addresses)| {
                listeners.serve(&app, tls);
                addresses
            });
            let listening = addresses.is_ok();
            if tell.send(addresses).is_ok() && listening {
                let _ = stopped.await;
            }
        });
    });
    let gone = || Error::InvalidWorld("the sandbox's thread ended".to_owned());
    let addresses = bound.recv().map_err(|_| gone())??;
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

    /// Starts serving; the tasks end with the runtime.
    fn serve(self, app: &Arc<App>, tls: Option<TlsAcceptor>) {
        tokio::spawn(push::run(app.clone()));
        tokio::spawn(accept(self.edge, app.clone(), |app, tcp, _| edge::connection(app, tcp)));
        tokio::spawn(accept(self.control, app.clone(), |app, tcp, _| control_connection(app, tcp)));
        tokio::spawn(accept(self.api, app.clone(), move |app, tcp, number| {
            api_connection(app, tcp, number, tls.clone())
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

async fn accept<F>(listener: TcpListener, app: Arc<App>, serve: impl Fn(Arc<App>, TcpStream, u64) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let numbers = AtomicU64::new(1);
    loop {
        match listener.accept().await {
            Ok((tcp, _)) => {
                // Without it small answers wait for the client's acknowledgement.
                let _ = tcp.set_nodelay(true);
                tokio::spawn(serve(app.clone(), tcp, numbers.fetch_add(1, Ordering::Relaxed)));
            }
            // Out of file descriptors: those that are open have to end first.
            Err(error) => {
                app.notice(&format!("cannot accept a connection: {error}"));
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

async fn api_connection(app: Arc<App>, tcp: TcpStream, number: u64, tls: Option<TlsAcceptor>) {
    let hangup = Hangup::of(&tcp);
    let answer = move |request, cut| api::handle(app.clone(), number, request, cut);
    match tls {
        None => transport::serve(tcp, hangup, answer).await,
        Some(tls) => {
            if let Ok(tls) = tls.accept(tcp).await {
                transport::serve(tls, hangup, answer).await;
            }
        }
    }
}

async fn control_connection(app: Arc<App>, tcp: TcpStream) {
    let hangup = Hangup::of(&tcp);
    transport::serve(tcp, hangup, move |request, _| control::handle(app.clone(), request)).await;
}
