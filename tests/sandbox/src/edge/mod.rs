//! The edge: one port that speaks TLS and plain HTTP, as the first byte says. The server name picks the site;
//! a name that is not served gets the alert `unrecognized_name` (RFC 6066, section 3) and no certificate.

pub(crate) mod table;

use std::io::Cursor;
use std::sync::Arc;

use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use rustls::server::Acceptor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

use crate::app::App;
use crate::response::Answer;
use crate::transport::{self, Cut, Hangup, OutBody, Rewound};
use table::Served;

const HANDSHAKE: u8 = 0x16;
/// A fatal alert, description 112, in a record of its own (RFC 8446, section 6).
const UNRECOGNIZED_NAME: [u8; 7] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 112];
/// A `ClientHello` beyond this is not one.
const HELLO_LIMIT: usize = 64 * 1024;

/// Serves one connection to the edge.
pub(crate) async fn connection(app: Arc<App>, mut tcp: TcpStream) {
    let hangup = Hangup::of(&tcp);
    let mut head = Vec::new();
    if !matches!(tcp.read_buf(&mut head).await, Ok(1..)) {
        return;
    }
    if head.first() != Some(&HANDSHAKE) {
        return plain(app, Rewound::new(head, tcp), hangup).await;
    }
    let name = server_name(&mut tcp, &mut head).await;
    let site = name.and_then(|name| app.edge.find(&name));
    let config = site.as_ref().and_then(|site| site.tls.as_ref().ok()).cloned();
    let (Some(site), Some(config)) = (site, config) else {
        let _ = tcp.write_all(&UNRECOGNIZED_NAME).await;
        let _ = tcp.shutdown().await;
        return;
    };
    if let Ok(tls) = TlsAcceptor::from(config).accept(Rewound::new(head, tcp)).await {
        let answer = move |_, _| std::future::ready(page(&site));
        transport::serve(tls, hangup, answer).await;
    }
}

/// Reads on until the `ClientHello` is complete; `head` keeps every byte for the handshake itself.
async fn server_name(tcp: &mut TcpStream, head: &mut Vec<u8>) -> Option<String> {
    loop {
        let mut acceptor = Acceptor::default();
        let mut unread = Cursor::new(head.as_slice());
        while acceptor.read_tls(&mut unread).ok()? > 0 {}
        if let Some(accepted) = acceptor.accept().ok()? {
            return accepted.client_hello().server_name().map(str::to_owned);
        }
        if head.len() > HELLO_LIMIT || !matches!(tcp.read_buf(head).await, Ok(1..)) {
            return None;
        }
    }
}

async fn plain(app: Arc<App>, io: Rewound<TcpStream>, hangup: Hangup) {
    transport::serve(io, hangup, move |request, cut| plain_answer(app.clone(), request, cut)).await;
}

async fn plain_answer(app: Arc<App>, request: Request<Incoming>, cut: Cut) -> Response<OutBody> {
    let host = host(&request);
    match app.edge.find(&host) {
        None => Answer::text(StatusCode::MISDIRECTED_REQUEST, format!("{host} is not served here\n")).whole(),
        Some(site) if !site.http => cut.now().await,
        Some(site) if site.force_https => to_https(&host, &request),
        Some(site) => page(&site),
    }
}

fn page(site: &Served) -> Response<OutBody> {
    Answer::text(StatusCode::OK, site.page()).whole()
}

fn to_https(host: &str, request: &Request<Incoming>) -> Response<OutBody> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let answer = Answer::empty(StatusCode::MOVED_PERMANENTLY);
    match HeaderValue::try_from(format!("https://{host}{path}")) {
        Ok(location) => answer.with(header::LOCATION, location).whole(),
        Err(_) => Answer::empty(StatusCode::BAD_REQUEST).whole(),
    }
}

/// The host that is asked for, without a port.
fn host(request: &Request<Incoming>) -> String {
    let header = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    let authority =
        request.uri().authority().map(http::uri::Authority::as_str).or(header).unwrap_or_default();
    authority.split_once(':').map_or(authority, |(host, _)| host).to_owned()
}
