//! Compares the planner with an exhaustive search over generated accounts: no unused record, no covered site left out,
//! no guard missed, and no other plan that reaches more sites, changes fewer bindings or makes fewer uploads.
//!
//! The model states the service's rules independently of the planner: domains are indices, and where the service may
//! choose which record to replace, the worst choice is assumed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fastrand::Rng;
use time::OffsetDateTime;
use time::macros::datetime;

use super::{Account, Action, Allow, IndexedListing, Plan, PlanRequest, RecordLeaf, Target};
use crate::api::{Gap, List, Listing, Record, Site};
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::settings::Guards;

const ACCOUNTS: u64 = 100_000;
const DOMAINS: [&str; 8] = [
    "a.example",
    "b.example",
    "c.example",
    "d.example",
    "*.a.example",
    "x.a.example",
    "b\u{fc}cher.example",
    "no-site.example",
];
/// The last domain never has a site.
const SITE_DOMAINS: usize = 7;
const LATER: OffsetDateTime = datetime!(2026-02-01 00:00 UTC);

/// A generated account and request. Domains are indices into `DOMAINS`; the id of a record is its index plus one.
#[derive(Debug)]
struct Model {
    sites: Vec<ModelSite>,
    records: Vec<ModelRecord>,
    /// By domain.
    is_covered: Vec<bool>,
    requested: Vec<usize>,
    /// Sites that need no deployment: they have the leaf, or (`false`) another lineage supersedes it there.
    not_needed: BTreeMap<u64, bool>,
    /// Records whose leaf was issued after the new one.
    newer: BTreeSet<u64>,
    /// Records to which sites are bound that cannot be read.
    unreadable: Vec<u64>,
    /// Whether sites may be missing, and records.
    is_partial: (bool, bool),
    /// Records that are known to hold no other names than the new leaf.
    kept: BTreeSet<u64>,
    allow: Allow,
}

#[derive(Clone, Copy, Debug)]
struct ModelSite {
    domain: usize,
    cert_id: Option<u64>,
    /// Whether it is bound to a record that cannot be read.
    is_unreadable: bool,
}

#[derive(Debug)]
struct ModelRecord {
    domains: Vec<usize>,
    name: Option<usize>,
    is_system_issued: bool,
}

/// Sites not reached, sites reached only if the service chooses the right record, bindings changed, uploads. Compared in
/// this order; less is better.
type Cost = (usize, usize, usize, usize);

impl Model {
    fn generate(rng: &mut Rng) -> Self {
        let is_covered: Vec<bool> = DOMAINS.iter().map(|_| rng.u8(..4) > 0).collect();
        let records: Vec<ModelRecord> = (0..rng.usize(..=6)).map(|_| ModelRecord::generate(rng)).collect();
        let mut domains: Vec<usize> = (0..SITE_DOMAINS).collect();
        rng.shuffle(&mut domains);
        domains.truncate(rng.usize(1..=6));
        // The id after the last record is that of another account's record.
        let last_id = records.len() as u64 + 1;
        let mut site = |domain| {
            let cert_id = (rng.u8(..3) > 0).then(|| rng.u64(1..=last_id));
            ModelSite { domain, cert_id, is_unreadable: cert_id.is_none() && rng.u8(..4) == 0 }
        };
        let sites: Vec<ModelSite> = domains.into_iter().map(&mut site).collect();
        let covered = sites.iter().map(|site| site.domain).filter(|domain| is_covered[*domain]);
        let mut requested: Vec<usize> = covered.filter(|_| rng.bool()).collect();
        if rng.u8(..3) > 0 {
            requested.clear();
        }
        let bound = (1..).zip(&sites).filter(|(_, site)| site.cert_id.is_some());
        let not_needed =
            bound.filter_map(|(id, _)| [(id, true), (id, false)].get(rng.usize(..8)).copied()).collect();
        let newer = (1..=last_id).filter(|_| rng.u8(..8) == 0).collect();
        let unreadable = (1..last_id).filter(|_| rng.u8(..12) == 0).collect();
        let kept = (1..last_id).filter(|_| rng.bool()).collect();
        let mut rarely = || rng.u8(..3) == 0;
        let (is_partial, partial) = ((rarely(), rarely()), rarely());
        let rebind = rarely();
        let guards = Guards {
            allow_shrink: rarely(),
            allow_older: rarely(),
            replace_lets: rarely(),
            allow_partial: partial,
        };
        let allow = Allow { rebind, guards };
        Self { sites, records, is_covered, requested, not_needed, newer, unreadable, is_partial, kept, allow }
    }

