//! Requests to the API server with the service account of the pod.

use std::path::Path;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode, Url};
use serde::Deserialize;
use tokio::time::{sleep, timeout};
use zeroize::Zeroizing;

use super::error::KubernetesError;
use super::secret_list::SecretList;
use crate::api::{anonymous_client, failure_reason, retry_after};
use crate::clock::Deadline;
use crate::env::Env;
use crate::file;
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

const MAX_ATTEMPTS: u32 = 4;
const RETRY_PAUSE: Duration = Duration::from_millis(500);
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
    pub(crate) fn of_pod(env: &Env, deadline: Deadline) -> Result<Self, KubernetesError> {
        let variable = |name: &'static str| {
            let value = env.raw(name).ok_or(KubernetesError::NotInPod(name))?;
            Ok::<_, KubernetesError>(value.to_string_lossy())
        };
        let (host, port) = (variable(HOST)?, variable(PORT)?);
        let host = if host.contains(':') { format!("[{host}]") } else { host.into_owned() };
        let address = format!("https://{host}:{port}/");
        let invalid = |_| KubernetesError::InvalidAddress(sanitize(&address));
        let url = Url::parse(&address).map_err(invalid)?;
        let ca_file = Path::new(SERVICE_ACCOUNT).join("ca.crt");
        let client = anonymous_client(&Roots::File(ca_file), false, None, deadline)?;
        Ok(Self { client, url, deadline })
    }

    /// The namespace of the pod.
    pub(crate) fn own_namespace() -> Result<String, KubernetesError> {
        Ok(mounted("namespace")?.trim().to_owned())
    }

    /// One page of the TLS secrets of a namespace. Temporary failures are retried.
    pub(super) async fn list(
        &self,
        namespace: &str,
        selector: Option<&str>,
        next: Option<&str>,
    ) -> Result<SecretList, KubernetesError> {
        let mut url = self.url.clone();
        url.set_path(&format!("/api/v1/namespaces/{namespace}/secrets"));
        let parameters = [
            ("fieldSelector", Some("type=kubernetes.io/tls")),
            ("labelSelector", selector),
            ("limit", Some(PAGE_SIZE)),
            ("continue", next),
        ];
        let parameters = parameters.into_iter().filter_map(|(name, value)| Some((name, value?)));
        url.query_pairs_mut().extend_pairs(parameters);
        let mut attempt = 1;
        loop {
            let error = match self.attempt(namespace, url.clone()).await {
                // The token may just have been replaced: the kubelet does so before it expires.
                Err(error @ (KubernetesError::Unavailable { .. } | KubernetesError::Unauthorized)) => error,
                result => return result,
            };
            let pause = match &error {
                KubernetesError::Unavailable { retry_after: Some(pause), .. } => *pause,
                _ => RETRY_PAUSE * attempt,
            };
            let is_repeated_denial = matches!(error, KubernetesError::Unauthorized) && attempt > 1;
            if attempt >= MAX_ATTEMPTS || is_repeated_denial || pause >= self.deadline.left() {
                return Err(error);
            }
            log::info!("{error}; trying again");
            sleep(pause).await;
            attempt += 1;
        }
    }

    async fn attempt(&self, namespace: &str, url: Url) -> Result<SecretList, KubernetesError> {
        let limit = self.deadline.or_sooner(Deadline::after(ATTEMPT_TIMEOUT));
        let headers = HeaderMap::from_iter([
            (AUTHORIZATION, bearer()?),
            (ACCEPT, HeaderValue::from_static("application/json")),
        ]);
        log::info!("GET {}", url.path());
        let unavailable = |reason: String| KubernetesError::Unavailable { reason, retry_after: None };
        let timed_out = |_| unavailable("it did not respond in time".into());
        let failed = |error| unavailable(failure_reason(error));
        let request = self.client.get(url).headers(headers).send();
        let response = timeout(limit.left(), request).await.map_err(timed_out)?.map_err(failed)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = timeout(limit.left(), receive(response)).await.map_err(timed_out)??;
        if status == StatusCode::OK {
            // The library's message may quote a key.
            let invalid = |error: serde_json::Error| {
                let place = format!("line {}, column {}", error.line(), error.column());
                KubernetesError::InvalidResponse(format!("not a list of secrets at {place}"))
            };
            let list: SecretList = serde_json::from_slice(&body).map_err(invalid)?;
            return match list.kind.as_str() {
                "SecretList" => Ok(list),
                kind => Err(KubernetesError::InvalidResponse(format!("it is a {}", sanitize(kind)))),
            };
        }
        let message = serde_json::from_slice(&body)
            .map_or_else(|_| "no reason given".into(), |status: Status| sanitize(&status.message));
        let namespace = namespace.to_owned();
        Err(match status.as_u16() {
            401 => KubernetesError::Unauthorized,
            403 => KubernetesError::Forbidden { namespace, message },
            410 => KubernetesError::Expired,
            429 | 500.. => KubernetesError::Unavailable {
                reason: format!("{message} ({})", status.as_u16()),
                retry_after: retry_after(&headers),
            },
            status => KubernetesError::Refused { namespace, status, message },
        })
    }
}

/// Receives a body, which may hold keys.
async fn receive(mut response: Response) -> Result<Zeroizing<Vec<u8>>, KubernetesError> {
    let length = response.content_length().and_then(|length| usize::try_from(length).ok());
    let mut body = Zeroizing::new(Vec::with_capacity(length.unwrap_or_default().min(MAX_PAGE_BYTES)));
    let failed = |error| KubernetesError::Unavailable { reason: failure_reason(error), retry_after: None };
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > MAX_PAGE_BYTES {
            return Err(KubernetesError::InvalidResponse("a page is larger than 160 MiB".into()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The header with the token that is mounted now.
fn bearer() -> Result<HeaderValue, KubernetesError> {
    let token = mounted("token")?;
    let header = Zeroizing::new(format!("Bearer {}", token.trim()));
    let mut header = HeaderValue::try_from(header.as_str()).map_err(|_| KubernetesError::Unauthorized)?;
    header.set_sensitive(true);
    Ok(header)
}

fn mounted(name: &str) -> Result<Zeroizing<String>, KubernetesError> {
    Ok(file::read_text(&Path::new(SERVICE_ACCOUNT).join(name), MAX_FILE_BYTES, file::default_deadline())?)
}
