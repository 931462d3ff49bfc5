//! `edgecert sites bind`: sets `cert_id`, after a look at what the certificate covers.

use std::fmt::Write as _;

use serde_json::{Map, json};

use super::{Service, change, decided, label, update};
use crate::api::{ApiObject, Site};
use crate::bundle::{Bundle, Files};
use crate::cert::Certificate;
use crate::cli::BindArgs;
use crate::error::{CommandError, ErrorKind};
use crate::report::CommandReport;
use crate::text::{list, sanitize};

pub(super) async fn run(
    args: &BindArgs,
    service: &Service,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let before = service.find(&args.site).await?;
    if let Some(names) = names_without(&before, args.cert, service, report).await? {
        let message = format!("certificate {} does not cover {}, only {names}", args.cert, label(&before));
        if !args.allow_uncovered {
            let hint = "bind another certificate, or pass --allow-uncovered";
            return Err(decided(ErrorKind::Refused, format!("{message}; nothing was changed"), hint));
        }
        report.warnings.push(message);
    }
    let fields = Map::from_iter([("cert_id".to_owned(), json!(args.cert))]);
    let (after, ignored) = update::save(&before, &fields, service).await?;
    report.body.set("site", &after.json);
    change::nothing_ignored(&ignored, &fields, &after, report)?;
    if after.known.cert_id != Some(args.cert) {
        let bound =
            after.known.cert_id.map_or_else(|| "no certificate".into(), |id| format!("certificate {id}"));
        let message = format!(
            "{} is bound to {bound}, although the service says that the change is saved",
            label(&after)
        );
        return Err(decided(
            ErrorKind::Service,
            message,
            "run the same command again, or ask the service's support",
        ));
    }
    let _ = writeln!(report.body.text, "{}: bound to certificate {}", label(&after), args.cert);
    change::settle(args.wait, after, service, report).await?;
    Ok(())
}

/// The names of the certificate where it is known that the site's domain is not among them. The list may show fewer
/// names than the certificate has, or one that was only declared, so the certificate itself decides.
async fn names_without(
    site: &ApiObject<Site>,
    cert: u64,
    service: &Service,
    report: &mut CommandReport,
) -> Result<Option<String>, CommandError> {
    let domain = &site.known.domain;
    let records = service.records().await?;
    let Some(record) = records.into_iter().find(|record| record.known.id == cert) else {
        // Another account's, or none at all: the service refuses it (section 4.7).
        return Ok(None);
    };
    let leaf = match service.client.download(cert).await {
        Ok(download) => leaf(&download.cert_pem),
        Err(_) => None,
    };
    let Some(leaf) = leaf else {
        if record.known.domains.contains(domain) {
            return Ok(None);
        }
        report.warnings.push(format!("whether certificate {cert} covers {domain} is not known"));
        return Ok(None);
    };
    let sans = leaf.dns_names.iter().map(String::as_str);
    let names: Vec<String> = leaf.dns_names.iter().map(|name| sanitize(name)).collect();
    Ok((!domain.is_covered_by_any(sans)).then(|| list(&names)))
}

fn leaf(pem: &str) -> Option<Certificate> {
    let files = Files { cert: "the record".into(), issuers: None, key: None };
    Bundle::from_bytes(&files, pem.as_bytes(), None, None).chain.ok().map(|chain| chain.leaf)
}
