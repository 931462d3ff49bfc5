//! The edge: a TLS server that completes handshakes and nothing else. The server name selects the site; an unknown name
//! gets the alert `unrecognized_name` (RFC 6066, section 3) and no certificate.

pub(crate) mod address;
pub(crate) mod handshakes;
pub(crate) mod listeners;
pub(crate) mod site;
pub(crate) mod table;

use std::io::Cursor;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::server::Acceptor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::app::App;
use crate::transport::{SocketHandle, Stream};
use address::Behavior;
use site::EdgeSite;

/// First byte of a TLS handshake record.
const HANDSHAKE: u8 = 0x16;
/// A record with the fatal alert 112 (RFC 8446, section 6).
const UNRECOGNIZED_NAME: [u8; 7] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 112];
const MAX_CLIENT_HELLO: usize = 64 * 1024;

/// Serves one connection to this address of the edge.
async fn serve(
    app: Arc<App>,
    address: SocketAddr,
    behavior: Arc<Behavior>,
    mut tcp: TcpStream,
    connection: u64,
) {
    let socket = SocketHandle::new(&tcp);
    let handshake = app.handshakes.begin(address).await;
    let mut head = Vec::new();
    if !matches!(tcp.read_buf(&mut head).await, Ok(1..)) || head.first() != Some(&HANDSHAKE) {
        return;
    }
    handshake.count_handshake();
    let name = read_server_name(&mut tcp, &mut head).await;
    if is_closed_within(&mut tcp, &mut head, behavior.delay()).await {
        return;
    }
    drop(handshake);
    let site = behavior.respond(&app, connection, name.as_deref());
    serve_tls(site, Stream::replaying(head, tcp), socket).await;
}

/// Waits for `delay`, or without limit if it is `None`. Returns whether the client closed the connection meanwhile.
async fn is_closed_within(tcp: &mut TcpStream, head: &mut Vec<u8>, delay: Option<Duration>) -> bool {
    if delay == Some(Duration::ZERO) {
        return false;
    }
    let closed = async { while matches!(tcp.read_buf(head).await, Ok(1..)) {} };
    tokio::time::timeout(delay.unwrap_or(Duration::MAX), closed).await.is_ok()
}

async fn serve_tls(site: Option<Arc<EdgeSite>>, mut io: Stream<TcpStream>, socket: SocketHandle) {
    let config = site.and_then(|site| site.tls.clone().ok());
    let Some(config) = config else {
        let _ = io.write_all(&UNRECOGNIZED_NAME).await;
        return socket.close().await;
    };
    match TlsAcceptor::from(config).accept(io).await {
        // Until the client closes the connection.
        Ok(mut tls) => drop(tokio::io::copy(&mut tls, &mut tokio::io::sink()).await),
        // The client must be able to read the alert.
        Err(_) => socket.close().await,
    }
}

/// Reads until the `ClientHello` is complete. `head` keeps every byte for the real handshake.
async fn read_server_name(tcp: &mut TcpStream, head: &mut Vec<u8>) -> Option<String> {
    loop {
        let mut acceptor = Acceptor::default();
        let mut unread = Cursor::new(head.as_slice());
        while acceptor.read_tls(&mut unread).ok()? > 0 {}
        if let Some(accepted) = acceptor.accept().ok()? {
            return accepted.client_hello().server_name().map(str::to_owned);
        }
        if head.len() > MAX_CLIENT_HELLO || !matches!(tcp.read_buf(head).await, Ok(1..)) {
            return None;
        }
    }
}
