//! Requests to the API server with the service account of the pod.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use reqwest::{Response, Url};
use serde::Deserialize;
use tokio::time::{sleep, timeout};
use zeroize::Zeroizing;

use super::secret_list::SecretList;
use crate::api::{anonymous_client, failure_reason};
use crate::clock::Deadline;
use crate::env::Env;
use crate::error::{CommandError, ErrorKind as K, Result};
use crate::file;
use crate::hint::Hint;
use crate::settings::Roots;
use crate::text::sanitize;

/// Where the token, the namespace and the CA of the API server are mounted.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const HOST: &str = "KUBERNETES_SERVICE_HOST";
const PORT: &str = "KUBERNETES_SERVICE_PORT";

/// Limit for a mounted file. A token has about 1 KiB, a namespace at most 63 characters.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Number of secrets per page. Each has at most 1 MiB, usually 5 KiB.
const PAGE_SIZE: &str = "100";
const MAX_PAGE_BYTES: usize = 160 << 20;

/// Pauses before the retries.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_millis(500), Duration::from_secs(1)];
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// The API server of the cluster that this pod runs in.
pub(crate) struct Cluster {
    client: reqwest::Client,
    url: Url,
    deadline: Deadline,
}

/// An error of the API server.
#[derive(Deserialize)]
struct Status {
    message: String,
}

impl Cluster {
    /// Finds the API server; sends nothing.
    pub(crate) fn of_pod(env: &Env, deadline: Deadline) -> Result<Self> {
        let variable = |name: &str| {
            env.raw(name).map(OsStr::to_string_lossy).ok_or_else(|| {
                let message = format_args!("--kubernetes works only in a pod: {name} is not set");
                let hint = "run it in a pod, or mount the secrets and name their directories";
                CommandError::new(K::Config, message).hint(hint)
            })
        };
        let (host, port) = (variable(HOST)?, variable(PORT)?);
        let host = if host.contains(':') { format!("[{host}]") } else { host.into_owned() };
        let address = format!("https://{host}:{port}/");
        let url = Url::parse(&address)
            .map_err(|_| CommandError::new(K::Config, format_args!("{HOST} and {PORT} are no address")))?;
        let ca_file = Path::new(SERVICE_ACCOUNT).join("ca.crt");
        let client = anonymous_client(&Roots::File(ca_file), false, None, deadline)?;
        Ok(Self { client, url, deadline })
    }

    /// The namespace of the pod.
    pub(crate) fn own_namespace() -> Result<String> {
        Ok(mounted("namespace")?.trim().to_owned())
    }

    /// A page of the TLS secrets of a namespace, the first one if `next` is empty. Temporary failures are retried.
    pub(super) async fn list(&self, namespace: &str, labels: Option<&str>, next: &str) -> Result<SecretList> {
        let mut url = self.url.clone();
        url.set_path(&format!("/api/v1/namespaces/{namespace}/secrets"));
        let parameters = [
            ("fieldSelector", Some("type=kubernetes.io/tls")),
            ("labelSelector", labels),
            ("limit", Some(PAGE_SIZE)),
            ("continue", Some(next).filter(|next| !next.is_empty())),
        ];
        let parameters = parameters.into_iter().filter_map(|(name, value)| Some((name, value?)));
        url.query_pairs_mut().extend_pairs(parameters);
        let mut pauses = PAUSES.into_iter();
        loop {
            let limit = self.deadline.or_sooner(Deadline::after(ATTEMPT_TIMEOUT));
            let attempt = timeout(limit.left(), self.attempt(url.clone())).await;
            let late = |_| Err(unavailable("it did not respond in time"));
            let (error, is_retryable) = match attempt.unwrap_or_else(late) {
                Ok((200, body)) => return read_page(&body),
                // 401: the token may just have been replaced; the kubelet does so before it expires.
                Ok((code, body)) => (refusal(namespace, code, &body), matches!(code, 401 | 429 | 500..)),
                Err(error) if error.kind() == K::Temporary => (error, true),
                Err(error) => return Err(error),
            };
            let pause = pauses.next().filter(|pause| is_retryable && *pause < self.deadline.left());
            let Some(pause) = pause else { return Err(error) };
            log::info!("{error}; trying again");
            sleep(pause).await;
        }
    }

