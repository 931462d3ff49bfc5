//! What stands against replacing a record: that it cannot be done with this certificate, or that it would break
//! something else and so has to be asked for (the guards).

use time::OffsetDateTime;

use super::planner::Planner;
use crate::api::{Record, RecordType};
use crate::names::Domain;
use crate::text;

/// Why the record that feeds a site is not replaced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Blocker {
    #[error("it is bound to certificate {0}, which is not among the account's certificates")]
    Foreign(u64),
    #[error(
        "it is bound to certificate {id}, which is stored for {}; an upload is for one domain",
        describe(domains)
    )]
    SeveralNames { id: u64, domains: Vec<Domain> },
    #[error(
        "it is bound to certificate {0}, which is stored for {1}; the new certificate does not cover that"
    )]
    NotCovered(u64, Domain),
    #[error(
        "it is bound to certificate {0}, which is stored for {1}; the account has no such site, so nothing can be uploaded for it"
    )]
    NoSuchSite(u64, Domain),
    #[error("it is bound to certificate {id}, which is not the only one that is stored for {domain}")]
    Duplicate { id: u64, domain: Domain },
    #[error("it has no certificate, and there is no record to bind it to")]
    NoRecord,
    /// Guard, see `Allow::lets`.
    #[error("the system issues and renews certificate {0} itself")]
    System(u64),
    /// Guard, see `Allow::shrink`.
    #[error(
        "certificate {id} also feeds {}, which the new certificate does not cover",
        text::list(uncovered_sites)
    )]
    Shrink { id: u64, uncovered_sites: Vec<String> },
    /// Guard, see `Allow::older`.
    #[error("certificate {id} was issued at {}, later than the new one", text::rfc3339(*issued))]
    Older { id: u64, issued: OffsetDateTime },
}

impl Blocker {
    /// Whether it is a guard: the upload would succeed and break something.
    pub(crate) fn is_guard(&self) -> bool {
        matches!(self, Self::System(_) | Self::Shrink { .. } | Self::Older { .. })
    }

    /// What to do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::System(_) => {
                "let the system renew it, pass --replace-lets to replace it, or --rebind to bind the site to another record"
            }
            Self::Shrink { .. } => {
                "put those names into the certificate too, pass --rebind to bind only this site to a record of its own, or --allow-shrink to take it from them"
            }
            Self::Older { .. } => "deploy the latest renewal, or pass --allow-older to go back to this one",
            Self::NoRecord => {
                "upload a certificate for the site's own domain in the service, then deploy again"
            }
            _ => "pass --rebind to bind the site to the uploaded record, or bind it in the service",
        }
    }
}

impl<'a> Planner<'_, 'a> {
    /// The domain under which an upload replaces record `id`.
    pub(super) fn replaceable(&self, id: u64) -> Result<&'a Domain, Blocker> {
        // Also of a record that is not the account's: its site shows it.
        self.older(id)?;
        let record = self.records.get(&id).ok_or(Blocker::Foreign(id))?;
        let domain =
            self.key(record).ok_or_else(|| Blocker::SeveralNames { id, domains: record.domains.clone() })?;
        if record.kind == RecordType::System && !self.request.allow.lets {
            return Err(Blocker::System(id));
        }
        if !(self.request.covers)(domain) {
            return Err(Blocker::NotCovered(id, domain.clone()));
        }
        let owner = self.sites.get(domain.host()).ok_or_else(|| Blocker::NoSuchSite(id, domain.clone()))?;
        self.guard(domain).map_or(Ok(&owner.domain), Err)
    }

    /// The domain that a record was uploaded for. It may list all names that it covers; its own name is that domain then,
    /// because that is the default and edgecert sends no other.
    fn key(&self, record: &'a Record) -> Option<&'a Domain> {
        let is_site = |domain: &Domain| self.sites.contains_key(domain.host());
        match (record.domains.as_slice(), &record.name) {
            ([domain], Some(name)) if is_site(name) && !is_site(domain) => Some(name),
            ([domain], _) => Some(domain),
            (domains, Some(name)) if domains.contains(name) => Some(name),
            _ => None,
        }
    }

    /// What an upload for this domain would break; every record that it may replace is looked at.
    pub(super) fn guard(&self, domain: &Domain) -> Option<Blocker> {
        self.stored_for(domain).iter().find_map(|record| {
            let system = record.kind == RecordType::System && !self.request.allow.lets;
            let guard = system.then_some(Blocker::System(record.id));
            guard.or_else(|| self.shrink(record.id)).or_else(|| self.older(record.id).err())
        })
    }

    fn shrink(&self, id: u64) -> Option<Blocker> {
        let uncovered = self.fed_by(id).iter().filter(|site| !(self.request.covers)(&site.domain));
        let hidden = self.account.unreadable.contains(&id).then(|| "a site that cannot be read".to_owned());
        let uncovered_sites: Vec<String> =
            uncovered.map(|site| site.domain.to_string()).chain(hidden).collect();
        let guarded = !uncovered_sites.is_empty() && !self.request.allow.shrink;
        guarded.then_some(Blocker::Shrink { id, uncovered_sites })
    }

    /// What a record holds may be newer than what is to be deployed.
    pub(super) fn older(&self, id: u64) -> Result<(), Blocker> {
        match self.account.issued.get(&id) {
            Some(issued) if *issued > self.request.issued && !self.request.allow.older => {
                Err(Blocker::Older { id, issued: *issued })
            }
            _ => Ok(()),
        }
    }
}

fn describe(domains: &[Domain]) -> String {
    let names: Vec<String> = domains.iter().map(ToString::to_string).collect();
    if names.is_empty() { "no readable domain".into() } else { text::list(&names) }
}