    fn wanted(&self) -> impl Iterator<Item = ModelSite> {
        let sites = (1..).zip(&self.sites).filter(|(id, _)| !self.not_needed.contains_key(id));
        sites.map(|(_, site)| *site).filter(|site| {
            let is_requested = self.requested.is_empty() || self.requested.contains(&site.domain);
            self.is_covered[site.domain] && is_requested
        })
    }

    /// Why a covered site must not get the certificate.
    fn unwanted(&self, id: u64) -> Option<Action> {
        let domain = self.sites[usize::try_from(id).unwrap() - 1].domain;
        if !self.requested.is_empty() && !self.requested.contains(&domain) {
            return Some(Action::Ignore);
        }
        let is_current = self.not_needed.get(&id)?;
        Some(if *is_current { Action::Current } else { Action::Superseded("other".into()) })
    }

    fn record(&self, id: u64) -> Option<&ModelRecord> {
        self.records.get(usize::try_from(id).unwrap() - 1)
    }

    /// The records of which an upload for a domain may replace one.
    fn replaceable_by(&self, domain: usize) -> Vec<u64> {
        let lists = |record: &ModelRecord| record.domains.contains(&domain) || record.name == Some(domain);
        (1..).zip(&self.records).filter(|(_, record)| lists(record)).map(|(id, _)| id).collect()
    }

    fn is_guarded(&self, domain: usize) -> bool {
        let records = self.replaceable_by(domain);
        if records.is_empty() {
            return self.is_partial.1 && !self.allow.guards.allow_partial;
        }
        records.into_iter().any(|id| {
            let is_system_issued = self.record(id).is_some_and(|record| record.is_system_issued);
            let is_lost = |site: &ModelSite| site.cert_id == Some(id) && !self.is_covered[site.domain];
            let shrinks = self.sites.iter().any(is_lost) || self.may_lose_hidden_site(id);
            is_system_issued && !self.allow.guards.replace_lets
                || shrinks && !self.allow.guards.allow_shrink
                || self.is_too_new(id)
        })
    }

    fn may_lose_hidden_site(&self, id: u64) -> bool {
        let is_unknown = |site: &ModelSite| site.is_unreadable && !self.is_covered[site.domain];
        let is_hidden =
            self.is_partial.0 || self.unreadable.contains(&id) || self.sites.iter().any(is_unknown);
        let is_kept = self.kept.contains(&id) && self.sites.iter().any(|site| site.cert_id == Some(id));
        is_hidden && !is_kept && !self.allow.guards.allow_partial
    }

    fn is_too_new(&self, id: u64) -> bool {
        self.newer.contains(&id) && !self.allow.guards.allow_older
    }

    /// The domain whose upload replaces a record, if that is possible and allowed.
    fn replaced_under(&self, id: u64) -> Option<usize> {
        let domain = self.upload_domain(self.record(id)?)?;
        let is_possible = self.is_covered[domain] && self.is_site(domain);
        (is_possible && !self.is_guarded(domain)).then_some(domain)
    }

    fn is_site(&self, domain: usize) -> bool {
        self.sites.iter().any(|site| site.domain == domain)
    }

    /// The domain that a record was uploaded for.
    fn upload_domain(&self, record: &ModelRecord) -> Option<usize> {
        match record.domains.as_slice() {
            [domain] if self.is_site(*domain) => Some(*domain),
            [domain] => Some(record.name.filter(|name| self.is_site(*name)).unwrap_or(*domain)),
            several => record.name.filter(|name| several.contains(name)),
        }
    }

    /// Whether `cert_id` of a wanted site may be set.
    fn may_bind(&self, site: ModelSite) -> bool {
        site.is_unbound() || self.allow.rebind && !site.cert_id.is_some_and(|id| self.is_too_new(id))
    }

    fn allowed_uploads(&self) -> Vec<usize> {
        let mut allowed = BTreeSet::new();
        for site in self.wanted() {
            let replaced = site.cert_id.and_then(|id| self.replaced_under(id));
            allowed.extend(replaced);
            let is_certain = replaced.is_some_and(|domain| self.replaceable_by(domain).len() == 1);
            if !is_certain && self.may_bind(site) && !self.is_guarded(site.domain) {
                allowed.insert(site.domain);
            }
        }
        allowed.into_iter().collect()
    }

