//! Makes a plan: which record feeds each site, which uploads reach them all, and what is left.

use std::collections::HashMap;

use super::{Account, Action, Blocker, Plan, PlanRequest, Target, Upload};
use crate::api::{Record, Site};
use crate::names::Domain;

/// Plans for an account.
pub(super) fn make<'a>(account: &Account<'a>, request: &PlanRequest<'_>) -> Plan<'a> {
    Planner::new(account, request).plan()
}

/// A wanted site that no upload reaches for certain.
struct Unplaced<'a> {
    site: &'a Site,
    /// What stands against replacing the record that feeds it; `None`: nothing feeds it.
    blocker: Option<Blocker>,
    /// Domains for which an upload would make a record to bind it to.
    domains: Vec<&'a Domain>,
}

/// A plan in the making, and the account by what is looked for.
pub(super) struct Planner<'p, 'a> {
    pub(super) account: &'p Account<'a>,
    pub(super) request: &'p PlanRequest<'p>,
    covered: Vec<&'a Site>,
    pub(super) records: HashMap<u64, &'a Record>,
    /// By host: every record that an upload for it may replace, those made for it and those that list it among others.
    stored: HashMap<&'a str, Vec<&'a Record>>,
    /// By record.
    bound: HashMap<u64, Vec<&'a Site>>,
    /// By host.
    pub(super) sites: HashMap<&'a str, &'a Site>,
    /// Places in the plan, by host.
    uploads: HashMap<&'a str, usize>,
    plan: Plan<'a>,
}

impl<'p, 'a> Planner<'p, 'a> {
    fn new(account: &'p Account<'a>, request: &'p PlanRequest<'p>) -> Self {
        let covered = account.sites.iter().filter(|site| (request.covers)(&site.domain)).collect();
        let mut stored: HashMap<&'a str, Vec<&'a Record>> = HashMap::new();
        for record in account.records {
            let mut hosts: Vec<&str> = record.domains.iter().chain(&record.name).map(Domain::host).collect();
            hosts.sort_unstable();
            hosts.dedup();
            for host in hosts {
                stored.entry(host).or_default().push(record);
            }
        }
        let mut bound: HashMap<u64, Vec<&'a Site>> = HashMap::new();
        for site in account.sites {
            if let Some(id) = site.cert_id {
                bound.entry(id).or_default().push(site);
            }
        }
        let records = account.records.iter().map(|record| (record.id, record)).collect();
        let sites = account.sites.iter().map(|site| (site.domain.host(), site)).collect();
        let uploads = HashMap::new();
        Self { account, request, covered, records, stored, bound, sites, uploads, plan: Plan::default() }
    }

