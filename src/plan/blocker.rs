//! Why a site does not get the certificate: it is impossible, or a guard refuses because it would break something else.

use super::RecordLeaf;
use crate::hint::{Hint, Override};
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::text;

/// Why the record that a site is bound to is not replaced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Blocker {
    #[error("it is bound to certificate {0}, which is not among the account's certificates")]
    UnknownRecord(u64),
    #[error(
        "it is bound to certificate {id}, which is stored for {}; an upload is for one domain",
        describe(domains)
    )]
    SeveralDomains { id: u64, domains: Vec<Domain> },
    #[error(
        "it is bound to certificate {0}, which is stored for {1}, and the new certificate does not cover {1}"
    )]
    NotCovered(u64, Domain),
    #[error(
        "it is bound to certificate {0}, which is stored for {1}, but the account has no such site to upload for"
    )]
    NoSuchSite(u64, Domain),
    #[error("it is bound to certificate {id}, which is one of several that are stored for {domain}")]
    Ambiguous { id: u64, domain: Domain },
    #[error("it has no certificate, and there is no record to bind it to")]
    NoRecord,
    #[error("its cert_id cannot be read: {0}")]
    UnreadableBinding(String),
    /// Guard; `Guards::replace_lets` overrides it.
    #[error("the service itself issues and renews certificate {0}")]
    SystemIssued(u64),
    /// Guard; `Guards::allow_shrink` overrides it.
    #[error(
        "certificate {id} is also bound to {}, which the new certificate does not cover",
        text::list(uncovered_sites)
    )]
    Shrink { id: u64, uncovered_sites: Vec<String> },
    /// Guard; `Guards::allow_partial` overrides it.
    #[error(
        "the service's list of sites is incomplete; a site that it lacks may be bound to certificate {0} and lose coverage"
    )]
    HiddenSites(u64),
    /// Guard; `Guards::allow_partial` overrides it.
    #[error(
        "the service's list of certificates is incomplete; an upload for {0} may replace one that it lacks"
    )]
    HiddenRecord(Domain),
    /// Guard; `Guards::allow_older` overrides it.
    #[error(
        "certificate {id} ({}) {} issued at {}, later than the new one",
        identify(&known.leaf),
        if known.is_certain { "was" } else { "may be one that was" },
        text::rfc3339(known.leaf.not_before)
    )]
    Older { id: u64, known: RecordLeaf },
}

impl Blocker {
    /// Whether it is a guard: the upload would succeed and break something else.
    pub(crate) fn is_guard(&self) -> bool {
        self.guard_flag().is_some()
    }

    /// The flag that overrides it if it is a guard.
    fn guard_flag(&self) -> Option<&'static Override> {
        self.remedy().1.iter().find(|known| known.flag != REBIND)
    }

    /// The reason in a few words, with the flag that overrides it. The error has the details.
    pub(super) fn summary(&self) -> String {
        let reason = match self {
            Self::UnknownRecord(id) => format!("bound to certificate {id}, which is not listed"),
            Self::SeveralDomains { id, .. } => format!("certificate {id} is stored for several domains"),
            Self::NotCovered(id, domain) | Self::NoSuchSite(id, domain) => {
                format!("bound to certificate {id} of {domain}")
            }
            Self::Ambiguous { id, domain } => format!("certificate {id} is one of several for {domain}"),
            Self::NoRecord => "no record to bind it to".into(),
            Self::UnreadableBinding(_) => "its cert_id cannot be read".into(),
            Self::SystemIssued(id) => format!("the service renews certificate {id}"),
            Self::Shrink { id, uncovered_sites } => {
                let sites = text::count(uncovered_sites.len(), "uncovered site");
                format!("certificate {id} is also bound to {sites}")
            }
            Self::HiddenSites(_) | Self::HiddenRecord(_) => "the service's list is incomplete".into(),
            Self::Older { id, .. } => format!("certificate {id} is newer"),
        };
        match self.guard_flag().or(self.remedy().1.first()) {
            Some(Override { flag, .. }) => format!("{reason} ({flag})"),
            None => reason,
        }
    }

    /// What to do about it; `can_rebind`: see [`Plan`](super::Plan).
    pub(crate) fn hint(&self, can_rebind: bool) -> Hint {
        let (mut instead, flags) = self.remedy();
        if matches!(self, Self::Shrink { .. }) && !can_rebind {
            // The record is stored for this site, so the other one has to leave it.
            instead = "add those names to the certificate, or first give the other site a record of its own (deploy a lineage that covers it with `--domain NAME --wait 0`, then run `edgecert sites bind NAME ID`)";
        }
        let flags = flags.iter().filter(|known| can_rebind || known.flag != REBIND).copied().collect();
        Hint::Override { instead, flags }
    }

    /// What to do about it, and the flags that help instead: its own if it is a guard, and `--rebind` if binding to another
    /// record would help. The summary names the first one, unless it is a guard.
    fn remedy(&self) -> (&'static str, &'static [Override]) {
        match self {
            Self::SystemIssued(_) => ("let the service renew it", &[REPLACE_LETS, REBIND_TO_OTHER]),
            Self::Shrink { .. } => ("add those names to the certificate", &[REBIND_TO_OWN, ALLOW_SHRINK]),
            Self::HiddenSites(_) | Self::HiddenRecord(_) => {
                ("deploy again when the service lists everything", &[ALLOW_PARTIAL])
            }
            Self::Older { .. } => ("deploy the latest renewal", &[ALLOW_OLDER]),
            Self::NoRecord => {
                ("upload a certificate for the site's own domain in the service, then deploy again", &[])
            }
            Self::UnreadableBinding(_) => {
                ("report this value to the service's support", &[REBIND_TO_UPLOADED])
            }
            Self::UnknownRecord(_)
            | Self::SeveralDomains { .. }
            | Self::NotCovered(..)
            | Self::NoSuchSite(..)
            | Self::Ambiguous { .. } => {
                ("bind the site to another record in the service", &[REBIND_TO_UPLOADED])
            }
        }
    }
}

const REPLACE_LETS: Override = Override { flag: "--replace-lets", purpose: "to replace it" };
const ALLOW_SHRINK: Override =
    Override { flag: "--allow-shrink", purpose: "to replace the certificate anyway" };
const ALLOW_PARTIAL: Override =
    Override { flag: "--allow-partial", purpose: "to replace the certificate anyway" };
const ALLOW_OLDER: Override = Override { flag: "--allow-older", purpose: "to go back to this one" };
const REBIND: &str = "--rebind";
const REBIND_TO_UPLOADED: Override =
    Override { flag: REBIND, purpose: "to bind the site to the uploaded record" };
const REBIND_TO_OTHER: Override = Override { flag: REBIND, purpose: "to bind the site to another record" };
const REBIND_TO_OWN: Override =
    Override { flag: REBIND, purpose: "to bind this site to a record of its own" };

/// Identifies a leaf by its issuer and the start of its fingerprint.
fn identify(leaf: &Leaf) -> String {
    let issuer = leaf.issuer.as_ref().map(|issuer| format!("issuer {issuer}, ")).unwrap_or_default();
    format!("{issuer}SHA-256 {}", leaf.fingerprint.chars().take(16).collect::<String>())
}

fn describe(domains: &[Domain]) -> String {
    if domains.is_empty() { "no readable domain".into() } else { text::list(domains) }
}
