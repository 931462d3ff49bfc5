//! `edgecert sites create`. The request is sent once, because a second one would be refused; if the response is lost,
//! the sites are listed instead.

use serde_json::Value;

use super::change::contains;
use super::field_update::{self, Fields};
use super::label;
use crate::api::{ApiObject, RequestError, SavedSite, Site};
use crate::cli::CreateArgs;
use crate::cmd::session::{LIST_SITES_HINT, Session, contradiction, failed, failed_or_refused};
use crate::context::Context;
use crate::error::{CommandError, ErrorKind, Result};
use crate::names::Domain;
use crate::report::Report;

pub(super) async fn run(args: &CreateArgs, context: &Context, report: &mut Report) -> Result<()> {
    let (mut fields, named) = field_update::read(&args.fields)?;
    fields.extend(named);
    // The service expects the name without the trailing dot of DNS.
    let domain = Value::from(args.domain.spelled().trim_end_matches('.'));
    if fields.insert("domain".into(), domain.clone()).is_some_and(|other| other != domain) {
        let message = format_args!("the fields name a domain other than {}", args.domain);
        return Err(CommandError::new(ErrorKind::Usage, message).hint("name the domain once"));
    }
    field_update::check(&fields)?;
    let mut session = Session::open(&args.service, context, report)?;
    // If the list is incomplete, the service refuses a second site.
    let sites = session.sites().await?;
    if let Some(site) = sites.items.into_iter().find(|site| site.known.domain == args.domain) {
        let message = format_args!("{} already exists; nothing was sent", label(&site));
        let hint = format!("run `edgecert sites update {}` to change it", site.known.id);
        return Err(CommandError::new(ErrorKind::Service, message).hint(hint));
    }
    session.check_binding(&fields, &args.domain, None, args.fields.allow_uncovered).await?;
    let saved = match session.client.create_site(&fields).await {
        Err(cause) if cause.error.is_retryable() => {
            find_created(&args.domain, &cause, &fields, &mut session).await?
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
    let Some(mut site) = found else {
        let found = format_args!("{} is not among the sites", args.domain);
        return Err(contradiction(found, "it was created").hint(LIST_SITES_HINT));
    };
    session.report.push(format!("{}: created", label(&site)));
    show_dns_record(&site, session.report);
    session.verify(&site, &fields, &saved.ignored_fields)?;
    session.finish(args.wait, &mut site).await
}

/// Looks for the site after a lost response. Fields that the site lacks count as ignored.
async fn find_created(
    domain: &Domain,
    cause: &RequestError,
    sent: &Fields,
    session: &mut Session<'_>,
) -> Result<SavedSite> {
    let (found, _) = session.find_listed(domain).await.map_err(|listing| {
        listing.prefixed(format_args!("{domain} may or may not have been created ({}); ", cause.error))
    })?;
    let Some(site) = found else {
        let error = failed(format_args!("{domain} was not created"), cause);
        return Err(error.hint("run the same command again"));
    };
    session.report.warnings.push(format!("the response was lost ({}), but the site exists", cause.error));
    let is_missing = |(name, wanted): &(&String, &Value)| {
        *name != "domain" && !site.json.get(*name).is_some_and(|found| contains(found, wanted))
    };
    let ignored_fields = sent.iter().filter(is_missing).map(|(name, _)| name.clone()).collect();
    Ok(SavedSite { site: Some(site), ignored_fields })
}

/// Shows the DNS record to create, in zone file format, to which not every text can be written.
fn show_dns_record(site: &ApiObject<Site>, report: &mut Report) {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    let target = site.known.cname.as_deref().map(|cname| cname.trim_end_matches('.'));
    let Some(target) = target.filter(|target| target.split('.').all(is_label)) else {
        let warning = format!("the service returned no usable CNAME target for {}", site.known.domain);
        return report.warnings.push(warning);
    };
    let record = format!("{}. IN CNAME {}.", site.known.domain.host(), target);
    report.push(record.clone());
    report.set("dns_record", record);
}
