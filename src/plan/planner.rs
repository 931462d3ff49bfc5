//! Makes a plan: replaces the records that wanted sites are bound to, creates a record where there is none, and binds
//! the remaining sites.

use std::collections::{HashMap, HashSet};

use super::{Account, Action, Blocker, IndexedListing, Plan, PlanRequest, Target, Upload};
use crate::api::{Record, Site};
use crate::names::Domain;

/// A wanted site that no replacement is certain to reach.
struct Unplaced<'a> {
    site: &'a Site,
    /// Why the record that it is bound to is not replaced; `None` if it is bound to none.
    blocker: Option<Blocker>,
    /// Domains whose upload provides a record to bind it to.
    domains: Vec<&'a Domain>,
}

/// A plan in the making.
struct Planner<'p, 'a> {
    listing: &'a IndexedListing,
    request: &'p PlanRequest<'p>,
    /// The index of the upload for each host.
    uploads: HashMap<&'a str, usize>,
    /// The results of `judge`.
    replaceable: HashMap<u64, Result<&'a Domain, Blocker>>,
    plan: Plan<'a>,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(account: &Account<'a>, request: &PlanRequest<'_>) -> Self {
        let (uploads, replaceable, plan) = (HashMap::new(), HashMap::new(), Plan::default());
        Planner { listing: account.listing, request, uploads, replaceable, plan }.plan(&account.sites)
    }
}