    /// Returns status and body of the response.
    async fn attempt(&self, url: Url) -> Result<(u16, Zeroizing<Vec<u8>>)> {
        let token = bearer()?;
        log::info!("GET {}", url.path());
        let request = self.client.get(url).header(AUTHORIZATION, token).header(ACCEPT, "application/json");
        let response = request.send().await.map_err(broken)?;
        Ok((response.status().as_u16(), receive(response).await?))
    }
}

fn read_page(body: &[u8]) -> Result<SecretList> {
    // The library's message may quote a key.
    let invalid = |error: serde_json::Error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        invalid_response(format_args!("not a list of secrets at {place}"))
    };
    let list: SecretList = serde_json::from_slice(body).map_err(invalid)?;
    match list.kind.as_str() {
        "SecretList" => Ok(list),
        kind => Err(invalid_response(format_args!("it is a {}", sanitize(kind)))),
    }
}

/// The error for a response with another status than 200.
fn refusal(namespace: &str, status: u16, body: &[u8]) -> CommandError {
    let message = serde_json::from_slice(body)
        .map_or_else(|_| "no reason given".into(), |status: Status| sanitize(&status.message));
    let reason = format_args!("{message} ({status})");
    match status {
        401 => unauthorized(),
        // 410: the list has changed too much since its first page, so this page is gone.
        410 | 429 | 500.. => unavailable(reason),
        _ => {
            let message = format_args!("the API server refused to list the secrets in {namespace}: {reason}");
            let error = CommandError::new(K::Config, message);
            let hint = format!("in {namespace}, bind a role with `list` on `secrets` to the service account");
            if status == 403 { error.hint(hint) } else { error }
        }
    }
}

fn unauthorized() -> CommandError {
    CommandError::new(K::Config, "the API server rejected the token of the service account (401)")
}

/// A failure for now: 429, 5xx, or no response.
fn unavailable(reason: impl Display) -> CommandError {
    let message = format_args!("the API server is unavailable: {reason}");
    CommandError::new(K::Temporary, message).hint(Hint::RETRY)
}

fn broken(error: reqwest::Error) -> CommandError {
    unavailable(failure_reason(error))
}

pub(super) fn invalid_response(reason: impl Display) -> CommandError {
    let message = format_args!("the API server sent an unintelligible list of secrets: {reason}");
    CommandError::new(K::Protocol, message)
}

/// Receives a body, which may hold keys.
async fn receive(mut response: Response) -> Result<Zeroizing<Vec<u8>>> {
    let length = response.content_length().and_then(|length| usize::try_from(length).ok());
    let mut body = Zeroizing::new(Vec::with_capacity(length.unwrap_or_default().min(MAX_PAGE_BYTES)));
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if body.len() + chunk.len() > MAX_PAGE_BYTES {
            return Err(invalid_response("a page is larger than 160 MiB"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The header with the token that is mounted now.
fn bearer() -> Result<HeaderValue> {
    let token = mounted("token")?;
    let header = Zeroizing::new(format!("Bearer {}", token.trim()));
    let mut header = HeaderValue::try_from(header.as_str()).map_err(|_| unauthorized())?;
    header.set_sensitive(true);
    Ok(header)
}

fn mounted(name: &str) -> Result<Zeroizing<String>> {
    let path = Path::new(SERVICE_ACCOUNT).join(name);
    file::read_text(&path, MAX_FILE_BYTES, file::default_deadline()).map_err(|error| {
        let message = format_args!("--kubernetes needs the token of a service account: {error}");
        CommandError::new(K::Config, message).hint("set automountServiceAccountToken to true")
    })
}
