//! Why the API server's secrets cannot be read.

use std::time::Duration;

use crate::api::SetupError;
use crate::error::{CommandError, Diagnostic, ErrorKind as K};
use crate::file::ReadError;
use crate::hint::Hint;
use crate::runtime::RuntimeError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum KubernetesError {
    /// No service account is mounted, or this is not a pod.
    #[error("--kubernetes works only in a pod: {0} is not set")]
    NotInPod(&'static str),
    #[error("the address of the API server, {0}, is not a host and a port")]
    InvalidAddress(String),
    #[error("--kubernetes needs the token of a service account: {0}")]
    ServiceAccount(#[from] ReadError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// 401, with the token that is mounted now.
    #[error("the API server rejected the token of the service account (401)")]
    Unauthorized,
    /// 403
    #[error("the service account may not list the secrets in {namespace} (403): {message}")]
    Forbidden { namespace: String, message: String },
    /// 410: the continue token is too old.
    #[error("the list of secrets expired while its pages were read (410)")]
    Expired,
    /// 429, 5xx, or no response.
    #[error("the API server is unavailable: {reason}")]
    Unavailable { reason: String, retry_after: Option<Duration> },
    #[error("the API server refused to list the secrets in {namespace} ({status}): {message}")]
    Refused { namespace: String, status: u16, message: String },
    #[error("the API server sent an unintelligible list of secrets: {0}")]
    InvalidResponse(String),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl Diagnostic for KubernetesError {
    fn diagnose(&self) -> CommandError {
        let error = |kind| CommandError::new(kind, self);
        match self {
            Self::NotInPod(_) => {
                error(K::Config).hint("run it in a pod, or mount the secrets and name their directories")
            }
            Self::ServiceAccount(_) => error(K::Config).hint("set automountServiceAccountToken to true"),
            Self::Forbidden { namespace, .. } => error(K::Config)
                .hint(format!("in {namespace}, bind a role with `list` on `secrets` to the service account")),
            Self::InvalidAddress(_) | Self::Unauthorized | Self::Refused { .. } => error(K::Config),
            Self::Expired | Self::Unavailable { .. } => error(K::Temporary).hint(Hint::RETRY),
            Self::InvalidResponse(_) => error(K::Protocol),
            Self::Setup(error) => error.diagnose(),
            Self::Runtime(error) => error.diagnose(),
        }
    }
}
