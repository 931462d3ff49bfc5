//! Binds addresses and accepts connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use crate::app::App;
use crate::error::Error;

/// How long to wait before accepting again when the process is out of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Binds an address in the context of a runtime. Also returns the port that was picked.
pub(crate) fn bind(addr: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let bound = std::net::TcpListener::bind(addr).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        Ok((TcpListener::from_std(listener)?, addr))
    });
    bound.map_err(|source| Error::Listen { addr, source })
}

/// Accepts connections and numbers them from 1.
pub(crate) async fn accept<F>(
    listener: TcpListener,
    app: Arc<App>,
    serve: impl Fn(Arc<App>, TcpStream, u64) -> F,
) where
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
