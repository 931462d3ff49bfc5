//! Makes a plan: which record feeds each site, which uploads reach them all, and what is left.

use std::collections::HashMap;

use super::{Account, Fate, Obstacle, Plan, Target, Upload, Wish};
use crate::api::{Record, Site};
use crate::names::Domain;

/// Plans for an account.
pub(super) fn make<'a>(account: &Account<'a>, wish: &Wish<'_>) -> Plan<'a> {
    Planner::new(account, wish).plan()
}

/// A wanted site that no upload reaches for certain.
struct Stray<'a> {
    site: &'a Site,
    /// What stands against replacing the record that feeds it; `None`: nothing feeds it.
    obstacle: Option<Obstacle>,
    /// Domains for which an upload would make a record to bind it to.
    domains: Vec<&'a Domain>,
}

/// A plan in the making, and the account by what is looked for.
pub(super) struct Planner<'p, 'a> {
    pub(super) account: &'p Account<'a>,
    pub(super) wish: &'p Wish<'p>,
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
    fn new(account: &'p Account<'a>, wish: &'p Wish<'p>) -> Self {
        let covered = account.sites.iter().filter(|site| (wish.covers)(&site.domain)).collect();
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
        Self { account, wish, covered, records, stored, bound, sites, uploads, plan: Plan::default() }
    }

    fn plan(mut self) -> Plan<'a> {
        let (bound, unbound): (Vec<&Site>, Vec<&Site>) = self
            .covered
            .iter()
            .copied()
            .filter(|site| self.wants(site))
            .partition(|site| site.cert_id.is_some());
        let fed: Vec<Stray<'a>> = bound.into_iter().filter_map(|site| self.replace(site)).collect();
        let unfed =
            unbound.into_iter().map(|site| Stray { site, obstacle: None, domains: vec![&site.domain] });
        let strays: Vec<Stray<'a>> = unfed.chain(fed).collect();
        let strays = self.create(strays);
        self.bind(strays);
        self.follow_what_is_left();
        self.mention_the_others();
        self.plan
    }

    fn wants(&self, site: &Site) -> bool {
        self.wish.domains.is_empty() || self.wish.domains.contains(&site.domain)
    }

    /// Replaces the record that feeds a site. A site for which that cannot be done, or not for certain, is handed back
    /// if its `cert_id` may be set instead.
    fn replace(&mut self, site: &'a Site) -> Option<Stray<'a>> {
        let id = site.cert_id?;
        let mut domains = vec![&site.domain];
        let obstacle = match self.replaceable(id) {
            Ok(domain) if !self.is_ambiguous(domain) || !self.wish.allow.rebind => {
                let upload = self.upload(domain);
                self.settle(site, Fate::Replaced(upload));
                return None;
            }
            Ok(domain) => {
                domains.push(domain);
                Obstacle::Duplicate { id, domain: domain.clone() }
            }
            Err(obstacle) => obstacle,
        };
        // What a site serves now would be newer than whatever it is bound to.
        if self.wish.allow.rebind && self.older(id).is_ok() {
            return Some(Stray { site, obstacle: Some(obstacle), domains });
        }
        self.settle(site, Fate::Left(obstacle));
        None
    }

    /// One creation binds every covered site without certificate; it has to be for a domain without a record, either of
    /// such a site or of one that will be bound to it. What is still stray is handed back.
    fn create(&mut self, strays: Vec<Stray<'a>>) -> Vec<Stray<'a>> {
        let (unfed, fed): (Vec<Stray<'a>>, Vec<Stray<'a>>) =
            strays.into_iter().partition(|stray| stray.obstacle.is_none());
        let domains = unfed.iter().chain(&fed).map(|stray| &stray.site.domain);
        let free: Vec<&Domain> = domains.filter(|domain| self.stored_for(domain).is_empty()).collect();
        let (Some((domain, or)), false) = (free.split_first(), unfed.is_empty()) else {
            return unfed.into_iter().chain(fed).collect();
        };
        let upload = self.upload(domain);
        if let Some(creation) = self.plan.uploads.get_mut(upload) {
            creation.or = or.to_vec();
        }
        for stray in unfed {
            self.settle(stray.site, Fate::Created(upload));
        }
        fed
    }

    /// Sets `cert_id` of the sites that are still without a fate, to a record that is uploaded anyway, or else to one
    /// that an upload for one of them replaces or creates.
    fn bind(&mut self, strays: Vec<Stray<'a>>) {
        if self.plan.uploads.is_empty() {
            let domains = strays.iter().flat_map(|stray| stray.domains.iter().copied());
            let harmless = domains.filter(|domain| self.guard(domain).is_none());
            // Rather a record that nothing uses than one on which others depend.
            if let Some(domain) = harmless.min_by_key(|domain| self.bound_to(domain)) {
                self.upload(domain);
            }
        }
        for Stray { site, obstacle, domains } in strays {
            let own = domains.iter().find_map(|domain| self.uploads.get(domain.host()).copied());
            let any = own.or_else(|| (!self.plan.uploads.is_empty()).then_some(0));
            let fate = match (any, obstacle) {
                (Some(upload), obstacle) => Fate::Bound(upload, obstacle),
                (None, Some(obstacle)) => Fate::Left(obstacle),
                (None, None) => Fate::Left(self.guard(&site.domain).unwrap_or(Obstacle::NoRecord)),
            };
            self.settle(site, fate);
        }
    }

    /// A record that feeds a site which nothing reaches for certain may be replaced by an upload for another site.
    fn follow_what_is_left(&mut self) {
        let Plan { uploads, targets } = &mut self.plan;
        for target in targets.iter_mut().filter(|target| matches!(target.fate, Fate::Left(_))) {
            let by_luck = |id| uploads.iter().position(|upload| upload.replaces.contains(&id));
            if let Some(upload) = target.site.cert_id.and_then(by_luck) {
                target.fate = Fate::Replaced(upload);
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
            let fate = match site.cert_id {
                Some(id) => replacing.get(&id).copied().map(Fate::Replaced),
                None => creating.map(Fate::Created),
            };
            self.plan.targets.push(Target { site, wanted: false, fate: fate.unwrap_or(Fate::Untouched) });
        }
    }

    fn settle(&mut self, site: &'a Site, fate: Fate) {
        self.plan.targets.push(Target { site, wanted: true, fate });
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
