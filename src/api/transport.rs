//! One attempt of one request: TLS, headers, time limits, and what the answer's status means.

use std::cell::Cell;
use std::error::Error as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use backon::BackoffBuilder as _;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER,
};
use reqwest::{Method, Response, StatusCode};
use rustls::{AlertDescription, RootCertStore};
use serde_json::Value;

use super::Error;
use super::limiter::Limiter;
use crate::clock::Deadline;
use crate::secret::{Redactor, Secret};
use crate::settings::{BaseUrl, Roots, Settings};
use crate::trust::{self, TrustStoreError};

/// An attempt may take so long, even if the run's deadline is further away: a stalled connection is tried afresh.
const ATTEMPT: Duration = Duration::from_secs(25);
const CONNECT: Duration = Duration::from_secs(10);

/// Of what the service says in words, no more is looked at.
const SAID: usize = 4096;

/// No listing of an account is larger.
const MAX_BYTES: usize = 32 << 20;

/// Why no client can be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    #[error(transparent)]
    Trust(#[from] TrustStoreError),
    #[error("the HTTP client cannot be set up: {0}")]
    Client(String),
}

/// What is needed to ask a service, set up once for as many clients as there may be.
pub(crate) struct ClientConfig {
    base: BaseUrl,
    key: Secret,
    tls: rustls::ClientConfig,
    limiter: Arc<Limiter>,
}

impl ClientConfig {
    /// Loads the trust store; nothing is sent.
    pub(crate) fn new(settings: &Settings) -> Result<Self, SetupError> {
        let tls = tls(&settings.roots, settings.base_url.is_plain())?;
        let (base, key) = (settings.base_url.clone(), settings.api_key.clone());
        Ok(Self { base, key, tls, limiter: Arc::new(Limiter::new()) })
    }
}

/// The HTTP client with its base address and headers.
pub(super) struct Transport {
    http: reqwest::Client,
    base: BaseUrl,
    limiter: Arc<Limiter>,
    redactor: Redactor,
    skew: Cell<Option<time::Duration>>,
}

/// An answer whose status is a success; not looked into yet. What is shown of it has to pass the redactor first.
pub(super) struct Body {
    status: u16,
    json: Option<Value>,
    /// What it says in words, free of secrets.
    message: String,
}

/// Pauses between attempts: 0.2 s, doubled up to 10 s, each with up to as much again at random, so that many hosts do
/// not come back at the same moment.
pub(super) fn delays() -> impl Iterator<Item = Duration> {
    backon::ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(200))
        .with_max_delay(Duration::from_secs(10))
        .with_jitter()
        .without_max_times()
        .build()
}

impl Transport {
    pub(super) fn new(access: &ClientConfig, redactor: Redactor) -> Result<Self, SetupError> {
        let (base, limiter) = (access.base.clone(), Arc::clone(&access.limiter));
        let mut bearer = HeaderValue::try_from(format!("Bearer {}", access.key.expose()))
            .map_err(|_| SetupError::Client("the API key does not fit into a header".into()))?;
        bearer.set_sensitive(true);
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, bearer);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let builder = reqwest::Client::builder()
            .user_agent(concat!("edgecert/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT)
            .tls_backend_preconfigured(access.tls.clone());
        // A proxy would read what is sent in the clear, and loopback needs none.
        let builder = if base.is_plain() { builder.no_proxy() } else { builder };
        let http = builder.build().map_err(|error| SetupError::Client(deepest(&error)))?;
        Ok(Self { http, base, limiter, redactor, skew: Cell::default() })
    }

    /// The same connections, with other secrets to keep.
    pub(super) fn with(&self, redactor: Redactor) -> Self {
        let (http, base, limiter) = (self.http.clone(), self.base.clone(), Arc::clone(&self.limiter));
        Self { http, base, limiter, redactor, skew: Cell::default() }
    }

    /// Sends a request once, as soon as the service may be asked.
    pub(super) async fn once(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
        deadline: Deadline,
    ) -> Result<Body, Error> {
        let permit = self.limiter.enter(deadline).await.map_err(|backoff| match backoff {
            Duration::ZERO => Error::TimedOut { host: self.base.join("").authority().to_owned() },
            backoff => {
                let message = "it asked to be left alone".into();
                Error::Unavailable { status: 429, retry_after: Some(backoff), message }
            }
        })?;
        let answer = self.send(method, path, body, deadline).await;
        self.limiter.leave(permit, &answer);
        answer
    }

    /// Sends a request and sorts the answer by its status.
    async fn send(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
        deadline: Deadline,
    ) -> Result<Body, Error> {
        let url = self.base.join(path);
        let host = url.authority().to_owned();
        let mut request = self.http.request(method.clone(), url).timeout(deadline.left().min(ATTEMPT));
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        log::info!("{method} {path}");
        let response = request.send().await.map_err(|error| sort(error, &host, Phase::Request))?;
        let (status, headers) = (response.status(), response.headers().clone());
        self.skew.set(skew(&headers, crate::clock::now()).or(self.skew.get()));
        let text = read(response).await.map_err(|error| sort(error, &host, Phase::Answer))?;
        log::info!("{method} {path}: {status}");
        let answer = self.understand(status, text.as_deref());
        let message = answer.message.clone();
        match status.as_u16() {
            200..=299 => Ok(answer),
            300..=399 => {
                Err(Error::Redirected { status: status.as_u16(), location: self.location(&headers) })
            }
            401 => Err(Error::Denied { message }),
            status @ (408 | 425 | 429 | 500..) => {
                Err(Error::Unavailable { status, retry_after: retry_after(&headers), message })
            }
            status => Err(Error::Refused { status, message }),
        }
    }

    /// How far this machine's clock is ahead of the service's, as the last answer that names its date tells.
    pub(super) fn skew(&self) -> Option<time::Duration> {
        self.skew.get()
    }

    /// Takes the run's secrets out of what the service says, because it may repeat what it was sent.
    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    fn understand(&self, status: StatusCode, text: Option<&str>) -> Body {
        let status = status.as_u16();
        let Some(text) = text else {
            return Body { status, json: None, message: "the answer is larger than 32 MiB".into() };
        };
        let json = serde_json::from_str(text).ok();
        let message = json.as_ref().and_then(reason);
        let message: String = message.as_deref().unwrap_or(text).chars().take(SAID).collect();
        let message = self.redactor.clean(&message);
        Body { status, json, message }
    }

    fn location(&self, headers: &HeaderMap) -> String {
        let location =
            headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or("an unknown location");
        crate::text::sanitize(&self.redactor.clean(location))
    }
}

impl Body {
    /// What `read` makes of the answer.
    pub(super) fn read<T>(self, read: impl Fn(&Value) -> Option<T>) -> Result<T, Error> {
        let (status, message) = (self.status, self.message);
        match self.json {
            Some(json) if json.get("ok") == Some(&Value::Bool(false)) => Err(Error::NotOk { message }),
            Some(json) => read(&json).ok_or(Error::Unreadable { status, message }),
            None => Err(Error::Unreadable { status, message }),
        }
    }

