//! Sends one attempt of a request and classifies the response by its status.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, DATE, HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Method, Version};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use tokio::time::timeout;

use super::client::Client;
use super::error::AttemptError;
use super::http::{connection_error, http_client, tls};
use super::limits::Limits;
use super::listing::Element;
use super::response::Response;
use crate::clock::Deadline;
use crate::secret::Secret;
use crate::settings::{BaseUrl, Proxy, Settings, SettingsError};
use crate::text;
use crate::trust::TrustStores;

/// Requests do not wait longer than this for the first one on a connection.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The longest pause that the service can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A request to an endpoint.
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    /// JSON.
    pub(super) body: Option<Bytes>,
    /// Whether errors may quote the response; not if that may hold a private key.
    pub(super) is_quoted: bool,
    /// Whether it must not be repeated.
    pub(super) is_sent_once: bool,
}

impl Request {
    pub(super) fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), body: None, is_quoted: true, is_sent_once: false }
    }

    pub(super) fn post(path: impl Into<String>, json: impl Into<Bytes>) -> Self {
        Self { body: Some(json.into()), ..Self::new(Method::POST, path) }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

/// A service, and how it is reached. All tasks that use it share its connections and its limits.
pub(crate) struct Service {
    pub(super) base_url: BaseUrl,
    api_key: Secret,
    /// Names the service in errors: its host and port, and how it is reached.
    peer: String,
    pub(super) limits: Limits,
    connect: Box<dyn Fn() -> Result<Connection, SettingsError> + Send + Sync>,
    connection: Mutex<Arc<Connection>>,
}

/// An HTTP client. Over HTTP/2 its requests share one connection, otherwise it opens as many as it needs.
struct Connection {
    client: reqwest::Client,
    /// Whether the first response came over HTTP/2; known from the start unless that is offered.
    is_http2: OnceLock<bool>,
    /// Held by the first request, whose response shows the version. Without it, each would open a connection of its own.
    first: tokio::sync::Mutex<()>,
}

impl Service {
    /// Loads the trust store within the deadline unless it is already loaded. Opens no connection yet. HTTP/2 is worth
    /// offering for several requests: for a single one it would only cost time.
    pub(crate) fn new(
        settings: &Settings,
        stores: &TrustStores,
        is_http2_offered: bool,
        deadline: Deadline,
    ) -> Result<Self, SettingsError> {
        let (base_url, proxy) = (settings.base_url.clone(), settings.proxy.clone());
        let mut tls = tls(&settings.roots, base_url.is_plain(), stores, deadline)?;
        let is_http2_offered = is_http2_offered && !base_url.is_plain();
        if is_http2_offered {
            tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        }
        let place = |proxy: &Proxy| proxy.variable.map_or_else(|| proxy.text(), |name| format!("in {name}"));
        let through = proxy.as_ref().map(|proxy| format!(" (through the proxy {})", place(proxy)));
        let peer = format!("{}{}", base_url.join("").authority(), through.unwrap_or_default());
        let connect = Box::new(move || {
            let client = http_client(tls.clone(), proxy.as_ref())?;
            let is_http2 = if is_http2_offered { OnceLock::new() } else { false.into() };
            Ok(Connection { client, is_http2, first: tokio::sync::Mutex::default() })
        });
        let connection = Mutex::new(Arc::new(connect()?));
        let (api_key, limits) = (settings.api_key.clone(), Limits::new());
        Ok(Self { base_url, api_key, peer, limits, connect, connection })
    }

    /// Waits until another request could be sent, or for as long as one would wait.
    pub(crate) async fn wait(&self, deadline: Deadline) {
        drop(self.limits.acquire(deadline).await);
    }
}

impl Client {
    /// Sends a request once, as soon as the limits permit it, and receives the response.
    pub(super) async fn send<T: Element>(&self, request: &Request) -> Result<Response<T>, AttemptError> {
        let Service { peer, limits, connect, connection, .. } = &*self.service;
        let _permit = limits.acquire(self.deadline).await.map_err(|pause| match pause {
            Duration::ZERO => AttemptError::timed_out(peer),
            pause => {
                let message = "it asks for a pause beyond the deadline".into();
                AttemptError::Unavailable { status: 429, retry_after: Some(pause), message }
            }
        })?;
        let current = || connection.lock().unwrap_or_else(PoisonError::into_inner);
        let used = Arc::clone(&current());
        let attempt = timeout(self.deadline.left(), self.send_on(&used, request)).await;
        let result = attempt.unwrap_or_else(|_| Err(AttemptError::timed_out(peer)));
        if let Err(error) = &result {
            if let Some(pause) = error.retry_after() {
                limits.pause(pause);
            }
            // Another attempt on the same connection would fail in the same way.
            let is_broken = matches!(error, AttemptError::NoResponse { is_sent: true, .. });
            let may_be_http2 = used.is_http2.get() != Some(&false);
            if is_broken && may_be_http2 && Arc::ptr_eq(&used, &current()) {
                match connect() {
                    Ok(new) => *current() = Arc::new(new),
                    Err(error) => log::info!("the connection is not replaced: {error}"),
                }
            }
        }
        result
    }

    async fn send_on<T: Element>(
        &self,
        connection: &Connection,
        request: &Request,
    ) -> Result<Response<T>, AttemptError> {
        // Until `is_http2` is known, waits for it, or holds the guard as the request that finds out.
        let mut first = None;
        if connection.is_http2.get().is_none() {
            first = timeout(MAX_WAIT, connection.first.lock()).await.ok();
            first.take_if(|_| connection.is_http2.get().is_some());
        }
        let Service { base_url, api_key, peer, limits, .. } = &*self.service;
        let builder = connection.client.request(request.method.clone(), base_url.join(&request.path));
        let mut builder = builder.bearer_auth(api_key.expose()).header(ACCEPT, "application/json");
        if let Some(body) = &request.body {
            builder = builder.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        log::info!("{request}");
        let response = builder.send().await;
        let response = response.map_err(|error| connection_error(error, peer))?;
        if *connection.is_http2.get_or_init(|| response.version() == Version::HTTP_2) {
            limits.widen();
        }
        drop(first);
        let (status, headers) = (response.status(), response.headers().clone());
        self.skew.set(skew(&headers, crate::clock::now()).or(self.skew.get()));
        let result = if status.is_success() {
            self.receive(request, response).await
        } else {
            let message = self.receive(request, response).await?.error_message();
            Err(self.failure(status.as_u16(), &headers, message))
        };
        log::info!("{request}: {status}");
        result
    }

    /// Receives and reads the body of a response.
    async fn receive<T: Element>(
        &self,
        request: &Request,
        mut body: reqwest::Response,
    ) -> Result<Response<T>, AttemptError> {
        let (status, redactor) = (body.status().as_u16(), Arc::clone(&self.redactor));
        let mut failure = None;
        let source = async || body.chunk().await.map_err(|error| failure = Some(error)).ok().flatten();
        let response = Response::receive(status, redactor, request.is_quoted, source).await;
        failure.map_or(Ok(response), |error| Err(connection_error(error, &self.service.peer)))
    }

    /// The error for a response that is not a success.
    fn failure(&self, status: u16, headers: &HeaderMap, message: String) -> AttemptError {
        match status {
            300..=399 => {
                let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
                let location = self.redactor.clean(location.unwrap_or("an unknown location"));
                AttemptError::Redirected { status, location: text::sanitize(&location) }
            }
            401 => AttemptError::Unauthorized { message },
            408 | 425 | 429 | 500.. => {
                AttemptError::Unavailable { status, retry_after: retry_after(headers), message }
            }
            _ => AttemptError::Refused { status, message },
        }
    }
}

/// How far a clock that shows `now` is ahead of the `Date` of a response (RFC 9110, section 6.6.1).
fn skew(headers: &HeaderMap, now: OffsetDateTime) -> Option<time::Duration> {
    Some(now - date(headers.get(DATE)?.to_str().ok()?)?)
}

/// The pause in `Retry-After`: seconds or a date (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let pause = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => (date(text)? - crate::clock::now()).try_into().unwrap_or_default(),
    };
    Some(pause.min(MAX_RETRY_AFTER))
}

