//! `edgecert sites create`: once, because a second request would be refused because of the first; an report that is
//! lost is made up for by reading the sites.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::super::service::{refused, request_failed};
use super::change::{self, holds};
use super::field_update::FieldUpdate;
use super::{Service, decided, label};
use crate::api::{ApiObject, List, RequestError, SavedSite, Site};
use crate::cli::CreateArgs;
use crate::error::{CommandError, Diagnostic as _, ErrorKind};
use crate::names::Domain;
use crate::report::CommandReport;

/// What will be sent, before anything is.
pub(super) fn fields(args: &CreateArgs) -> Result<FieldUpdate, CommandError> {
    let mut wish = FieldUpdate::read(&args.fields)?;
    // A dot at the end is for the DNS; the service wants a name.
    let domain = Value::from(args.domain.spelled().trim_end_matches('.'));
    if wish.fields.insert("domain".into(), domain.clone()).is_some_and(|other| other != domain) {
        let message = format!("another domain than {} is among the fields", args.domain);
        return Err(decided(ErrorKind::Usage, message, "name the domain once"));
    }
    wish.check()?;
    Ok(wish)
}

pub(super) async fn run(
    args: &CreateArgs,
    wish: &FieldUpdate,
    service: &Service,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    report.warnings.extend(wish.typo_warnings());
    if let Some(site) = look(&args.domain, service)
        .await
        .map_err(|failed| request_failed("cannot list the sites", &failed))?
    {
        let message = format!("{} is a site of this account already; nothing was sent", label(&site));
        let hint = format!("change it with `edgecert sites update {}`", site.known.id);
        return Err(decided(ErrorKind::Service, message, hint));
    }
    let saved = match service.client.create_site(&wish.fields).await {
        Ok(saved) => saved,
        Err(failed) if failed.is_retryable() => {
            resolve(&args.domain, &failed, &wish.fields, service, report).await?
        }
        Err(failed) => {
            let hint = "see that the account has a package that is neither expired nor used up, and that cert_id and package_id are its own";
            return Err(refused(format!("{} was not created", args.domain), &failed, hint));
        }
    };
    let site = match saved.site {
        Some(site) => site,
        None => look(&args.domain, service)
            .await
            .map_err(|failed| request_failed("cannot list the sites", &failed))?
            .ok_or_else(|| {
                let message = format!(
                    "{} is not among the sites, although the service says that it was created",
                    args.domain
                );
                decided(ErrorKind::Service, message, "`edgecert sites list` shows what there is")
            })?,
    };
    let _ = writeln!(report.body.text, "{}: created", label(&site));
    tell_dns(&site, report);
    report.body.set("site", &site.json);
    change::compare(&wish.fields, &saved.ignored_fields, &site, report);
    change::nothing_ignored(&saved.ignored_fields, &wish.fields, &site, report)?;
    change::settle(args.wait, site, service, report).await?;
    Ok(())
}

/// The site of a domain, if there is one.
async fn look(domain: &Domain, service: &Service) -> Result<Option<ApiObject<Site>>, RequestError> {
    let sites: List<ApiObject<Site>> = service.client.sites().await?;
    Ok(sites.items.into_iter().find(|site| site.known.domain == *domain))
}

/// After an report that was lost: where the domain is there now, it was created. Which fields were ignored is seen from
/// what it is like.
async fn resolve(
    domain: &Domain,
    failed: &RequestError,
    sent: &Map<String, Value>,
    service: &Service,
    report: &mut CommandReport,
) -> Result<SavedSite, CommandError> {
    let found = look(domain, service).await.map_err(|unread| {
        request_failed(
            format!(
                "whether {domain} was created is not known ({}), and the sites cannot be listed",
                failed.error
            ),
            &unread,
        )
    })?;
    let Some(site) = found else {
        let message = format!("{domain} was not created: {}", failed.error);
        let hint = "nothing of it is there now; run the same command again";
        return Err(decided(failed.kind(), message, hint));
    };
    report.warnings.push(format!("the report was lost ({}), but the site is there", failed.error));
    let is_missing = |(name, wanted): &(&String, &Value)| {
        *name != "domain" && !site.json.get(*name).is_some_and(|found| holds(found, wanted))
    };
    let ignored_fields = sent.iter().filter(is_missing).map(|(name, _)| name.clone()).collect();
    Ok(SavedSite { site: Some(site), ignored_fields })
}

/// The record that DNS needs, as a zone file has it.
fn tell_dns(site: &ApiObject<Site>, report: &mut CommandReport) {
    let target = site.known.cname.as_deref().map(|cname| cname.trim_end_matches('.'));
    let Some(target) = target.filter(|target| is_host(target)) else {
        report
            .warnings
            .push(format!("the service names no CNAME target for {} that DNS could take", site.known.domain));
        return;
    };
    let record = format!("{}. IN CNAME {}.", site.known.domain.host(), target);
    let _ = writeln!(report.body.text, "{record}");
    report.body.set("dns_record", record);
}

/// What a zone file can take. The system makes such names as it likes; whether they are good ones is not ours to say.
fn is_host(name: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    name.split('.').all(is_label)
}