impl<'a> Planner<'_, 'a> {
    fn plan(mut self, sites: &[&'a Site]) -> Plan<'a> {
        let (mut unwanted, mut unbound, mut blocked) = (Vec::new(), Vec::new(), Vec::new());
        for &site in sites.iter().filter(|site| (self.request.covers)(&site.domain)) {
            match (self.request.unwanted)(site) {
                Some(action) => unwanted.push((site, action)),
                None if site.is_unbound() => {
                    unbound.push(Unplaced { site, blocker: None, domains: vec![&site.domain] });
                }
                None => blocked.extend(self.replace(site)),
            }
        }
        let unplaced = self.create(unbound, blocked);
        self.bind(unplaced);
        let uploads = self.plan.uploads.iter().enumerate().rev();
        let replaced = uploads.flat_map(|(at, upload)| upload.replaces.iter().map(move |id| (*id, at)));
        let replaced: HashMap<u64, usize> = replaced.collect();
        let replacing = |site: &Site| site.cert_id.and_then(|id| replaced.get(&id).copied());
        // The record of a site that is left alone may be replaced by an upload for another one.
        for target in &mut self.plan.targets {
            if matches!(target.action, Action::Leave(_))
                && let Some(upload) = replacing(target.site)
            {
                target.action = Action::Replace(upload);
            }
        }
        let mut left = self.plan.targets.iter().filter(|target| matches!(target.action, Action::Leave(_)));
        self.plan.can_rebind = !self.request.allow.rebind
            && (!self.plan.uploads.is_empty()
                || left.any(|target| self.guard(&target.site.domain).is_none()));
        // The uploads may have an effect on the other sites.
        let creation = self.plan.uploads.iter().position(|upload| upload.replaces.is_empty());
        let unwanted = unwanted.into_iter().map(|(site, unwanted)| {
            let created = creation.filter(|_| site.is_unbound()).map(Action::Create);
            let effect = replacing(site).map(Action::Replace).or(created);
            let effect = effect.filter(|_| unwanted != Action::Current);
            Target { site, wanted: false, action: effect.unwrap_or(unwanted) }
        });
        self.plan.targets.extend(unwanted);
        self.plan
    }

    /// Replaces the record that a site is bound to. Returns the site if that is not possible, or not for certain, and
    /// its `cert_id` may be set instead.
    fn replace(&mut self, site: &'a Site) -> Option<Unplaced<'a>> {
        let mut domains = vec![&site.domain];
        let PlanRequest { missed, allow, .. } = self.request;
        // Whether to let the service choose which of several records is replaced. It chooses the same one each time.
        let may_choose = !allow.rebind && missed.get(&site.id).copied() != site.cert_id;
        let blocker = match site.cert_id.map(|id| (id, self.replaceable(id))) {
            Some((_, Ok(domain))) if may_choose || self.stored_for(domain).len() < 2 => {
                let upload = self.upload(domain, &[]);
                self.assign(site, Action::Replace(upload));
                return None;
            }
            Some((id, Ok(domain))) => {
                domains.push(domain);
                Blocker::Ambiguous { id, domain: domain.clone() }
            }
            Some((_, Err(blocker))) => blocker,
            None => Blocker::UnreadableBinding(site.unreadable_cert_id.as_deref().unwrap_or_default().into()),
        };
        // If the site has a later certificate now, every record to bind it to would be older, too.
        if allow.rebind && site.cert_id.is_none_or(|id| self.older(id).is_none()) {
            return Some(Unplaced { site, blocker: Some(blocker), domains });
        }
        self.assign(site, Action::Leave(blocker));
        None
    }

    /// Creates one record, which the service binds to every covered site without a certificate. It has to be for a
    /// domain that has no record yet: that of such a site, or of one that will be bound to it. Returns the sites that
    /// are still without an action.
    fn create(&mut self, unbound: Vec<Unplaced<'a>>, blocked: Vec<Unplaced<'a>>) -> Vec<Unplaced<'a>> {
        let domains = unbound.iter().chain(&blocked).map(|unplaced| &unplaced.site.domain);
        let is_free = |domain: &&Domain| self.stored_for(domain).is_empty() && self.guard(domain).is_none();
        let free: Vec<&Domain> = domains.filter(is_free).collect();
        let (Some((domain, alternatives)), false) = (free.split_first(), unbound.is_empty()) else {
            return unbound.into_iter().chain(blocked).collect();
        };
        let upload = self.upload(domain, alternatives);
        for unplaced in unbound {
            self.assign(unplaced.site, Action::Create(upload));
        }
        blocked
    }

    /// Binds sites to a record that is uploaded anyway, or else to one that an upload for one of them provides.
    fn bind(&mut self, unplaced: Vec<Unplaced<'a>>) {
        if self.plan.uploads.is_empty() {
            let to_bind: HashSet<u64> = unplaced.iter().map(|unplaced| unplaced.site.id).collect();
            let domains = unplaced.iter().flat_map(|unplaced| unplaced.domains.iter().copied());
            // Many sites may be bound to records of one domain.
            let mut hosts = HashSet::new();
            let distinct = domains.filter(|domain| hosts.insert(domain.host()));
            let harmless = distinct.filter(|domain| self.guard(domain).is_none());
            // Prefer a record that no other site depends on. The sites to bind do not count: each run would prefer the
            // record that the run before had left.
            let dependents = |domain: &&Domain| {
                let stored = self.listing.records_stored_for(domain.host());
                let bound = stored.flat_map(|record| self.listing.sites_bound_to(record.id));
                bound.filter(|site| !to_bind.contains(&site.id)).count()
            };
            if let Some(domain) = harmless.min_by_key(dependents) {
                self.upload(domain, &[]);
            }
        }
        for Unplaced { site, blocker, domains } in unplaced {
            let own = domains.iter().find_map(|domain| self.uploads.get(domain.host()).copied());
            let any = own.or_else(|| (!self.plan.uploads.is_empty()).then_some(0));
            let action = match any {
                Some(upload) => Action::Bind(upload, blocker),
                // It might be bound if a guard did not refuse the upload.
                None => Action::Leave(self.guard(&site.domain).or(blocker).unwrap_or(Blocker::NoRecord)),
            };
            self.assign(site, action);
        }
    }

    fn assign(&mut self, site: &'a Site, action: Action) {
        self.plan.targets.push(Target { site, wanted: true, action });
    }

    /// Returns the index of the upload for a domain. If there is none yet, adds one with these alternatives.
    fn upload(&mut self, domain: &'a Domain, alternatives: &[&'a Domain]) -> usize {
        if let Some(at) = self.uploads.get(domain.host()) {
            return *at;
        }
        let stored = self.stored_for(domain);
        // An upload for the only domain of a record is certain to replace it.
        let is_only = |record: &&Record| matches!(&*record.domains, [only] if only == domain);
        let may_create = !stored.is_empty() && !stored.iter().any(is_only);
        let replaces = stored.iter().map(|record| record.id).collect();
        let at = self.plan.uploads.len();
        self.plan.uploads.push(Upload { domain, replaces, may_create, alternatives: alternatives.to_vec() });
        self.uploads.insert(domain.host(), at);
        at
    }

    /// The records that an upload for a domain may replace.
    fn stored_for(&self, domain: &Domain) -> Vec<&'a Record> {
        self.listing.records_stored_for(domain.host()).collect()
    }
}