/// A date as in `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, section 5.6.7); its two obsolete forms are not read.
fn date(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc2822).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let name = reqwest::header::HeaderName::from_static(name);
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn retry_after_is_at_most_a_day() {
        let day = Some(86_400);
        for (value, expected) in [
            ("0", Some(0)),
            ("86399", Some(86_399)),
            ("9007199254740993", day),
            ("18446744073709551615", day),
            ("Fri, 31 Dec 9999 23:59:59 GMT", day),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("18446744073709551616", None),
            ("-1", None),
            ("1e308", None),
            ("Mon, 01 Jan 0001 00:00:00 GMT", None),
            (&"9".repeat(1_000_000), None),
        ] {
            let pause = retry_after(&headers("retry-after", value));
            assert_eq!(pause.map(|pause| pause.as_secs()), expected, "{value:.40}");
        }
    }

    #[test]
    fn any_date_leads_to_a_skew() {
        let now = datetime!(2026-11-22 12:00 UTC);
        for (value, expected) in [
            ("Sun, 22 Nov 2026 11:59:00 GMT", Some(1)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(-4_193_449_199)),
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(29_922_480)),
            ("Mon, 01 Jan 0001 00:00:00 GMT", None),
            ("Fri, 31 Dec 9999 23:59:59 -0500", Some(-4_193_449_499)),
            ("18446744073709551616", None),
        ] {
            let skew = skew(&headers("date", value), now);
            assert_eq!(skew.map(time::Duration::whole_minutes), expected, "{value}");
        }
    }
}
