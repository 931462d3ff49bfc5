//! `edgecert sites create`. The request is sent once, because a second one would be refused; if the response is lost,
//! the sites are listed instead.

use serde_json::{Map, Value};

use super::binding;
use super::change::{self, contains};
use super::field_update::FieldUpdate;
use super::label;
use crate::api::{ApiObject, RequestError, SavedSite, Site};
use crate::cli::CreateArgs;
use crate::cmd::session::{LIST_SITES_HINT, Session, failed, failed_or_refused};
use crate::context::Context;
use crate::error::{CommandError, ErrorKind};
use crate::names::Domain;
use crate::report::Report;

pub(super) async fn run(
    args: &CreateArgs,
    context: &Context,
    report: &mut Report,
) -> Result<(), CommandError> {
    let mut update = FieldUpdate::read(&args.fields)?;
    // The service expects the name without the trailing dot of DNS.
    let named = Value::from(args.domain.spelled().trim_end_matches('.'));
    if update.fields.insert("domain".into(), named.clone()).is_some_and(|other| other != named) {
        let message = format_args!("the fields name a domain other than {}", args.domain);
        return Err(CommandError::new(ErrorKind::Usage, message).hint("name the domain once"));
    }
    update.check()?;
    let session = Session::open(&args.service, args.wait, context)?;
    // If the list is incomplete, the service refuses a second site.
    let sites = session.sites().await?;
    if let Some(site) = sites.items.into_iter().find(|site| site.known.domain == args.domain) {
        let message = format_args!("{} already exists; nothing was sent", label(&site));
        let hint = format!("run `edgecert sites update {}` to change it", site.known.id);
        return Err(CommandError::new(ErrorKind::Service, message).hint(hint));
    }
    let allow_uncovered = args.fields.allow_uncovered;
    binding::check(&update.fields, &args.domain, None, allow_uncovered, &session, report).await?;
    let saved = match session.client.create_site(&update.fields).await {
        Err(cause) if cause.error.is_retryable() => {
            find_created(&args.domain, cause, &update.fields, &session, report).await?
        }
        result => result.map_err(|cause| {
            let hint = "see the reason that the service gives; a site needs a package that is neither expired nor used up, and cert_id and package_id must belong to this account";
            failed_or_refused(format_args!("{} was not created", args.domain), &cause, hint)
        })?,
    };
    let found = match saved.site {
        Some(site) => Some(site),
        None => session.find_listed(&args.domain).await?.0,
    };
    let Some(site) = found else {
        let message = format_args!(
            "{} is not among the sites, although the service reported that it was created",
            args.domain
        );
        return Err(CommandError::new(ErrorKind::Service, message).hint(LIST_SITES_HINT));
    };
    report.push(format!("{}: created", label(&site)));
    show_dns_record(&site, report);
    change::verify(&site, &update.fields, &saved.ignored_fields, report)?;
    change::finish(args.wait, site, &session, report).await.map(drop)
}

/// Looks for the site after a lost response. Fields that the site lacks count as ignored.
async fn find_created(
    domain: &Domain,
    cause: RequestError,
    sent: &Map<String, Value>,
    session: &Session,
    report: &mut Report,
) -> Result<SavedSite, CommandError> {
    let (found, _) = session.find_listed(domain).await.map_err(|listing| {
        listing.prefixed(format_args!("{domain} may or may not have been created ({}); ", cause.error))
    })?;
    let Some(site) = found else {
        return Err(
            failed(format_args!("{domain} was not created"), &cause).hint("run the same command again")
        );
    };
    report.warnings.push(format!("the response was lost ({}), but the site exists", cause.error));
    let is_missing = |(name, wanted): &(&String, &Value)| {
        *name != "domain" && !site.json.get(*name).is_some_and(|found| contains(found, wanted))
    };
    let ignored_fields = sent.iter().filter(is_missing).map(|(name, _)| name.clone()).collect();
    Ok(SavedSite { site: Some(site), ignored_fields })
}

/// Shows the DNS record to create, in zone file format.
fn show_dns_record(site: &ApiObject<Site>, report: &mut Report) {
    let target = site.known.cname.as_deref().map(|cname| cname.trim_end_matches('.'));
    let Some(target) = target.filter(|target| is_host_name(target)) else {
        let warning = format!("the service returned no usable CNAME target for {}", site.known.domain);
        report.warnings.push(warning);
        return;
    };
    let record = format!("{}. IN CNAME {}.", site.known.domain.host(), target);
    report.push(record.clone());
    report.set("dns_record", record);
}

/// Whether the name can be written to a zone file.
fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    name.split('.').all(is_label)
}
