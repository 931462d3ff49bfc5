//! `edgecert sites create`. The request is sent once, because a second one would be refused; if the response is lost,
//! the sites are listed instead.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::binding::Binding;
use super::change::{self, contains};
use super::field_update::FieldUpdate;
use super::label;
use crate::api::{ApiObject, RequestError, SavedSite, Site};
use crate::cli::CreateArgs;
use crate::cmd::session::{LIST_SITES_HINT, OperationError, Session};
use crate::error::{CommandError, Diagnostic, ErrorKind};
use crate::hint::Hint;
use crate::names::Domain;
use crate::report::CommandReport;

/// Why a site was not created.
#[derive(Debug, thiserror::Error)]
pub(super) enum CreateError {
    #[error("the fields name a domain other than {0}")]
    OtherDomain(Domain),
    #[error("{site} already exists; nothing was sent")]
    Exists { site: String, id: u64 },
    #[error("{domain} is not among the sites, although the service reported that it was created")]
    Missing { domain: Domain },
    /// The response was lost, and the site is not there.
    #[error("{domain} was not created: {}", cause.error)]
    NotCreated { domain: Domain, cause: RequestError },
}

impl Diagnostic for CreateError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::OtherDomain(_) => ErrorKind::Usage,
            Self::Exists { .. } | Self::Missing { .. } => ErrorKind::Service,
            Self::NotCreated { cause, .. } => cause.kind(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::OtherDomain(_) => "name the domain once".into(),
            Self::Exists { id, .. } => format!("run `edgecert sites update {id}` to change it").into(),
            Self::Missing { .. } => LIST_SITES_HINT.into(),
            Self::NotCreated { .. } => "run the same command again".into(),
        })
    }
}

/// The fields to send, checked before anything is sent.
pub(super) fn fields(args: &CreateArgs) -> Result<FieldUpdate, CommandError> {
    let mut update = FieldUpdate::read(&args.fields)?;
    // The service expects the name without the trailing dot of DNS.
    let domain = Value::from(args.domain.spelled().trim_end_matches('.'));
    if update.fields.insert("domain".into(), domain.clone()).is_some_and(|other| other != domain) {
        return Err(CreateError::OtherDomain(args.domain.clone()).into());
    }
    update.check()?;
    Ok(update)
}

pub(super) async fn run(
    args: &CreateArgs,
    update: &FieldUpdate,
    session: &Session,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    report.warnings.extend(update.typo_warnings());
    // If the list is incomplete, the service refuses a second site.
    let sites = session.sites().await?;
    if let Some(site) = sites.items.into_iter().find(|site| site.known.domain == args.domain) {
        return Err(CreateError::Exists { site: label(&site), id: site.known.id }.into());
    }
    let (domain, cert) = (&args.domain, update.cert_id().filter(|id| *id != 0));
    let binding = Binding { domain, label: domain.to_string(), is_bound: false, cert };
    if cert.is_some() {
        binding.check(args.fields.allow_uncovered, session, report).await?;
    }
    let saved = create(&args.domain, &update.fields, session, report).await?;
    let site = match saved.site {
        Some(site) => site,
        None => session
            .find_listed(&args.domain)
            .await?
            .ok_or_else(|| CreateError::Missing { domain: args.domain.clone() })?,
    };
    let _ = writeln!(report.body.text, "{}: created", label(&site));
    show_dns_record(&site, report);
    report.body.set("site", &site.json);
    change::warn_of_differences(&update.fields, &saved.ignored_fields, &site, report);
    change::require_none_ignored(&saved.ignored_fields, &update.fields, &site, report)?;
    if cert.is_some() {
        binding.require(&site)?;
    }
    change::finish(args.wait, site, session, report).await?;
    Ok(())
}

async fn create(
    domain: &Domain,
    fields: &Map<String, Value>,
    session: &Session,
    report: &mut CommandReport,
) -> Result<SavedSite, CommandError> {
    match session.client.create_site(fields).await {
        Ok(saved) => Ok(saved),
        Err(cause) if cause.is_retryable() => find_created(domain, cause, fields, session, report).await,
        Err(cause) => Err(OperationError::new(format!("{domain} was not created"), cause)
            .refused_hint("see the reason that the service gives; a site needs a package that is neither expired nor used up, and cert_id and package_id must belong to this account")
            .into()),
    }
}

/// Looks for the site after a lost response. Fields that the site lacks count as ignored.
async fn find_created(
    domain: &Domain,
    cause: RequestError,
    sent: &Map<String, Value>,
    session: &Session,
    report: &mut CommandReport,
) -> Result<SavedSite, CommandError> {
    let found = session.find_listed(domain).await.map_err(|listing| {
        let doubt = format!("{domain} may or may not have been created ({})", cause.error);
        listing.with_context(&doubt)
    })?;
    let Some(site) = found else {
        return Err(CreateError::NotCreated { domain: domain.clone(), cause }.into());
    };
    report.warnings.push(format!("the response was lost ({}), but the site exists", cause.error));
    let is_missing = |(name, wanted): &(&String, &Value)| {
        *name != "domain" && !site.json.get(*name).is_some_and(|found| contains(found, wanted))
    };
    let ignored_fields = sent.iter().filter(is_missing).map(|(name, _)| name.clone()).collect();
    Ok(SavedSite { site: Some(site), ignored_fields })
}

/// Shows the DNS record to create, in zone file format.
fn show_dns_record(site: &ApiObject<Site>, report: &mut CommandReport) {
    let target = site.known.cname.as_deref().map(|cname| cname.trim_end_matches('.'));
    let Some(target) = target.filter(|target| is_host_name(target)) else {
        let warning = format!("the service returned no usable CNAME target for {}", site.known.domain);
        report.warnings.push(warning);
        return;
    };
    let record = format!("{}. IN CNAME {}.", site.known.domain.host(), target);
    let _ = writeln!(report.body.text, "{record}");
    report.body.set("dns_record", record);
}

/// Whether the name can be written to a zone file.
fn is_host_name(name: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    name.split('.').all(is_label)
}
