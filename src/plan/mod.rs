//! What has to be done so that every wanted site is fed by the new certificate. Pure: no I/O, no clock.
//!
//! Replacement is per domain and binding is per site: a site may be fed by the record of another domain. An upload for
//! its own domain would then create a record that nothing uses and no documented call can delete, so the record that
//! feeds a site is the one to replace, and a record is created only where it will be bound.

mod obstacle;
mod words;
#[cfg(test)]
mod worlds;

use std::collections::HashMap;

use time::OffsetDateTime;

pub(crate) use self::obstacle::Obstacle;
pub(crate) use self::words::Step;
use crate::api::{Record, Site};
use crate::names::Domain;

/// What the account has, as far as it is known.
pub(crate) struct Account<'a> {
    pub(crate) sites: &'a [Site],
    pub(crate) records: &'a [Record],
    /// Records to which sites are bound that cannot be read.
    pub(crate) hidden: &'a [u64],
    /// When the leaf in a record was issued, for the records of which that is known.
    pub(crate) issued: &'a HashMap<u64, OffsetDateTime>,
}

/// What is to be deployed and how far that may go.
pub(crate) struct Wish<'a> {
    /// Whether the new certificate covers a domain.
    pub(crate) covers: &'a dyn Fn(&Domain) -> bool,
    /// When the new leaf was issued.
    pub(crate) issued: OffsetDateTime,
    /// The sites that must get it; empty: every covered one.
    pub(crate) domains: &'a [Domain],
    pub(crate) allow: Allow,
}

/// What only a person may decide; all off unless asked for.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "four separate permissions")]
pub(crate) struct Allow {
    /// Setting `cert_id` of a site that another record feeds.
    pub(crate) rebind: bool,
    /// Taking a record's old names away from other sites that are bound to it.
    pub(crate) shrink: bool,
    /// Replacing a certificate that was issued later than the new one.
    pub(crate) older: bool,
    /// Replacing a certificate that the system issues and renews itself.
    pub(crate) lets: bool,
}

/// The smallest list of uploads, and what becomes of each covered site.
#[derive(Debug, Default)]
pub(crate) struct Plan<'a> {
    pub(crate) uploads: Vec<Upload<'a>>,
    pub(crate) targets: Vec<Target<'a>>,
}

/// One upload.
#[derive(Debug)]
pub(crate) struct Upload<'a> {
    /// The domain as its site spells it.
    pub(crate) domain: &'a Domain,
    /// The records of which it replaces one in place. None: it creates one, which the service binds to every covered
    /// site without a certificate.
    pub(crate) replaces: Vec<u64>,
    /// Domains that a creation may be for as well, should the service refuse this one.
    pub(crate) or: Vec<&'a Domain>,
}

/// A covered site and what the plan does for it.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub(crate) site: &'a Site,
    /// Whether it has to get the certificate, or only happens to be covered.
    pub(crate) wanted: bool,
    pub(crate) fate: Fate,
}

/// How a site gets the certificate, or why it does not. Numbers are places in `Plan::uploads`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The record that feeds it is replaced.
    Replaced(usize),
    /// It has no certificate; the service binds it to the record that is created.
    Created(usize),
    /// Its `cert_id` is set to the record that the upload answers; of a site that is fed by another one, because of the
    /// obstacle.
    Bound(usize, Option<Obstacle>),
    /// It stays as it is.
    Left(Obstacle),
    /// It stays as it is, because it was not asked for.
    Untouched,
}

impl Fate {
    /// The upload whose record is to feed the site.
    pub(crate) fn upload(&self) -> Option<usize> {
        match self {
            Self::Replaced(upload) | Self::Created(upload) | Self::Bound(upload, _) => Some(*upload),
            Self::Left(_) | Self::Untouched => None,
        }
    }
}

impl<'a> Plan<'a> {
    /// Plans for an account.
    pub(crate) fn make(account: &Account<'a>, wish: &Wish<'_>) -> Self {
        Planner::new(account, wish).plan()
    }

    /// The sites that an upload is for.
    pub(crate) fn fed_by(&self, upload: usize) -> impl Iterator<Item = &Target<'a>> {
        self.targets.iter().filter(move |target| target.fate.upload() == Some(upload))
    }
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
struct Planner<'p, 'a> {
    account: &'p Account<'a>,
    wish: &'p Wish<'p>,
    covered: Vec<&'a Site>,
    records: HashMap<u64, &'a Record>,
    /// By host: every record that an upload for it may replace, those made for it and those that list it among others.
    stored: HashMap<&'a str, Vec<&'a Record>>,
    /// By record.
    bound: HashMap<u64, Vec<&'a Site>>,
    /// By host.
    sites: HashMap<&'a str, &'a Site>,
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
    fn stored_for(&self, domain: &Domain) -> &[&'a Record] {
        self.stored.get(domain.host()).map_or(&[], Vec::as_slice)
    }

    fn is_ambiguous(&self, domain: &Domain) -> bool {
        self.stored_for(domain).len() > 1
    }

    /// The sites that are bound to a record.
    fn fed_by(&self, id: u64) -> &[&'a Site] {
        self.bound.get(&id).map_or(&[], Vec::as_slice)
    }

    /// How many sites are bound to records which an upload for this domain may replace.
    fn bound_to(&self, domain: &Domain) -> usize {
        self.stored_for(domain).iter().map(|record| self.fed_by(record.id).len()).sum()
    }
}
