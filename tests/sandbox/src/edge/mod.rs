//! The edge: each port takes TLS and plain HTTP, distinguished by the first byte. The server name selects the
//! site; an unknown name gets the alert `unrecognized_name` (RFC 6066, section 3) and no certificate.

pub(crate) mod address;
pub(crate) mod handshakes;
pub(crate) mod listeners;
pub(crate) mod site;
pub(crate) mod table;

use std::io::Cursor;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, StatusCode, header};
use hyper::body::Incoming;
use rustls::server::Acceptor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::app::App;
use crate::response::Response;
use crate::transport::{self, AbortHandle, HttpResponse, SocketHandle, Stream};
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
    if !matches!(tcp.read_buf(&mut head).await, Ok(1..)) {
        return;
    }
    let is_tls = head.first() == Some(&HANDSHAKE);
    let mut name = None;
    if is_tls {
        handshake.count_handshake();
        name = read_server_name(&mut tcp, &mut head).await;
    }
    if is_closed_within(&mut tcp, &mut head, behavior.delay()).await {
        return;
    }
    drop(handshake);
    if is_tls {
        let site = behavior.respond(&app, connection, name.as_deref());
        serve_tls(site, Stream::replaying(head, tcp), socket).await;
    } else {
        let handler = move |request, abort| respond_plain(app.clone(), behavior.clone(), request, abort);
        transport::serve(Stream::replaying(head, tcp), socket, handler).await;
    }
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
    let config = site.as_ref().and_then(|site| site.tls.as_ref().ok()).cloned();
    let (Some(site), Some(config)) = (site, config) else {
        let _ = io.write_all(&UNRECOGNIZED_NAME).await;
        return socket.close().await;
    };
    match TlsAcceptor::from(config).accept(io).await {
        Ok(tls) => {
            let handler = move |_, _| std::future::ready(page(&site));
            transport::serve(tls, socket, handler).await;
        }
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

async fn respond_plain(
    app: Arc<App>,
    behavior: Arc<Behavior>,
    request: Request<Incoming>,
    abort: AbortHandle,
) -> HttpResponse {
    let host = host(&request);
    match behavior.find(&app, &host) {
        None => {
            let text = format!("{host} is not served here\n");
            Response::text(StatusCode::MISDIRECTED_REQUEST, text).into_http()
        }
        Some(site) if !site.http_enabled => abort.abort().await,
        Some(site) if site.force_https => redirect_to_https(&host, &request),
        Some(site) => page(&site),
    }
}

fn page(site: &EdgeSite) -> HttpResponse {
    Response::text(StatusCode::OK, site.page()).into_http()
}

fn redirect_to_https(host: &str, request: &Request<Incoming>) -> HttpResponse {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let response = Response::empty(StatusCode::MOVED_PERMANENTLY);
    match HeaderValue::try_from(format!("https://{host}{path}")) {
        Ok(location) => response.with_header(header::LOCATION, location).into_http(),
        Err(_) => Response::empty(StatusCode::BAD_REQUEST).into_http(),
    }
}

/// Returns the requested host without the port.
fn host(request: &Request<Incoming>) -> String {
    let header = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    let authority =
        request.uri().authority().map(http::uri::Authority::as_str).or(header).unwrap_or_default();
    authority.split_once(':').map_or(authority, |(host, _)| host).to_owned()
}
