//! The API's front: reads a request, lets a fault strike it, finds out whose it is and which endpoint, and
//! writes down what happened. What an endpoint does is in `certs` and `sites`, how answers look in `shape`.

mod certs;
mod injection;
pub(crate) mod render;
mod sites;

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::app::App;
use crate::request_log::{self, redacted};
use crate::response::Answer;
use crate::transport::{Cut, OutBody};
use crate::{clock, openapi};

/// Far beyond any chain with its key.
const BODY_LIMIT: usize = 4 * 1024 * 1024;

/// A refusal in the service's words; how it looks is the quirks' business.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not found")
    }
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the sandbox's database: {error}"))
    }
}

type Outcome = Result<Answer, Refusal>;

/// A request as the endpoints see it.
struct Call<'a> {
    app: &'a App,
    account: i64,
    now: Timestamp,
    headers: &'a HeaderMap,
    body: &'a Bytes,
    notices: RefCell<Vec<String>>,
}

impl Call<'_> {
    /// The body as a JSON object.
    fn object(&self) -> Result<Map<String, Value>, Refusal> {
        let kind = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
            let message = "the body must be sent with Content-Type: application/json";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        match serde_json::from_slice(self.body) {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err(Refusal::bad("the body is not a JSON object")),
            Err(error) => Err(Refusal::bad(format!("the body is not JSON: {error}"))),
        }
    }

    /// Notices what is not part of the request's documented form.
    fn notice(&self, text: String) {
        self.notices.borrow_mut().push(text);
    }

    /// When a change made by this request reaches the edge.
    fn push_at(&self) -> i64 {
        self.app.push_at(self.now)
    }
}

/// Answers one request.
pub(crate) async fn handle(
    app: Arc<App>,
    connection: u64,
    request: Request<Incoming>,
    cut: Cut,
) -> Response<OutBody> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let collected = read(body).await;
    let fault = app.faults.take(head.method.as_str(), &path);
    let entry = app.journal.note(request_log::RecordedRequest {
        method: head.method.to_string(),
        path: path.clone(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        body: collected.as_ref().map_or(Value::Null, |body| redacted(body)),
        account: None,
        user_agent: text_of(&head.headers, &header::USER_AGENT).to_owned(),
        status: None,
        fault: fault.as_ref().map(|fault| fault.action.as_str().to_owned()),
        notices: Vec::new(),
        connection,
        http: if head.version == Version::HTTP_2 { "2" } else { "1.1" }.to_owned(),
    });
    let carry_out = || match &collected {
        Some(body) => carry_out(&app, entry, &head.method, &path, &head.headers, body),
        None => Answer::text(StatusCode::PAYLOAD_TOO_LARGE, "the body cannot be read or is too large\n"),
    };
    injection::answer(&app, entry, fault, carry_out, cut).await
}

/// The whole body; `None` when it ended early or is too large. That one is read to its end nevertheless, so that
/// the client has finished writing when the answer comes.
async fn read(mut body: Incoming) -> Option<Bytes> {
    let mut whole = Vec::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.ok()?.into_data() {
            length += data.len();
            if length <= BODY_LIMIT {
                whole.extend_from_slice(&data);
            }
        }
    }
    (length <= BODY_LIMIT).then(|| whole.into())
}

fn carry_out(
    app: &App,
    entry: usize,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Answer {
    if path == "/openapi.json" && method == Method::GET {
        return Answer::json(StatusCode::OK, &openapi::describe(&app.quirks));
    }
    let key = text_of(headers, &header::AUTHORIZATION).split_once(' ');
    let key = key.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer")).map(|(_, key)| key.trim());
    let account = key.map(|key| app.store().account_of(key));
    let account = match account.transpose() {
        Ok(Some(Some(account))) => account,
        Ok(_) => return unauthorized(app),
        Err(error) => return render::refusal(&app.quirks, &error.into()),
    };
    let call = Call { app, account, now: clock::now(), headers, body, notices: RefCell::default() };
    let answer = route(&call, method, path).unwrap_or_else(|refusal| render::refusal(&app.quirks, &refusal));
    let notices = call.notices.into_inner();
    for notice in &notices {
        app.notice(&format!("{method} {path}: {notice}"));
    }
    app.journal.amend(entry, |request| {
        request.account = Some(account);
        request.notices = notices;
    });
    answer
}

fn unauthorized(app: &App) -> Answer {
    let refusal = Refusal::new(StatusCode::UNAUTHORIZED, "the API key is missing or not valid");
    render::refusal(&app.quirks, &refusal).with(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

fn route(call: &Call<'_>, method: &Method, path: &str) -> Outcome {
    let segments: Vec<&str> = path.strip_prefix("/api/").unwrap_or_default().split('/').collect();
    let id = |text: &str| text.parse::<i64>().map_err(|_| Refusal::not_found());
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
        (_, ["certs"]) => Ok(not_allowed(call, "GET, POST")),
        (_, ["me", "sites"] | ["certs", _, "download"]) => Ok(not_allowed(call, "GET")),
        (_, ["sites", _]) => Ok(not_allowed(call, "GET, DELETE")),
        (_, ["certs", "upload"] | ["sites"] | ["sites", _, "update" | "enable" | "disable"]) => {
            Ok(not_allowed(call, "POST"))
        }
        _ => Err(Refusal::not_found()),
    }
}

fn not_allowed(call: &Call<'_>, allowed: &'static str) -> Answer {
    let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method not allowed");
    render::refusal(&call.app.quirks, &refusal).with(header::ALLOW, HeaderValue::from_static(allowed))
}

fn text_of<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
