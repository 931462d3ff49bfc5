//! Checks around a change of `cert_id`, for every command that makes one: the certificate covers the site, and afterwards
//! the site is bound to it.

use serde_json::{Map, Value};

use super::label;
use crate::api::{ApiObject, Site};
use crate::bundle::{Bundle, Files};
use crate::cmd::session::{CONTRADICTION_HINT, Session};
use crate::error::{CommandError, ErrorKind};
use crate::names::Domain;
use crate::report::Report;
use crate::text::{list, sanitize};

/// A change of `cert_id`.
pub(super) struct Binding<'a> {
    domain: &'a Domain,
    /// The site in messages.
    label: String,
    /// Whether it is bound to a record now, readable or not.
    is_bound: bool,
    /// The record to bind it to; `None`: to no record.
    pub(super) cert: Option<u64>,
}

impl<'a> Binding<'a> {
    /// The change that these fields make, if they have a `cert_id`. `before` is the site, unless it is to be created.
    pub(super) fn of(
        fields: &Map<String, Value>,
        domain: &'a Domain,
        before: Option<&ApiObject<Site>>,
    ) -> Option<Self> {
        let cert = fields.get("cert_id")?.as_u64().filter(|id| *id != 0);
        let is_bound = before.is_some_and(|site| !site.known.is_unbound());
        Some(Self { domain, label: before.map_or_else(|| domain.to_string(), label), is_bound, cert })
    }

    /// Refuses a binding that leaves the site without a certificate that covers it, or warns if that is allowed.
    pub(super) async fn check(
        &self,
        allow_uncovered: bool,
        session: &Session,
        report: &mut Report,
    ) -> Result<(), CommandError> {
        let uncovered = match self.cert {
            Some(cert) => self.uncovered(cert, session, report).await,
            None => self.is_bound.then(|| format!("{} would be left without a certificate", self.label)),
        };
        match uncovered {
            Some(uncovered) if !allow_uncovered => {
                let message = format_args!("{uncovered}; nothing was changed");
                Err(CommandError::new(ErrorKind::Refused, message)
                    .hint("bind another certificate, or pass --allow-uncovered"))
            }
            uncovered => {
                report.warnings.extend(uncovered);
                Ok(())
            }
        }
    }

    /// Fails if the saved site is not bound to the record.
    pub(super) fn require(&self, saved: &ApiObject<Site>) -> Result<(), CommandError> {
        let known = &saved.known;
        if known.cert_id == self.cert && known.unreadable_cert_id.is_none() {
            return Ok(());
        }
        let bound = match (known.cert_id, &known.unreadable_cert_id) {
            (Some(id), _) => format!("certificate {id}"),
            (None, Some(unreadable)) => format!("a cert_id that cannot be read ({unreadable})"),
            (None, None) => "no certificate".into(),
        };
        let message = format_args!(
            "{} is bound to {bound}, although the service reported that the change was saved",
            label(saved)
        );
        Err(CommandError::new(ErrorKind::Service, message).hint(CONTRADICTION_HINT))
    }

    /// Says that the certificate does not cover the domain, if that is known. Only the certificate itself counts: the
    /// listing may show fewer names than the certificate has, or a name that it does not have.
    async fn uncovered(&self, cert: u64, session: &Session, report: &mut Report) -> Option<String> {
        let download = match session.client.download(cert).await {
            // The record does not exist or belongs to another account; the service refuses it (section 4.7).
            Err(cause) if cause.refused_status() == Some(404) => return None,
            download => download.ok(),
        };
        let bundle = download.map(|download| {
            let files = Files { cert: "the record".into(), issuers: None, key: None };
            Bundle::from_bytes(&files, download.cert_pem.as_bytes(), None, None)
        });
        let Some(chain) = bundle.and_then(|bundle| bundle.chain.ok()) else {
            report.warnings.push(format!("cannot tell whether certificate {cert} covers {}", self.domain));
            return None;
        };
        let names: Vec<String> = chain.leaf.dns_names().map(sanitize).collect();
        let is_covered = self.domain.is_covered_by_any(chain.leaf.dns_names());
        (!is_covered)
            .then(|| format!("certificate {cert} does not cover {}, only {}", self.label, list(&names)))
    }
}
