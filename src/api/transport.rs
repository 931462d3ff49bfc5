//! Sends one attempt of a request and classifies the response by its status.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER,
};
use reqwest::{Method, Version};
use serde_json::Value;
use tokio::time::timeout;

use super::body::{Body, TextBody};
use super::config::{ClientConfig, SetupError};
use super::connection::{RequestPhase, connection_error};
use super::connections::{Connections, Pool};
use super::error::AttemptError;
use super::limiter::Limiter;
use super::opening::Opening;
use super::response::Response;
use crate::clock::Deadline;
use crate::secret::Redactor;
use crate::settings::{BaseUrl, Proxy};
use crate::text;

/// Time limit of one attempt, which begins again with each further `PROGRESS_BYTES` of its response. Shorter than most
/// deadlines, so that a stalled connection is replaced.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(25);

/// A response is not stalled while it brings this much within `ATTEMPT_TIMEOUT`.
const PROGRESS_BYTES: usize = 64 << 10;

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

/// A service, and how it is reached.
struct Service {
    connections: Connections,
    base_url: BaseUrl,
    /// Names the service in errors.
    peer: String,
    limiter: Arc<Limiter>,
    opening: Arc<Opening>,
}

/// The connections to one service, with the secrets that responses must not repeat.
pub(super) struct Transport {
    service: Arc<Service>,
    redactor: Arc<Redactor>,
    skew: Cell<Option<time::Duration>>,
}

impl Transport {
    pub(super) fn new(config: &ClientConfig, redactor: Redactor) -> Result<Self, SetupError> {
        let (base_url, limiter) = (config.base_url.clone(), Arc::clone(&config.limiter));
        let opening = Arc::new(Opening::new(!base_url.is_plain() && config.offers_http2()));
        let connections = Connections::new(config, default_headers(config)?, &opening)?;
        let peer = peer(&base_url, config.proxy.as_ref());
        let service = Arc::new(Service { connections, base_url, peer, limiter, opening });
        Ok(Self { service, redactor: Arc::new(redactor), skew: Cell::default() })
    }

    /// The same connections with other secrets.
    pub(super) fn with_redactor(&self, redactor: Redactor) -> Self {
        Self { service: Arc::clone(&self.service), redactor: Arc::new(redactor), skew: Cell::default() }
    }

    pub(super) fn base_url(&self) -> &BaseUrl {
        &self.service.base_url
    }

    /// The service's host and port.
    pub(super) fn peer(&self) -> &str {
        &self.service.peer
    }

    /// How far this host's clock is ahead of the service's; `None` until a response has a `Date`.
    pub(super) fn skew(&self) -> Option<time::Duration> {
        self.skew.get()
    }

    /// Waits until the limiter would permit a request.
    pub(super) async fn wait(&self, deadline: Deadline) {
        self.service.limiter.wait(deadline).await;
    }

    /// Sends a request once, as soon as the limiter permits it, and receives the response.
    pub(super) async fn send<B: Body>(
        &self,
        request: &Request,
        deadline: Deadline,
    ) -> Result<B::Response, AttemptError> {
        let permit =
            self.service.limiter.acquire(deadline).await.map_err(|backoff| self.not_sent(backoff))?;
        let pool = self.service.connections.pool();
        let result = self.attempt::<B>(request, &pool, deadline).await;
        match &result {
            Err(AttemptError::ConnectionClosed { .. }) => self.service.opening.set_closed(),
            Err(AttemptError::TimedOut { .. }) if self.service.opening.may_be_shared() => {
                self.service.connections.replace(&pool);
                self.service.opening.set_closed();
            }
            _ => {}
        }
        self.service.limiter.release(permit, &result);
        result
    }

    /// The error of a request that the limiter cannot admit before the deadline.
    fn not_sent(&self, backoff: Duration) -> AttemptError {
        if backoff.is_zero() {
            return self.timed_out();
        }
        let message = "it asks for a pause beyond the deadline".into();
        AttemptError::Unavailable { status: 429, retry_after: Some(backoff), message }
    }

