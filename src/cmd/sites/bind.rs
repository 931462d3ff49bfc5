//! `edgecert sites bind`: sets `cert_id`, after checking what the certificate covers.

use std::fmt::Write as _;

use serde_json::{Map, json};

use super::{change, label, update};
use crate::api::{ApiObject, Site};
use crate::bundle::{Bundle, Files};
use crate::cert::Certificate;
use crate::cli::BindArgs;
use crate::cmd::session::{CONTRADICTION_HINT, Session};
use crate::error::{CommandError, Diagnostic, ErrorKind};
use crate::report::CommandReport;
use crate::text::{list, sanitize};

/// Why a site is not bound to the certificate.
#[derive(Debug, thiserror::Error)]
pub(super) enum BindError {
    #[error("{uncovered}; nothing was changed")]
    Uncovered { uncovered: String },
    #[error("{site} is bound to {bound}, although the service reported that the change was saved")]
    NotBound { site: String, bound: String },
}

impl Diagnostic for BindError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Uncovered { .. } => ErrorKind::Refused,
            Self::NotBound { .. } => ErrorKind::Service,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Uncovered { .. } => "bind another certificate, or pass --allow-uncovered",
            Self::NotBound { .. } => CONTRADICTION_HINT,
        };
        Some(hint.to_owned())
    }
}

pub(super) async fn run(
    args: &BindArgs,
    session: &Session,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let before = session.find(&args.site).await?;
    if let Some(names) = names_if_uncovered(&before, args.cert, session, report).await? {
        let uncovered = format!("certificate {} does not cover {}, only {names}", args.cert, label(&before));
        if !args.allow_uncovered {
            return Err(BindError::Uncovered { uncovered }.into());
        }
        report.warnings.push(uncovered);
    }
    let fields = Map::from_iter([("cert_id".to_owned(), json!(args.cert))]);
    let (after, ignored) = update::save(&before, &fields, session).await?;
    report.body.set("site", &after.json);
    change::require_none_ignored(&ignored, &fields, &after, report)?;
    if after.known.cert_id != Some(args.cert) {
        let bound = after.known.cert_id;
        let bound = bound.map_or_else(|| "no certificate".into(), |id| format!("certificate {id}"));
        return Err(BindError::NotBound { site: label(&after), bound }.into());
    }
    let _ = writeln!(report.body.text, "{}: bound to certificate {}", label(&after), args.cert);
    change::finish(args.wait, after, session, report).await?;
    Ok(())
}

/// Returns the names of the certificate if they are known not to cover the site's domain.
///
/// Only the certificate itself counts: the listing may show fewer names than it has, or a name that it lacks.
async fn names_if_uncovered(
    site: &ApiObject<Site>,
    cert: u64,
    session: &Session,
    report: &mut CommandReport,
) -> Result<Option<String>, CommandError> {
    let domain = &site.known.domain;
    let records = session.records().await?;
    let Some(record) = records.into_iter().find(|record| record.known.id == cert) else {
        // The record does not exist or belongs to another account; the service refuses it (section 4.7).
        return Ok(None);
    };
    let leaf = match session.client.download(cert).await {
        Ok(download) => leaf(&download.cert_pem),
        Err(_) => None,
    };
    let Some(leaf) = leaf else {
        if !record.known.domains.contains(domain) {
            report.warnings.push(format!("cannot tell whether certificate {cert} covers {domain}"));
        }
        return Ok(None);
    };
    let names: Vec<String> = leaf.dns_names().map(sanitize).collect();
    Ok((!domain.is_covered_by_any(leaf.dns_names())).then(|| list(&names)))
}

fn leaf(pem: &str) -> Option<Certificate> {
    let files = Files { cert: "the record".into(), issuers: None, key: None };
    Bundle::from_bytes(&files, pem.as_bytes(), None, None).chain.ok().map(|chain| chain.leaf)
}
