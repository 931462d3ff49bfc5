//! Which records may be replaced, and which uploads a guard refuses.

use super::blocker::Blocker;
use super::planner::Planner;
use super::request::PlanRequest;
use crate::api::Record;
use crate::names::Domain;

impl<'a> Planner<'_, 'a> {
    /// The domain whose upload replaces a record.
    pub(super) fn replaceable(&self, id: u64) -> Result<&'a Domain, Blocker> {
        // Even for a record that is not listed: the edge shows its leaf.
        self.check_older(id)?;
        let record = self.listing.record(id).ok_or(Blocker::UnknownRecord(id))?;
        let domain = self
            .upload_domain(record)
            .ok_or_else(|| Blocker::SeveralDomains { id, domains: record.domains.to_vec() })?;
        if self.is_system_issued(record) {
            return Err(Blocker::SystemIssued(id));
        }
        if !(self.request.covers)(domain) {
            return Err(Blocker::NotCovered(id, domain.clone()));
        }
        let owner = self.listing.site(domain).ok_or_else(|| Blocker::NoSuchSite(id, domain.clone()))?;
        self.guard(domain).map_or(Ok(&owner.domain), Err)
    }

    /// The guard that refuses an upload for a domain. Every record that the upload may replace counts.
    pub(super) fn guard(&self, domain: &Domain) -> Option<Blocker> {
        let stored = self.stored_for(domain);
        if stored.is_empty() {
            let is_hidden = !self.request.allow.guards.allow_partial
                && self.listing.listing().records.gap_for(domain).is_some();
            return is_hidden.then(|| Blocker::HiddenRecord(domain.clone()));
        }
        stored.iter().find_map(|record| {
            let system_issued = self.is_system_issued(record).then_some(Blocker::SystemIssued(record.id));
            system_issued
                .or_else(|| self.shrink(record.id))
                .or_else(|| self.check_older(record.id).err())
                .or_else(|| self.hidden_sites(record.id))
        })
    }

    /// Fails if a site that is not listed may lose coverage. Knowledge of a record counts only while a listed site is bound
    /// to it: otherwise, its certificate may have been replaced unnoticed.
    fn hidden_sites(&self, id: u64) -> Option<Blocker> {
        let PlanRequest { allow, covers, keeps_names, .. } = self.request;
        let is_hidden = self.listing.listing().sites.gaps.iter().any(|gap| gap.may_hide_binding(id))
            || self.listing.unreadable_bindings().any(|site| !covers(&site.domain));
        let is_safe = || self.listing.sites_bound_to(id).next().is_some() && keeps_names(id);
        let is_guarded = is_hidden && !allow.guards.allow_partial && !allow.guards.allow_shrink && !is_safe();
        is_guarded.then_some(Blocker::HiddenSites(id))
    }

    /// Fails if the certificate in a record was issued later than the new one.
    pub(super) fn check_older(&self, id: u64) -> Result<(), Blocker> {
        match (self.request.later_leaf)(id) {
            Some(known) if known.must_stay || !self.request.allow.guards.allow_older => {
                Err(Blocker::Older { id, known })
            }
            _ => Ok(()),
        }
    }

    /// The domain that a record was uploaded for. A record may list all names that it covers; the domain is then the
    /// record's own name, because that is the default and edgecert sends no other name.
    fn upload_domain(&self, record: &'a Record) -> Option<&'a Domain> {
        let is_site = |domain: &Domain| self.listing.has_site(domain.host());
        match (&*record.domains, &record.name) {
            ([domain], Some(name)) if is_site(name) && !is_site(domain) => Some(name),
            ([domain], _) => Some(domain),
            (domains, Some(name)) if domains.contains(name) => Some(name),
            _ => None,
        }
    }

    fn is_system_issued(&self, record: &Record) -> bool {
        record.is_system_issued && !self.request.allow.guards.replace_lets
    }

    fn shrink(&self, id: u64) -> Option<Blocker> {
        let uncovered = self.listing.sites_bound_to(id).filter(|site| !(self.request.covers)(&site.domain));
        let uncovered_sites: Vec<String> = uncovered.map(|site| site.domain.to_string()).collect();
        let is_guarded = !uncovered_sites.is_empty() && !self.request.allow.guards.allow_shrink;
        is_guarded.then_some(Blocker::Shrink { id, uncovered_sites })
    }
}