    async fn attempt<B: Body>(
        &self,
        request: &Request,
        pool: &Pool,
        deadline: Deadline,
    ) -> Result<B::Response, AttemptError> {
        let first = timeout(deadline.left(), self.service.opening.wait()).await.ok().flatten();
        let url = self.service.base_url.join(&request.path);
        let mut builder = pool.client.request(request.method.clone(), url);
        if let Some(body) = &request.body {
            builder = builder.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        log::info!("{request}");
        let limit = deadline.or_sooner(Deadline::after(ATTEMPT_TIMEOUT));
        let response = timeout(limit.left(), builder.send())
            .await
            .map_err(|_| self.timed_out())?
            .map_err(|error| connection_error(error, &self.service.peer, RequestPhase::Request))?;
        let is_http2 = response.version() == Version::HTTP_2;
        self.service.limiter.set_http2(is_http2);
        self.service.opening.set_answered(is_http2);
        drop(first);
        let (status, headers) = (response.status(), response.headers().clone());
        self.skew.set(skew(&headers, crate::clock::now()).or(self.skew.get()));
        let result = if status.is_success() {
            self.receive::<B>(response, limit, deadline).await
        } else {
            let response = self.receive::<TextBody>(response, limit, deadline).await?;
            Err(self.failure(&headers, &response))
        };
        log::info!("{request}: {status}");
        result
    }

    /// Receives the body of a response. `limit` is the end of the attempt unless the response makes progress.
    async fn receive<B: Body>(
        &self,
        mut response: reqwest::Response,
        mut limit: Deadline,
        deadline: Deadline,
    ) -> Result<B::Response, AttemptError> {
        let length = response.content_length().and_then(|length| usize::try_from(length).ok());
        let mut body = B::begin(length.unwrap_or_default(), Arc::clone(&self.redactor));
        let mut progress = 0;
        loop {
            let chunk = timeout(limit.left(), response.chunk())
                .await
                .map_err(|_| self.timed_out())?
                .map_err(|error| connection_error(error, &self.service.peer, RequestPhase::Response))?;
            let Some(chunk) = chunk else { break };
            if body.push(&chunk).is_break() {
                break;
            }
            progress += chunk.len();
            if progress >= PROGRESS_BYTES {
                progress = 0;
                limit = deadline.or_sooner(Deadline::after(ATTEMPT_TIMEOUT));
            }
        }
        Ok(body.end(response.status().as_u16()))
    }

    fn timed_out(&self) -> AttemptError {
        AttemptError::TimedOut { host: self.service.peer.clone() }
    }

    /// The error for a response that is not a success.
    fn failure(&self, headers: &HeaderMap, response: &Response) -> AttemptError {
        match response.status() {
            status @ 300..=399 => AttemptError::Redirected { status, location: self.location(headers) },
            401 => AttemptError::Unauthorized { message: response.message() },
            status @ (408 | 425 | 429 | 500..) => AttemptError::Unavailable {
                status,
                retry_after: retry_after(headers),
                message: response.message(),
            },
            status => AttemptError::Refused { status, message: response.message() },
        }
    }

    /// Removes secrets from a text.
    pub(super) fn clean(&self, text: &str) -> String {
        self.redactor.clean(text)
    }

    fn location(&self, headers: &HeaderMap) -> String {
        let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
        text::sanitize(&self.redactor.clean(location.unwrap_or("an unknown location")))
    }
}

/// The service's host and port, and how it is reached.
fn peer(base_url: &BaseUrl, proxy: Option<&Proxy>) -> String {
    let proxy = proxy.map(|proxy| match proxy.variable {
        Some(variable) => format!(" (through the proxy in {variable})"),
        None => format!(" (through the proxy {})", proxy.text()),
    });
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