    /// Takes any answer, even an empty one, unless it says that the request was not carried out.
    pub(super) fn accept(self) -> Result<(), Error> {
        match self.json {
            Some(json) if json.get("ok") == Some(&Value::Bool(false)) => {
                Err(Error::NotOk { message: self.message })
            }
            _ => Ok(()),
        }
    }
}

/// The sentence in an error body, under whatever name it stands.
fn reason(json: &Value) -> Option<String> {
    const NAMES: [&str; 10] = [
        "error",
        "message",
        "msg",
        "detail",
        "reason",
        "error_description",
        "title",
        "description",
        "errors",
        "data",
    ];
    match json {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => items.iter().find_map(reason),
        Value::Object(map) => NAMES.iter().filter_map(|name| map.get(*name)).find_map(reason),
        _ => None,
    }
}

/// How far a clock that says `now` is ahead of the one that dated the answer (RFC 9110, section 6.6.1).
fn skew(headers: &HeaderMap, now: time::OffsetDateTime) -> Option<time::Duration> {
    let date = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    Some(now - time::OffsetDateTime::from(date))
}

/// Seconds or a date (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date: time::OffsetDateTime = httpdate::parse_http_date(text).ok()?.into();
    Some((date - crate::clock::now()).try_into().unwrap_or_default())
}

/// The body as text, or `None` where it is larger than any answer may be.
async fn read(mut response: Response) -> Result<Option<String>, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if bytes.len() + chunk.len() > MAX_BYTES {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Request,
    Answer,
}

/// A transport error by what it means for the caller; its URL is dropped.
fn sort(error: reqwest::Error, host: &str, phase: Phase) -> Error {
    let error = error.without_url();
    let host = host.to_owned();
    match tls_error(&error) {
        Some(rustls::Error::InvalidCertificate(reason)) => {
            return Error::Untrusted { host, reason: certificate_error(reason) };
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            return Error::NoTls { host, reason: "it does not speak TLS".into() };
        }
        Some(rustls::Error::AlertReceived(
            AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure,
        )) => {
            return Error::NoTls {
                host,
                reason: "it has no version or cipher of TLS in common with edgecert".into(),
            };
        }
        _ => {}
    }
    if error.is_timeout() {
        return Error::TimedOut { host };
    }
    let reason = deepest(&error);
    if error.is_connect() && phase == Phase::Request {
        Error::Unreachable { host, reason }
    } else {
        Error::ConnectionClosed { host, reason }
    }
}

/// The innermost reason, which names the fault; the outer ones say "error sending request".
fn deepest(error: &reqwest::Error) -> String {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        reason = inner.to_string();
        source = inner.source();
    }
    // Error numbers and links to manuals are for programmers.
    let reason = reason
        .split(" (os error")
        .next()
        .and_then(|reason| reason.split(": https://").next())
        .unwrap_or_default();
    crate::text::sanitize(reason)
}

/// The TLS error inside a transport error.
fn tls_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(error) = error.downcast_ref() {
        return Some(error);
    }
    // An I/O error hides what it wraps from `source`.
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => tls_error(inner),
        None => tls_error(error.source()?),
    }
}

fn certificate_error(error: &rustls::CertificateError) -> String {
    use rustls::CertificateError as E;
    match error {
        E::UnknownIssuer => "its issuer is not in the trust store".into(),
        E::Expired | E::ExpiredContext { .. } => "it has expired".into(),
        E::NotValidYet | E::NotValidYetContext { .. } => "it is not valid yet".into(),
        E::NotValidForName | E::NotValidForNameContext { .. } => "it is for another name".into(),
        E::Other(other) => match other.0.downcast_ref() {
            Some(webpki::Error::CaUsedAsEndEntity) => {
                "it is a CA certificate, which no server may show; make it one that is signed by a CA".into()
            }
            Some(error) => crate::check::words(error).into(),
            None => "it does not verify".into(),
        },
        _ => "it does not verify".into(),
    }
}

/// TLS with ring and the roots; a plain connection needs none of the system's.
fn tls(roots: &Roots, plain: bool) -> Result<rustls::ClientConfig, SetupError> {
    let roots = match roots {
        Roots::System { .. } if plain => RootCertStore::empty(),
        roots => trust::load(roots)?,
    };
    let config =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| SetupError::Client(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
    Ok(config)
}