    /// The cost of these uploads with the bindings that have to follow; `None` if a record might be left unused.
    fn cost(&self, uploads: &[usize]) -> Option<Cost> {
        let creates = uploads.iter().any(|domain| self.replaceable_by(*domain).is_empty());
        let (mut missed, mut uncertain, mut binds) = (0, 0, 0);
        for site in self.wanted() {
            let domain = site.cert_id.and_then(|id| self.replaced_under(id));
            let choices = domain
                .filter(|domain| uploads.contains(domain))
                .map(|domain| self.replaceable_by(domain).len());
            match choices {
                Some(1) => {}
                None if creates && site.is_unbound() => {}
                _ if self.may_bind(site) && !uploads.is_empty() => binds += 1,
                Some(_) => uncertain += 1,
                None => missed += 1,
            }
        }
        let may_create = |domain: &&usize| {
            let ids = self.replaceable_by(**domain).into_iter();
            let mut domains = ids.filter_map(|id| self.upload_domain(self.record(id)?));
            !domains.any(|other| other == **domain)
        };
        let creations = uploads.iter().filter(may_create).count();
        let has_unbound = self.sites.iter().any(|site| self.is_covered[site.domain] && site.is_unbound());
        let is_used = creations <= binds + usize::from(has_unbound);
        is_used.then_some((missed, uncertain, binds, uploads.len()))
    }

    fn lowest_cost(&self) -> Cost {
        let allowed = self.allowed_uploads();
        let subset = |bits: u32| -> Vec<usize> {
            let members = allowed.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
            members.map(|(_, domain)| *domain).collect()
        };
        (0..1u32 << allowed.len()).filter_map(|bits| self.cost(&subset(bits))).min().unwrap()
    }

    /// Asserts everything that must hold of a plan.
    fn check(&self, plan: &Plan<'_>, domains: &[Domain]) {
        let index = |domain: &Domain| domains.iter().position(|other| other == domain).unwrap();
        let uploads: Vec<usize> = plan.uploads.iter().map(|upload| index(upload.domain)).collect();
        for (upload, domain) in plan.uploads.iter().zip(&uploads) {
            assert!(!self.is_guarded(*domain), "a guard is missed");
            assert!(
                self.is_covered[*domain] && *domain < SITE_DOMAINS,
                "the service would refuse this upload"
            );
            assert_eq!(upload.replaces, self.replaceable_by(*domain));
        }
        let covered = self.sites.iter().filter(|site| self.is_covered[site.domain]).count();
        let targets: BTreeSet<u64> = plan.targets.iter().map(|target| target.site.id).collect();
        assert_eq!(
            (targets.len(), plan.targets.len()),
            (covered, covered),
            "one target for each covered site"
        );
        let (mut missed, mut binds) = (0, 0);
        for target in plan.targets.iter().filter(|target| target.wanted) {
            missed += usize::from(self.is_missed(target, plan, &uploads));
            binds += usize::from(matches!(target.action, Action::Bind(..)));
        }
        for target in plan.targets.iter().filter(|target| !target.wanted) {
            let is_kept = target.action == Action::Current;
            let has_leaf = self.not_needed.get(&target.site.id) == Some(&true);
            let is_requested =
                self.requested.is_empty() || self.requested.contains(&index(&target.site.domain));
            assert_eq!(is_kept, has_leaf && is_requested, "{:?}", target.action);
        }
        let cost = self.cost(&uploads).expect("no record is left unused");
        assert_eq!((missed, binds), (cost.0, cost.2), "plan (left) and model (right) differ");
        assert_eq!(cost, self.lowest_cost(), "cost of the plan (left) and of the best one (right)");
    }

    /// Asserts that the action of a wanted site is possible. Returns whether the site may not get the certificate.
    fn is_missed(&self, target: &Target<'_>, plan: &Plan<'_>, uploads: &[usize]) -> bool {
        let (cert_id, index) = (target.site.cert_id, usize::try_from(target.site.id - 1).unwrap());
        match &target.action {
            Action::Replace(at) => {
                assert!(plan.uploads[*at].replaces.contains(&cert_id.unwrap()));
                self.replaced_under(cert_id.unwrap()) != Some(uploads[*at])
            }
            Action::Create(at) => {
                assert!(plan.uploads[*at].replaces.is_empty() && target.site.is_unbound());
                false
            }
            Action::Bind(..) => {
                assert!(self.may_bind(self.sites[index]), "a binding that is not allowed");
                false
            }
            Action::Leave(_) => {
                let mut replaced = plan.uploads.iter().flat_map(|upload| &upload.replaces);
                assert!(!replaced.any(|id| Some(*id) == cert_id), "an upload may reach it nevertheless");
                true
            }
            Action::Ignore | Action::Current | Action::Superseded(_) => panic!("a wanted site is ignored"),
        }
    }
}

