//! The three listeners and the worker, on one runtime in one thread of their own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::app::App;
use crate::error::Error;
use crate::wire::Hangup;
use crate::{api, control, edge, push, wire};

/// Bound sockets; connections wait in their queues until [`run`].
pub(crate) struct Listeners {
    pub(crate) api: TcpListener,
    pub(crate) edge: TcpListener,
    pub(crate) control: TcpListener,
}

/// Binds one address.
pub(crate) async fn bind(addr: SocketAddr) -> Result<TcpListener, Error> {
    TcpListener::bind(addr)
        .await
        .map_err(|source| Error::Listen { addr, source })
}

/// Starts serving; the tasks end with the runtime.
pub(crate) fn run(app: &Arc<App>, listeners: Listeners, tls: Option<TlsAcceptor>) {
    tokio::spawn(push::run(app.clone()));
    tokio::spawn(accept(listeners.edge, app.clone(), |app, tcp, _| {
        edge::connection(app, tcp)
    }));
    tokio::spawn(accept(listeners.control, app.clone(), |app, tcp, _| {
        control_connection(app, tcp)
    }));
    tokio::spawn(accept(listeners.api, app.clone(), move |app, tcp, number| {
        api_connection(app, tcp, number, tls.clone())
    }));
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
        None => wire::serve(tcp, hangup, answer).await,
        Some(tls) => {
            if let Ok(tls) = tls.accept(tcp).await {
                wire::serve(tls, hangup, answer).await;
            }
        }
    }
}

async fn control_connection(app: Arc<App>, tcp: TcpStream) {
    let hangup = Hangup::of(&tcp);
    wire::serve(tcp, hangup, move |request, _| {
        control::handle(app.clone(), request)
    })
    .await;
}
