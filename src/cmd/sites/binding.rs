//! The check before a change of `cert_id`, for every command that makes one: the certificate covers the site.

use serde_json::Value;

use super::field_update::Fields;
use super::label;
use crate::api::{ApiObject, Site};
use crate::bundle::{Bundle, Files};
use crate::cmd::session::Session;
use crate::error::{CommandError, ErrorKind, Result};
use crate::names::Domain;
use crate::text::{list, sanitize};

/// The record that a value of `cert_id` names; `None`: no record.
pub(super) fn record(cert_id: &Value) -> Option<u64> {
    cert_id.as_u64().filter(|id| *id != 0)
}

/// Refuses fields that leave the site without a certificate that covers it, or warns if that is allowed. `before` is the
/// site, unless it is to be created.
pub(super) async fn check(
    fields: &Fields,
    domain: &Domain,
    before: Option<&ApiObject<Site>>,
    allow_uncovered: bool,
    session: &mut Session<'_>,
) -> Result<()> {
    let Some(cert_id) = fields.get("cert_id") else { return Ok(()) };
    let site = before.map_or_else(|| domain.to_string(), label);
    let uncovered = if let Some(cert) = record(cert_id) {
        let names = uncovering_names(cert, domain, session).await;
        names.map(|names| format!("certificate {cert} does not cover {site}, only {}", list(&names)))
    } else {
        let is_bound = before.is_some_and(|site| !site.known.is_unbound());
        is_bound.then(|| format!("{site} would be left without a certificate"))
    };
    match uncovered {
        Some(uncovered) if !allow_uncovered => {
            let message = format_args!("{uncovered}; nothing was changed");
            let error = CommandError::new(ErrorKind::Refused, message);
            Err(error.hint("bind another certificate, or pass --allow-uncovered"))
        }
        uncovered => {
            session.report.warnings.extend(uncovered);
            Ok(())
        }
    }
}

/// The names of a certificate that is known not to cover the domain. Only the certificate itself counts: the listing may
/// show fewer names than the certificate has, or a name that it does not have.
async fn uncovering_names(cert: u64, domain: &Domain, session: &mut Session<'_>) -> Option<Vec<String>> {
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
        let warning = format!("cannot tell whether certificate {cert} covers {domain}");
        session.report.warnings.push(warning);
        return None;
    };
    let is_covered = domain.is_covered_by_any(chain.leaf.dns_names());
    (!is_covered).then(|| chain.leaf.dns_names().map(sanitize).collect())
}