impl ModelRecord {
    fn generate(rng: &mut Rng) -> Self {
        let mut domains: Vec<usize> = (0..DOMAINS.len()).collect();
        rng.shuffle(&mut domains);
        domains.truncate(if rng.u8(..4) == 0 { rng.usize(2..=3) } else { 1 });
        let name = match rng.u8(..3) {
            0 => None,
            1 => Some(domains[0]),
            _ => Some(rng.usize(..DOMAINS.len())),
        };
        Self { domains, name, is_system_issued: rng.u8(..5) == 0 }
    }

    fn to_record(&self, id: u64, domains: &[Domain]) -> Record {
        let listed: Vec<Domain> = self.domains.iter().map(|domain| domains[*domain].clone()).collect();
        Record {
            id,
            name: self.name.map(|name| domains[name].clone()),
            domains: listed.into(),
            is_system_issued: self.is_system_issued,
        }
    }
}

impl ModelSite {
    fn is_unbound(self) -> bool {
        self.cert_id.is_none() && !self.is_unreadable
    }

    fn to_site(self, id: u64, domains: &[Domain]) -> Site {
        Site {
            id,
            domain: domains[self.domain].clone(),
            cert_id: self.cert_id,
            unreadable_cert_id: self.is_unreadable.then(|| "[]".into()),
            config_synced: true,
            cname: None,
            enabled: true,
            https_enabled: true,
            disabled_reason: None,
        }
    }
}

#[test]
fn plans_are_safe_and_cheapest() {
    check_plans(ACCOUNTS / 10);
}

#[test]
fn plans_of_every_account_are_safe_and_cheapest() {
    check_plans(ACCOUNTS);
}

fn check_plans(accounts: u64) {
    let domains: Vec<Domain> = DOMAINS.iter().map(|name| name.parse().unwrap()).collect();
    for seed in 0..accounts {
        let model = Model::generate(&mut Rng::with_seed(seed));
        let sites: Vec<Site> = (1..).zip(&model.sites).map(|(id, site)| site.to_site(id, &domains)).collect();
        let records: Vec<Record> =
            (1..).zip(&model.records).map(|(id, record)| record.to_record(id, &domains)).collect();
        let later_leaf = |id| {
            let (fingerprint, issuer, names) = ("aa".into(), None, Vec::new());
            let leaf = Leaf { fingerprint, names, not_before: LATER, not_after: LATER, issuer };
            model.newer.contains(&id).then_some(RecordLeaf { leaf, is_certain: true, must_stay: false })
        };
        let index = |domain: &Domain| domains.iter().position(|other| other == domain).unwrap();
        let covers = |domain: &Domain| model.is_covered[index(domain)];
        let request = PlanRequest {
            covers: &covers,
            unwanted: &|site| model.unwanted(site.id),
            later_leaf: &later_leaf,
            keeps_names: &|record| model.kept.contains(&record),
            missed: &HashMap::new(),
            allow: model.allow,
        };
        let (mut records, mut sites) = (List::complete(records), List::complete(sites));
        sites.gaps.push(Gap::of_bindings(model.unreadable.clone()));
        sites.gaps.extend(model.is_partial.0.then(Gap::any));
        records.gaps.extend(model.is_partial.1.then(Gap::any));
        let listing = IndexedListing::new(Listing { records, sites });
        let account = Account::whole(&listing);
        let shown = ShowOnPanic { seed, model: &model };
        model.check(&Plan::new(&account, &request), &domains);
        drop(shown);
    }
}

/// Prints the account in which an assertion fails.
struct ShowOnPanic<'a> {
    seed: u64,
    model: &'a Model,
}

#[expect(clippy::print_stderr, reason = "output of a failing test")]
impl Drop for ShowOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}: {:#?}", self.seed, self.model);
        }
    }
}
