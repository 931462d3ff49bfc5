//! Why a site did not get the certificate, or may not have got it. Such an error fails the run without stopping
//! the other sites.

use crate::api::RequestError;
use crate::error::{Diagnostic, ErrorKind, Subject};
use crate::hint::{Hint, Override};
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::plan::Blocker;
use crate::text;

#[derive(Debug, thiserror::Error)]
pub(super) enum SiteError<'a> {
    #[error("the account has no site {0}")]
    NoSuchSite(&'a Domain),
    #[error("{domain} is {}: {blocker}", blocked_outcome(blocker))]
    Blocked { domain: &'a Domain, blocker: &'a Blocker, can_rebind: bool },
    #[error(
        "the upload for {domain} failed: {failed} ({}){}",
        text::count(failed.attempts as usize, "attempt"),
        if failed.may_be_done { "; the service may have stored it" } else { "" }
    )]
    Upload { domain: &'a Domain, failed: &'a RequestError },
    #[error("{domain} is not verified: {detail}")]
    Unconfirmed { domain: &'a Domain, detail: &'a str },
    #[error("{domain} is misbound: certificate {id} was created, and the site is not bound to it")]
    Unused { domain: &'a Domain, id: u64 },
    #[error("{0}: the account no longer has this site")]
    Missing(&'a Domain),
    #[error("{0} might not be bound: it could not be read after the upload")]
    Unread(&'a Domain),
    #[error("{domain} could not be bound to certificate {id}: {failed}")]
    Bind { domain: &'a Domain, id: u64, failed: &'a RequestError },
    #[error("{domain} could not be bound to certificate {id}: the service ignored {}", text::sanitize(&text::list(fields)))]
    IgnoredFields { domain: &'a Domain, id: u64, fields: Vec<String> },
    #[error("{domain} is misbound: {detail}")]
    Misbound { domain: &'a Domain, detail: String },
    #[error("{domain} is stale: {}", text::list(observations))]
    Stale { domain: &'a Domain, observations: Vec<String> },
    #[error("{domain} is not verified: {reason}")]
    Unverified { domain: &'a Domain, reason: String },
}

impl Diagnostic for SiteError<'_> {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Blocked { blocker, .. } if blocker.is_guard() => ErrorKind::Refused,
            Self::NoSuchSite(_)
            | Self::Blocked { .. }
            | Self::Missing(_)
            | Self::IgnoredFields { .. }
            | Self::Unused { .. }
            | Self::Misbound { .. } => ErrorKind::Service,
            Self::Unconfirmed { .. } => ErrorKind::Protocol,
            Self::Upload { failed, .. } | Self::Bind { failed, .. } => failed.kind(),
            Self::Unread(_) | Self::Stale { .. } | Self::Unverified { .. } => ErrorKind::Temporary,
        }
    }

    fn hint(&self) -> Option<Hint> {
        let hint = match self {
            Self::NoSuchSite(domain) => {
                Hint::OmitDomain { instead: "create the site".into(), domain: domain.to_string() }
            }
            Self::Blocked { blocker, can_rebind, .. } => blocker.hint(*can_rebind),
            Self::Upload { failed, .. } | Self::Bind { failed, .. } => return failed.hint(),
            Self::Missing(_) | Self::IgnoredFields { .. } => return None,
            Self::Unread(_) => Hint::RETRY,
            Self::Unconfirmed { .. } => {
                Hint::Retry { first: "report the response to the service", lasting: "" }
            }
            Self::Unused { domain, id } => format!(
                "omit --wait 0 to deploy to the record that the site is bound to, or run `edgecert sites bind {domain} {id}`"
            )
            .into(),
            Self::Misbound { .. } => {
                Hint::Override { instead: "bind it in the service", flags: &[REBIND] }
            }
            Self::Stale { .. } => {
                Hint::Retry { first: "", lasting: "if it stays stale, contact the service" }
            }
            Self::Unverified { .. } => {
                "check that this host can reach the edge, raise --wait, or pass --verify auto".into()
            }
        };
        Some(hint)
    }

    fn unsent(&self) -> Option<&'static str> {
        matches!(self, Self::NoSuchSite(_) | Self::Blocked { .. }).then_some("nothing was sent for it")
    }

    fn subject(&self) -> Option<Subject> {
        match self {
            Self::NoSuchSite(domain)
            | Self::Missing(domain)
            | Self::Unread(domain)
            | Self::Blocked { domain, .. }
            | Self::Upload { domain, .. }
            | Self::Unconfirmed { domain, .. }
            | Self::Unused { domain, .. }
            | Self::Bind { domain, .. }
            | Self::IgnoredFields { domain, .. }
            | Self::Misbound { domain, .. }
            | Self::Stale { domain, .. }
            | Self::Unverified { domain, .. } => Some(Subject::site(domain)),
        }
    }

    fn is_misuse(&self) -> bool {
        matches!(self, Self::NoSuchSite(_))
    }
}

const REBIND: Override =
    Override { flag: "--rebind", purpose: "to bind the site to the uploaded certificate" };

impl SiteError<'_> {
    /// Whether the message has the detail of the site's report.
    pub(super) fn has_detail(&self) -> bool {
        match self {
            Self::Blocked { .. }
            | Self::Upload { .. }
            | Self::Unconfirmed { .. }
            | Self::Unused { .. }
            | Self::Missing(_)
            | Self::Unread(_)
            | Self::Misbound { .. }
            | Self::Stale { .. }
            | Self::Unverified { .. } => true,
            Self::NoSuchSite(_) | Self::Bind { .. } | Self::IgnoredFields { .. } => false,
        }
    }
}

/// The outcome of a site that the plan leaves alone because of a blocker.
pub(super) fn blocked_outcome(blocker: &Blocker) -> Outcome {
    if blocker.is_guard() { Outcome::Guarded } else { Outcome::Misbound }
}