/// Which records may be replaced, and which uploads a guard refuses.
impl<'a> Planner<'_, 'a> {
    /// The domain whose upload replaces a record. Each record is judged once, because many sites may be bound to it, and a
    /// guard looks at all of them.
    fn replaceable(&mut self, id: u64) -> Result<&'a Domain, Blocker> {
        if let Some(known) = self.replaceable.get(&id) {
            return known.clone();
        }
        let result = self.judge(id);
        self.replaceable.insert(id, result.clone());
        result
    }

    fn judge(&self, id: u64) -> Result<&'a Domain, Blocker> {
        // Even for a record that is not listed: the edge shows its leaf.
        self.older(id).map_or(Ok(()), Err)?;
        let record = self.listing.record(id).ok_or(Blocker::UnknownRecord(id))?;
        let domain = self
            .upload_domain(record)
            .ok_or_else(|| Blocker::SeveralDomains { id, domains: record.domains.to_vec() })?;
        self.system_issued(record).map_or(Ok(()), Err)?;
        if !(self.request.covers)(domain) {
            return Err(Blocker::NotCovered(id, domain.clone()));
        }
        let owner =
            self.listing.site(domain.host()).ok_or_else(|| Blocker::NoSuchSite(id, domain.clone()))?;
        self.guard(domain).map_or(Ok(&owner.domain), Err)
    }

    /// The guard that refuses an upload for a domain. Every record that the upload may replace counts.
    fn guard(&self, domain: &Domain) -> Option<Blocker> {
        let stored = self.stored_for(domain);
        if stored.is_empty() {
            let is_hidden = !self.request.allow.guards.allow_partial
                && self.listing.listing().records.gap_for(domain).is_some();
            return is_hidden.then(|| Blocker::HiddenRecord(domain.clone()));
        }
        stored.iter().find_map(|record| {
            self.system_issued(record)
                .or_else(|| self.shrink(record.id))
                .or_else(|| self.older(record.id))
                .or_else(|| self.hidden_sites(record.id))
        })
    }

    /// Refuses if a site that is not listed may lose coverage. Knowledge of a record counts only while a listed site is bound
    /// to it: otherwise, its certificate may have been replaced unnoticed.
    fn hidden_sites(&self, id: u64) -> Option<Blocker> {
        let PlanRequest { allow, covers, keeps_names, .. } = self.request;
        let is_hidden = self.listing.listing().sites.gaps.iter().any(|gap| gap.may_hide_binding(id))
            || self.listing.unreadable_bindings().any(|site| !covers(&site.domain));
        let is_safe = || self.listing.sites_bound_to(id).next().is_some() && keeps_names(id);
        let is_guarded = is_hidden && !allow.guards.allow_partial && !allow.guards.allow_shrink && !is_safe();
        is_guarded.then_some(Blocker::HiddenSites(id))
    }

    /// Refuses to replace a certificate that was issued later than the new one.
    fn older(&self, id: u64) -> Option<Blocker> {
        let known = (self.request.later_leaf)(id)?;
        let is_guarded = known.must_stay || !self.request.allow.guards.allow_older;
        is_guarded.then_some(Blocker::Older { id, known })
    }

    /// The domain that a record was uploaded for. A record may list all names that it covers; the domain is then the
    /// record's own name, because that is the default and edgecert sends no other name.
    fn upload_domain(&self, record: &'a Record) -> Option<&'a Domain> {
        let is_site = |domain: &Domain| self.listing.site(domain.host()).is_some();
        match (&*record.domains, &record.name) {
            ([domain], Some(name)) if is_site(name) && !is_site(domain) => Some(name),
            ([domain], _) => Some(domain),
            (domains, Some(name)) if domains.contains(name) => Some(name),
            _ => None,
        }
    }

    /// Refuses to replace a certificate that the service itself renews.
    fn system_issued(&self, record: &Record) -> Option<Blocker> {
        let is_guarded = record.is_system_issued && !self.request.allow.guards.replace_lets;
        is_guarded.then_some(Blocker::SystemIssued(record.id))
    }

    /// Refuses if another site would lose coverage.
    fn shrink(&self, id: u64) -> Option<Blocker> {
        let uncovered = self.listing.sites_bound_to(id).filter(|site| !(self.request.covers)(&site.domain));
        let uncovered_sites: Vec<String> = uncovered.map(|site| site.domain.to_string()).collect();
        let is_guarded = !uncovered_sites.is_empty() && !self.request.allow.guards.allow_shrink;
        is_guarded.then_some(Blocker::Shrink { id, uncovered_sites })
    }
}
