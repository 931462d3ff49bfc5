//! The API: reads a request, applies a fault, authenticates, dispatches to an endpoint and logs the request.
//! The endpoints are in `certs` and `sites`; `render` builds response bodies.

mod call;
mod certs;
mod injection;
pub(crate) mod render;
mod sites;

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, StatusCode, Version, header};
use http_body_util::BodyExt;
use hyper::body::Body;
use serde_json::Value;

use crate::app::App;
use crate::request_log::{LogEntry, RecordedRequest, redacted_body, shortened, shortened_notices};
use crate::response::{RequestError, Response};
use crate::transport::{AbortHandle, HttpResponse};
use crate::{clock, openapi};
use call::{ApiResult, Call, header_text};
use render::Renderer;

/// Far more than any chain with its key.
const MAX_BODY: usize = 4 * 1024 * 1024;

/// Responds to one request. `connection` is the number of the TCP connection, for the log.
pub(crate) async fn handle(
    app: Arc<App>,
    connection: u64,
    request: Request<impl Body<Data = Bytes> + Unpin>,
    abort: AbortHandle,
) -> HttpResponse {
    let (head, body) = request.into_parts();
    let body = read_body(body).await;
    let fault = app.faults.take(head.method.as_str(), head.uri.path());
    let entry = app.request_log.add(RecordedRequest {
        number: 0,
        method: shortened(head.method.as_str()),
        path: shortened(head.uri.path()),
        query: shortened(head.uri.query().unwrap_or_default()),
        body: body.as_ref().map_or(Value::Null, |body| redacted_body(body)),
        account: None,
        user_agent: shortened(header_text(&head.headers, &header::USER_AGENT)),
        status: None,
        fault: fault.as_ref().map(|fault| fault.action.as_str().to_owned()),
        notices: Vec::new(),
        connection,
        http: if head.version == Version::HTTP_2 { "2" } else { "1.1" }.to_owned(),
    });
    let execute = || match &body {
        Some(body) => execute(&app, entry, &head, body),
        None => Response::text(StatusCode::PAYLOAD_TOO_LARGE, "the body is incomplete or too large\n"),
    };
    injection::respond(fault, entry, execute, abort).await
}

/// Reads the body; `None` if it is incomplete or too large. A body that is too large is read to its end, so
/// that the client has finished sending when the response arrives.
async fn read_body(mut body: impl Body<Data = Bytes> + Unpin) -> Option<Bytes> {
    let mut bytes = Vec::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.ok()?.into_data() {
            length += data.len();
            if length <= MAX_BODY {
                bytes.extend_from_slice(&data);
            }
        }
    }
    (length <= MAX_BODY).then(|| bytes.into())
}

/// Authenticates a request, runs its endpoint, and logs the account and the notices.
fn execute(app: &App, entry: LogEntry<'_>, head: &Parts, body: &Bytes) -> Response {
    let (method, path) = (&head.method, head.uri.path());
    let renderer = Renderer::new(&app.quirks);
    if path == "/openapi.json" && method == Method::GET {
        return Response::json(StatusCode::OK, &openapi::document(&app.quirks));
    }
    let account = match authenticate(app, head) {
        Ok(Some(account)) => account,
        Ok(None) => return unauthorized(renderer),
        Err(error) => return renderer.error(&error),
    };
    let call = Call::new(app, account, clock::now(), head, body);
    let response = route(&call, method, path).unwrap_or_else(|error| renderer.error(&error));
    let notices = shortened_notices(call.into_notices());
    for notice in &notices {
        app.notice(&format!("{method} {path}: {notice}"));
    }
    entry.update(|request| {
        request.account = Some(account);
        request.notices = notices;
    });
    response
}

/// Returns the account of the API key; `None` if the key is missing or invalid.
fn authenticate(app: &App, head: &Parts) -> Result<Option<i64>, RequestError> {
    let credentials = header_text(&head.headers, &header::AUTHORIZATION).split_once(' ');
    match credentials {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => {
            Ok(app.store().account_of(key.trim())?)
        }
        _ => Ok(None),
    }
}

fn route(call: &Call<'_>, method: &Method, path: &str) -> ApiResult {
    let segments: Vec<&str> = path.strip_prefix("/api/").unwrap_or_default().split('/').collect();
    let id = |text: &str| text.parse::<i64>().map_err(|_| RequestError::not_found("not found"));
    match (method.as_str(), segments.as_slice()) {
        ("GET", ["certs"]) => certs::list(call),
        ("POST", ["certs"]) => certs::create(call),
        ("POST", ["certs", "upload"]) => certs::upload(call),
        ("GET", ["certs", cert, "download"]) => certs::download(call, id(cert)?),
        ("GET", ["me", "sites"]) => sites::list(call),
        ("POST", ["sites"]) => sites::create(call),
        ("GET", ["sites", site]) => sites::get(call, id(site)?),
        ("DELETE", ["sites", site]) => sites::delete(call, id(site)?),
        ("POST", ["sites", site, "update"]) => sites::update(call, id(site)?),
        ("POST", ["sites", site, "enable"]) => sites::enable(call, id(site)?),
        ("POST", ["sites", site, "disable"]) => sites::disable(call, id(site)?),
        (_, ["certs"]) => Ok(method_not_allowed(call, "GET, POST")),
        (_, ["me", "sites"] | ["certs", _, "download"]) => Ok(method_not_allowed(call, "GET")),
        (_, ["sites", _]) => Ok(method_not_allowed(call, "GET, DELETE")),
        (_, ["certs", "upload"] | ["sites"] | ["sites", _, "update" | "enable" | "disable"]) => {
            Ok(method_not_allowed(call, "POST"))
        }
        _ => Err(RequestError::not_found("not found")),
    }
}

fn unauthorized(renderer: Renderer<'_>) -> Response {
    let error = RequestError::new(StatusCode::UNAUTHORIZED, "the API key is missing or invalid");
    renderer.error(&error).with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

fn method_not_allowed(call: &Call<'_>, allowed: &'static str) -> Response {
    let error = RequestError::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
    call.renderer().error(&error).with_header(header::ALLOW, HeaderValue::from_static(allowed))
}
