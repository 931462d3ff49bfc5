//! What has to be uploaded so that every wanted site is fed by the new certificate. Pure: no I/O, no clock.
//!
//! Replacement is per domain and binding is per site: a site may be fed by the record of another domain. An upload for
//! its own domain would then create a record that nothing uses and no documented call can delete, so the record that
//! feeds a site is the one to replace, and a record is created only where it will be bound.

use crate::api::{Record, RecordType, Site};
use crate::cert::Certificate;
use crate::names::Domain;

/// The smallest set of uploads, and what cannot be done.
#[derive(Debug, Default)]
pub(crate) struct Plan<'a> {
    pub(crate) uploads: Vec<Upload<'a>>,
    pub(crate) left: Vec<Left<'a>>,
}

/// One upload and the wanted sites that it is for.
#[derive(Debug)]
pub(crate) struct Upload<'a> {
    /// The domain as its site spells it.
    pub(crate) domain: &'a Domain,
    /// The record that will be replaced in place; `None`: one is created and bound to sites without certificate.
    pub(crate) replaces: Option<u64>,
    pub(crate) sites: Vec<&'a Site>,
}

/// A wanted site that no upload can reach.
#[derive(Debug)]
pub(crate) struct Left<'a> {
    pub(crate) site: &'a Site,
    pub(crate) obstacle: Obstacle,
}

/// Why no upload can reach a site.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Obstacle {
    #[error("it is bound to certificate {0}, which the system issues and renews itself")]
    System(u64),
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
    #[error(
        "it has no certificate, but certificate {0} is stored for its domain; an upload would replace that without binding it"
    )]
    Unbound(u64),
}

impl<'a> Plan<'a> {
    /// Plans for the `wanted` ones among the account's `sites`.
    pub(crate) fn make(
        leaf: &Certificate,
        sites: &'a [Site],
        records: &[Record],
        wanted: &[&'a Site],
    ) -> Self {
        let mut plan = Self::default();
        let (bound, unbound): (Vec<&Site>, Vec<&Site>) =
            wanted.iter().partition(|site| site.cert_id.is_some());
        for site in bound {
            let Some(id) = site.cert_id else { continue };
            match replaceable(leaf, sites, records, id) {
                Ok(domain) => plan.replace(id, domain, site),
                Err(obstacle) => plan.left.push(Left { site, obstacle }),
            }
        }
        plan.create(&unbound, records);
        plan
    }

    fn replace(&mut self, id: u64, domain: &'a Domain, site: &'a Site) {
        match self.uploads.iter_mut().find(|upload| upload.replaces == Some(id)) {
            Some(upload) => upload.sites.push(site),
            None => self.uploads.push(Upload { domain, replaces: Some(id), sites: vec![site] }),
        }
    }

    /// One creation binds every covered site without certificate; it has to be for a domain without a record.
    fn create(&mut self, unbound: &[&'a Site], records: &[Record]) {
        let stored = |site: &Site| records.iter().find(|record| record.domains.contains(&site.domain));
        if let Some(first) = unbound.iter().find(|site| stored(site).is_none()) {
            self.uploads.push(Upload { domain: &first.domain, replaces: None, sites: unbound.to_vec() });
            return;
        }
        let left = |site: &&'a Site| Some(Left { site, obstacle: Obstacle::Unbound(stored(site)?.id) });
        self.left.extend(unbound.iter().filter_map(left));
    }
}

/// The domain under which an upload replaces record `id`.
fn replaceable<'a>(
    leaf: &Certificate,
    sites: &'a [Site],
    records: &[Record],
    id: u64,
) -> Result<&'a Domain, Obstacle> {
    let record = records.iter().find(|record| record.id == id).ok_or(Obstacle::Foreign(id))?;
    if record.kind == RecordType::System {
        return Err(Obstacle::System(id));
    }
    // A record may list all names that it covers; its own name is then the domain that it was uploaded for, because
    // that is the default and edgecert sends no other.
    let domain = match (record.domains.as_slice(), &record.name) {
        ([domain], _) => domain,
        (domains, Some(name)) if domains.contains(name) => name,
        _ => return Err(Obstacle::SeveralNames { id, domains: record.domains.clone() }),
    };
    if !domain.is_covered_by_any(leaf.san()) {
        return Err(Obstacle::NotCovered(id, domain.clone()));
    }
    let owner = sites.iter().find(|site| site.domain == *domain);
    owner.map(|site| &site.domain).ok_or_else(|| Obstacle::NoSuchSite(id, domain.clone()))
}

fn describe(domains: &[Domain]) -> String {
    let names: Vec<String> = domains.iter().map(ToString::to_string).collect();
    if names.is_empty() { "no readable domain".into() } else { crate::text::list(&names) }
}
