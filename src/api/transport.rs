//! Sends one attempt of a request and classifies the response by its status.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER,
};
use serde_json::Value;

use super::config::{ClientConfig, SetupError};
use super::connection::{RequestPhase, connection_error};
use super::error::AttemptError;
use super::http::http_client;
use super::json::JsonError;
use super::limiter::Limiter;
use super::response::Response;
use crate::clock::Deadline;
use crate::secret::Redactor;
use crate::settings::{BaseUrl, Proxy};
use crate::text;

/// Time limit of one attempt. Shorter than most deadlines, so that a stalled connection is replaced.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(25);

/// Maximum size of a response body.
const MAX_BODY_BYTES: usize = 32 << 20;

/// A request to an endpoint.
pub(super) struct Request {
    method: Method,
    path: String,
    body: Option<Bytes>,
}

impl Request {
    pub(super) fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), body: None }
    }

    pub(super) fn post(path: impl Into<String>, body: Option<Value>) -> Self {
        let body = body.map(|body| body.to_string().into());
        Self { method: Method::POST, path: path.into(), body }
    }

    /// A POST with this JSON.
    pub(super) fn upload(path: impl Into<String>, json: Bytes) -> Self {
        Self { method: Method::POST, path: path.into(), body: Some(json) }
    }

    pub(super) fn delete(path: impl Into<String>) -> Self {
        Self { method: Method::DELETE, path: path.into(), body: None }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// The HTTP client of one service, with the secrets that responses must not repeat.
pub(super) struct Transport {
    http: reqwest::Client,
    base_url: BaseUrl,
    /// Names the service in errors.
    peer: String,
    limiter: Arc<Limiter>,
    redactor: Arc<Redactor>,
    skew: Cell<Option<time::Duration>>,
}

impl Transport {
    pub(super) fn new(config: &ClientConfig, redactor: Redactor) -> Result<Self, SetupError> {
        let (base_url, limiter) = (config.base_url.clone(), Arc::clone(&config.limiter));
        let http = http_client(config.tls.clone(), config.proxy.as_ref(), default_headers(config)?)?;
        let peer = peer(&base_url, config.proxy.as_ref());
        Ok(Self { http, base_url, peer, limiter, redactor: Arc::new(redactor), skew: Cell::default() })
    }

    /// The same connections with other secrets.
    pub(super) fn with_redactor(&self, redactor: Redactor) -> Self {
        let (http, limiter) = (self.http.clone(), Arc::clone(&self.limiter));
        let (base_url, peer) = (self.base_url.clone(), self.peer.clone());
        Self { http, base_url, peer, limiter, redactor: Arc::new(redactor), skew: Cell::default() }
    }

    pub(super) fn base_url(&self) -> &BaseUrl {
        &self.base_url
    }

    /// The service's host and port.
    pub(super) fn peer(&self) -> &str {
        &self.peer
    }

    /// How far this host's clock is ahead of the service's; `None` until a response has a `Date`.
    pub(super) fn skew(&self) -> Option<time::Duration> {
        self.skew.get()
    }

    /// Sends a request once, as soon as the limiter permits it.
    pub(super) async fn send(&self, request: &Request, deadline: Deadline) -> Result<Response, AttemptError> {
        let permit = self.limiter.acquire(deadline).await.map_err(|backoff| self.not_sent(backoff))?;
        let result = self.attempt(request, deadline).await;
        self.limiter.release(permit, &result);
        result
    }

    /// The error of a request that the limiter cannot admit before the deadline.
    fn not_sent(&self, backoff: Duration) -> AttemptError {
        if backoff.is_zero() {
            return AttemptError::TimedOut { host: self.peer.clone() };
        }
        let message = "it asks for a pause beyond the deadline".into();
        AttemptError::Unavailable { status: 429, retry_after: Some(backoff), message }
    }

    async fn attempt(&self, request: &Request, deadline: Deadline) -> Result<Response, AttemptError> {
        let url = self.base_url.join(&request.path);
        let timeout = deadline.left().min(ATTEMPT_TIMEOUT);
        let mut builder = self.http.request(request.method.clone(), url).timeout(timeout);
        if let Some(body) = &request.body {
            builder = builder.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        log::info!("{request}");
        let response = builder
            .send()
            .await
            .map_err(|error| connection_error(error, &self.peer, RequestPhase::Request))?;
        let (status, headers) = (response.status(), response.headers().clone());
        self.skew.set(skew(&headers, crate::clock::now()).or(self.skew.get()));
        let body = read_body(response)
            .await
            .map_err(|error| connection_error(error, &self.peer, RequestPhase::Response))?;
        log::info!("{request}: {status}");
        self.classify(&headers, Response::new(status.as_u16(), body, Arc::clone(&self.redactor)))
    }

    /// Turns a response that is not a success into an error.
    fn classify(&self, headers: &HeaderMap, response: Response) -> Result<Response, AttemptError> {
        match response.status() {
            200..=299 => Ok(response),
            status @ 300..=399 => Err(AttemptError::Redirected { status, location: self.location(headers) }),
            401 => Err(AttemptError::Unauthorized { message: response.message() }),
            status @ (408 | 425 | 429 | 500..) => Err(AttemptError::Unavailable {
                status,
                retry_after: retry_after(headers),
                message: response.message(),
            }),
            status => Err(AttemptError::Refused { status, message: response.message() }),
        }
    }

    fn location(&self, headers: &HeaderMap) -> String {
        let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        text::sanitize(&self.redactor.clean(location.unwrap_or("an unknown location")))
    }
}

/// The service's host and port, and how it is reached.
fn peer(base_url: &BaseUrl, proxy: Option<&Proxy>) -> String {
    let proxy = proxy.map(|proxy| format!(" (through the proxy in {})", proxy.variable));
    format!("{}{}", base_url.join("").authority(), proxy.unwrap_or_default())
}

fn default_headers(config: &ClientConfig) -> Result<HeaderMap, SetupError> {
    let mut bearer = HeaderValue::try_from(format!("Bearer {}", config.api_key.expose()))
        .map_err(|_| SetupError::Client("the API key has characters that a header cannot carry".into()))?;
    bearer.set_sensitive(true);
    let accept = HeaderValue::from_static("application/json");
    Ok(HeaderMap::from_iter([(AUTHORIZATION, bearer), (ACCEPT, accept)]))
}

/// How far a clock that shows `now` is ahead of the `Date` of a response (RFC 9110, section 6.6.1).
fn skew(headers: &HeaderMap, now: time::OffsetDateTime) -> Option<time::Duration> {
    let date = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    Some(now - time::OffsetDateTime::from(date))
}

/// The pause in `Retry-After`: seconds or a date (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date: time::OffsetDateTime = httpdate::parse_http_date(text).ok()?.into();
    Some((date - crate::clock::now()).try_into().unwrap_or_default())
}

/// The body as text.
async fn read_body(mut response: reqwest::Response) -> Result<Result<String, JsonError>, reqwest::Error> {
    // If the length is known, the buffer never has to grow.
    let length =
        response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or_default();
    let mut bytes = Vec::with_capacity(length.min(MAX_BODY_BYTES));
    while let Some(chunk) = response.chunk().await? {
        if bytes.len() + chunk.len() > MAX_BODY_BYTES {
            return Ok(Err(JsonError::TooLarge("32 MiB")));
        }
        bytes.extend_from_slice(&chunk);
    }
    let lossy = |error: std::string::FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
    Ok(Ok(String::from_utf8(bytes).unwrap_or_else(lossy)))
}