    fn plan(mut self) -> Plan<'a> {
        let (bound, unbound): (Vec<&Site>, Vec<&Site>) = self
            .covered
            .iter()
            .copied()
            .filter(|site| self.wants(site))
            .partition(|site| site.cert_id.is_some());
        let fed: Vec<Unplaced<'a>> = bound.into_iter().filter_map(|site| self.replace(site)).collect();
        let unfed =
            unbound.into_iter().map(|site| Unplaced { site, blocker: None, domains: vec![&site.domain] });
        let unplaced_sites: Vec<Unplaced<'a>> = unfed.chain(fed).collect();
        let unplaced_sites = self.create(unplaced_sites);
        self.bind(unplaced_sites);
        self.follow_what_is_left();
        self.mention_the_others();
        self.plan
    }

    fn wants(&self, site: &Site) -> bool {
        self.request.domains.is_empty() || self.request.domains.contains(&site.domain)
    }

    /// Replaces the record that feeds a site. A site for which that cannot be done, or not for certain, is handed back
    /// if its `cert_id` may be set instead.
    fn replace(&mut self, site: &'a Site) -> Option<Unplaced<'a>> {
        let id = site.cert_id?;
        let mut domains = vec![&site.domain];
        let blocker = match self.replaceable(id) {
            Ok(domain) if !self.is_ambiguous(domain) || !self.request.allow.rebind => {
                let upload = self.upload(domain);
                self.settle(site, Action::Replaced(upload));
                return None;
            }
            Ok(domain) => {
                domains.push(domain);
                Blocker::Duplicate { id, domain: domain.clone() }
            }
            Err(blocker) => blocker,
        };
        // What a site serves now would be newer than whatever it is bound to.
        if self.request.allow.rebind && self.older(id).is_ok() {
            return Some(Unplaced { site, blocker: Some(blocker), domains });
        }
        self.settle(site, Action::Left(blocker));
        None
    }

    /// One creation binds every covered site without certificate; it has to be for a domain without a record, either of
    /// such a site or of one that will be bound to it. What is still unplaced is handed back.
    fn create(&mut self, unplaced_sites: Vec<Unplaced<'a>>) -> Vec<Unplaced<'a>> {
        let (unfed, fed): (Vec<Unplaced<'a>>, Vec<Unplaced<'a>>) =
            unplaced_sites.into_iter().partition(|unplaced| unplaced.blocker.is_none());
        let domains = unfed.iter().chain(&fed).map(|unplaced| &unplaced.site.domain);
        let free: Vec<&Domain> = domains.filter(|domain| self.stored_for(domain).is_empty()).collect();
        let (Some((domain, or)), false) = (free.split_first(), unfed.is_empty()) else {
            return unfed.into_iter().chain(fed).collect();
        };
        let upload = self.upload(domain);
        if let Some(creation) = self.plan.uploads.get_mut(upload) {
            creation.or = or.to_vec();
        }
        for unplaced in unfed {
            self.settle(unplaced.site, Action::Created(upload));
        }
        fed
    }

    /// Sets `cert_id` of the sites that are still without a action, to a record that is uploaded anyway, or else to one
    /// that an upload for one of them replaces or creates.
    fn bind(&mut self, unplaced_sites: Vec<Unplaced<'a>>) {
        if self.plan.uploads.is_empty() {
            let domains = unplaced_sites.iter().flat_map(|unplaced| unplaced.domains.iter().copied());
            let harmless = domains.filter(|domain| self.guard(domain).is_none());
            // Rather a record that nothing uses than one on which others depend.
            if let Some(domain) = harmless.min_by_key(|domain| self.bound_to(domain)) {
                self.upload(domain);
            }
        }
        for Unplaced { site, blocker, domains } in unplaced_sites {
            let own = domains.iter().find_map(|domain| self.uploads.get(domain.host()).copied());
            let any = own.or_else(|| (!self.plan.uploads.is_empty()).then_some(0));
            let action = match (any, blocker) {
                (Some(upload), blocker) => Action::Bound(upload, blocker),
                (None, Some(blocker)) => Action::Left(blocker),
                (None, None) => Action::Left(self.guard(&site.domain).unwrap_or(Blocker::NoRecord)),
            };
            self.settle(site, action);
        }
    }

    /// A record that feeds a site which nothing reaches for certain may be replaced by an upload for another site.
    fn follow_what_is_left(&mut self) {
        let Plan { uploads, targets } = &mut self.plan;
        for target in targets.iter_mut().filter(|target| matches!(target.action, Action::Left(_))) {
            let ambiguous = |id| uploads.iter().position(|upload| upload.replaces.contains(&id));
            if let Some(upload) = target.site.cert_id.and_then(ambiguous) {
                target.action = Action::Replaced(upload);
            }
        }
    }

    /// What happens to the covered sites that were not asked for.
    fn mention_the_others(&mut self) {
        let mut replacing: HashMap<u64, usize> = HashMap::new();
        for (place, upload) in self.plan.uploads.iter().enumerate() {
            for id in &upload.replaces {
                replacing.entry(*id).or_insert(place);
            }
        }
        let creating = self.plan.uploads.iter().position(|upload| upload.replaces.is_empty());
        for site in self.covered.clone() {
            if self.wants(site) {
                continue;
            }
            let action = match site.cert_id {
                Some(id) => replacing.get(&id).copied().map(Action::Replaced),
                None => creating.map(Action::Created),
            };
            self.plan.targets.push(Target {
                site,
                wanted: false,
                action: action.unwrap_or(Action::Untouched),
            });
        }
    }

    fn settle(&mut self, site: &'a Site, action: Action) {
        self.plan.targets.push(Target { site, wanted: true, action });
    }

    /// Makes sure that there is an upload for this domain, and tells its place.
    fn upload(&mut self, domain: &'a Domain) -> usize {
        if let Some(place) = self.uploads.get(domain.host()) {
            return *place;
        }
        let replaces = self.stored_for(domain).iter().map(|record| record.id).collect();
        self.plan.uploads.push(Upload { domain, replaces, or: Vec::new() });
        let place = self.plan.uploads.len() - 1;
        self.uploads.insert(domain.host(), place);
        place
    }

    /// The records that an upload for this domain may replace.
    pub(super) fn stored_for(&self, domain: &Domain) -> &[&'a Record] {
        self.stored.get(domain.host()).map_or(&[], Vec::as_slice)
    }

    fn is_ambiguous(&self, domain: &Domain) -> bool {
        self.stored_for(domain).len() > 1
    }

    /// The sites that are bound to a record.
    pub(super) fn fed_by(&self, id: u64) -> &[&'a Site] {
        self.bound.get(&id).map_or(&[], Vec::as_slice)
    }

    /// How many sites are bound to records which an upload for this domain may replace.
    fn bound_to(&self, domain: &Domain) -> usize {
        self.stored_for(domain).iter().map(|record| self.fed_by(record.id).len()).sum()
    }
}
