//! Why the API server's secrets cannot be read.

use std::time::Duration;

use crate::api::SetupError;
use crate::error::{Diagnostic, ErrorKind};
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
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotInPod(_)
            | Self::InvalidAddress(_)
            | Self::ServiceAccount(_)
            | Self::Unauthorized
            | Self::Forbidden { .. }
            | Self::Refused { .. } => ErrorKind::Config,
            Self::Setup(error) => error.kind(),
            Self::Expired | Self::Unavailable { .. } => ErrorKind::Temporary,
            Self::InvalidResponse(_) => ErrorKind::Protocol,
            Self::Runtime(error) => error.kind(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::NotInPod(_) => {
                Some("run it in a pod, or mount the secrets and name their directories".into())
            }
            Self::ServiceAccount(_) => Some("set automountServiceAccountToken to true".into()),
            Self::Forbidden { namespace, .. } => Some(
                format!("in {namespace}, bind a role with `list` on `secrets` to the service account").into(),
            ),
            Self::Setup(error) => error.hint(),
            Self::Expired | Self::Unavailable { .. } => Some(Hint::Retry { first: "", lasting: "" }),
            Self::Runtime(error) => error.hint(),
            Self::InvalidAddress(_)
            | Self::Unauthorized
            | Self::Refused { .. }
            | Self::InvalidResponse(_) => None,
        }
    }
}
