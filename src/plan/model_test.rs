//! The planner against an exhaustive search over generated accounts: no orphan, no covered site silently left, no guard
//! missed, and no plan that gets further, changes fewer bindings or makes fewer uploads.
//!
//! The model here knows the service's rules in its own words: domains are numbers and what an upload may replace is
//! counted, with the worst luck where the service may choose.

use std::collections::{BTreeSet, HashMap};

use fastrand::Rng;
use time::OffsetDateTime;
use time::macros::datetime;

use super::{Account, Action, Allow, Plan, PlanRequest};
use crate::api::{Record, RecordType, Site};
use crate::names::Domain;

const WORLDS: u64 = 100_000;
const POOL: [&str; 8] = [
    "a.example",
    "b.example",
    "c.example",
    "d.example",
    "*.a.example",
    "x.a.example",
    "b\u{fc}cher.example",
    "no-site.example",
];
/// The last of the pool is never a site.
const SITES: usize = 7;
const ISSUED: OffsetDateTime = datetime!(2026-01-01 00:00 UTC);
const LATER: OffsetDateTime = datetime!(2026-02-01 00:00 UTC);

/// A generated account; domains are places in the pool, records are named by their place plus one.
#[derive(Debug)]
struct World {
    /// Domain and `cert_id`.
    sites: Vec<(usize, Option<u64>)>,
    records: Vec<Made>,
    covered: Vec<bool>,
    asked: Vec<usize>,
    /// Records whose leaf was issued after the new one.
    newer: BTreeSet<u64>,
    /// Records to which sites are bound that cannot be read.
    unreadable: Vec<u64>,
    allow: Allow,
}

#[derive(Debug)]
struct Made {
    domains: Vec<usize>,
    name: Option<usize>,
    system: bool,
}

/// Sites that stay behind, that are left to luck, bindings that are changed, uploads: less is better, in this order.
type Cost = (usize, usize, usize, usize);

impl World {
    fn generate(dice: &mut Rng) -> Self {
        let covered: Vec<bool> = POOL.iter().map(|_| dice.u8(..4) > 0).collect();
        let records: Vec<Made> = (0..dice.usize(..=6)).map(|_| Made::generate(dice)).collect();
        let mut domains: Vec<usize> = (0..SITES).collect();
        dice.shuffle(&mut domains);
        domains.truncate(dice.usize(1..=6));
        // The number behind the last record is another account's.
        let cert_id = |dice: &mut Rng| (dice.u8(..3) > 0).then(|| dice.u64(1..=records.len() as u64 + 1));
        let sites: Vec<(usize, Option<u64>)> =
            domains.into_iter().map(|domain| (domain, cert_id(dice))).collect();
        let mut asked: Vec<usize> = sites.iter().map(|site| site.0).filter(|site| covered[*site]).collect();
        asked.retain(|_| dice.bool());
        if dice.u8(..3) > 0 {
            asked.clear();
        }
        let newer = (1..=records.len() as u64 + 1).filter(|_| dice.u8(..8) == 0).collect();
        let unreadable = (1..=records.len() as u64).filter(|_| dice.u8(..12) == 0).collect();
        let mut rarely = || dice.u8(..3) == 0;
        let allow = Allow { rebind: rarely(), shrink: rarely(), older: rarely(), lets: rarely() };
        Self { sites, records, covered, asked, newer, unreadable, allow }
    }

    fn wanted(&self) -> Vec<(usize, Option<u64>)> {
        let is_wanted = |domain: &usize| self.asked.is_empty() || self.asked.contains(domain);
        self.sites.iter().copied().filter(|site| self.covered[site.0] && is_wanted(&site.0)).collect()
    }

    fn record(&self, id: u64) -> Option<&Made> {
        self.records.get(usize::try_from(id).unwrap() - 1)
    }

    /// Records of which an upload for this domain may replace one.
    fn may_replace(&self, domain: usize) -> Vec<u64> {
        let lists = |record: &Made| record.domains.contains(&domain) || record.name == Some(domain);
        (1..).zip(&self.records).filter(|(_, record)| lists(record)).map(|(id, _)| id).collect()
    }

    fn is_guarded(&self, domain: usize) -> bool {
        self.may_replace(domain).into_iter().any(|id| {
            let system = self.record(id).is_some_and(|record| record.system);
            let shrinks = self.sites.iter().any(|site| site.1 == Some(id) && !self.covered[site.0]);
            let shrinks = shrinks || self.unreadable.contains(&id);
            system && !self.allow.lets || shrinks && !self.allow.shrink || self.is_older_than(id)
        })
    }

    fn is_older_than(&self, id: u64) -> bool {
        self.newer.contains(&id) && !self.allow.older
    }

    /// The domain under which a record is replaced in place, if that may be done.
    fn replaced_under(&self, id: u64) -> Option<usize> {
        let key = self.key(self.record(id)?)?;
        (self.covered[key] && self.is_site(key) && !self.is_guarded(key)).then_some(key)
    }

    fn is_site(&self, domain: usize) -> bool {
        self.sites.iter().any(|site| site.0 == domain)
    }

    /// The domain that a record was uploaded for.
    fn key(&self, record: &Made) -> Option<usize> {
        match record.domains.as_slice() {
            [domain] if self.is_site(*domain) => Some(*domain),
            [domain] => Some(record.name.filter(|name| self.is_site(*name)).unwrap_or(*domain)),
            several => record.name.filter(|name| several.contains(name)),
        }
    }

    /// Whether `cert_id` of a wanted site may be set.
    fn may_bind(&self, cert_id: Option<u64>) -> bool {
        cert_id.is_none_or(|id| self.allow.rebind && !self.is_older_than(id))
    }

    fn legal_uploads(&self) -> Vec<usize> {
        let mut legal = BTreeSet::new();
        for (domain, cert_id) in self.wanted() {
            let key = cert_id.and_then(|id| self.replaced_under(id));
            legal.extend(key);
            let surely = key.is_some_and(|key| self.may_replace(key).len() == 1);
            if !surely && self.may_bind(cert_id) && !self.is_guarded(domain) {
                legal.insert(domain);
            }
        }
        legal.into_iter().collect()
    }

    /// What these uploads cost, with the bindings that have to follow; `None` where a record might be left unused.
    fn cost(&self, uploads: &[usize]) -> Option<Cost> {
        let fresh = |domain: &&usize| self.may_replace(**domain).is_empty();
        let binds_the_unbound = uploads.iter().any(|domain| fresh(&domain));
        let (mut left, mut risked, mut binds) = (0, 0, 0);
        for (_, cert_id) in self.wanted() {
            let key = cert_id.and_then(|id| self.replaced_under(id)).filter(|key| uploads.contains(key));
            let luck = key.map(|key| self.may_replace(key).len());
            match (luck, cert_id) {
                (Some(1), _) => {}
                (None, None) if binds_the_unbound => {}
                _ if self.may_bind(cert_id) && !uploads.is_empty() => binds += 1,
                (Some(_), _) => risked += 1,
                (None, _) => left += 1,
            }
        }
        let might_create = uploads.iter().filter(|domain| {
            let keys = self.may_replace(**domain).into_iter().filter_map(|id| self.key(self.record(id)?));
            !keys.into_iter().any(|key| key == **domain)
        });
        let unbound = self.sites.iter().any(|site| self.covered[site.0] && site.1.is_none());
        (might_create.count() <= binds + usize::from(unbound)).then_some((left, risked, binds, uploads.len()))
    }

    fn best(&self) -> Cost {
        let legal = self.legal_uploads();
        let subset = |bits: u32| -> Vec<usize> {
            legal
                .iter()
                .enumerate()
                .filter(|(at, _)| bits >> at & 1 == 1)
                .map(|(_, domain)| *domain)
                .collect()
        };
        (0..1u32 << legal.len()).filter_map(|bits| self.cost(&subset(bits))).min().unwrap()
    }

    /// Everything that must hold of a plan.
    fn judge(&self, plan: &Plan<'_>, pool: &[Domain]) {
        let number = |domain: &Domain| pool.iter().position(|other| other == domain).unwrap();
        let uploads: Vec<usize> = plan.uploads.iter().map(|upload| number(upload.domain)).collect();
        for (upload, domain) in plan.uploads.iter().zip(&uploads) {
            assert!(!self.is_guarded(*domain), "a guard is missed");
            assert!(self.covered[*domain] && *domain < SITES, "the service refuses this upload");
            assert_eq!(upload.replaces, self.may_replace(*domain));
        }
        let covered = self.sites.iter().filter(|site| self.covered[site.0]).count();
        let told: BTreeSet<u64> = plan.targets.iter().map(|target| target.site.id).collect();
        assert_eq!((told.len(), plan.targets.len()), (covered, covered), "a site is left in silence");
        let (mut left, mut binds) = (0, 0);
        for target in plan.targets.iter().filter(|target| target.wanted) {
            let cert_id = target.site.cert_id;
            match &target.action {
                Action::Replaced(at) => {
                    assert!(plan.uploads[*at].replaces.contains(&cert_id.unwrap()));
                    // One that only luck brings to the site counts as left.
                    left += usize::from(self.replaced_under(cert_id.unwrap()) != Some(uploads[*at]));
                }
                Action::Created(at) => assert!(plan.uploads[*at].replaces.is_empty() && cert_id.is_none()),
                Action::Bound(..) => {
                    assert!(self.may_bind(cert_id), "a binding that nobody allowed");
                    binds += 1;
                }
                Action::Left(_) => {
                    let ambiguous =
                        |upload: &super::Upload<'_>| upload.replaces.contains(&cert_id.unwrap_or(0));
                    assert!(!plan.uploads.iter().any(ambiguous), "an upload may reach it all the same");
                    left += 1;
                }
                Action::Untouched => panic!("a wanted site is not touched"),
            }
        }
        let cost = self.cost(&uploads).expect("an orphan");
        assert_eq!((left, binds), (cost.0, cost.2), "the plan says otherwise than the model");
        assert_eq!(cost, self.best(), "what the plan costs (left) and what the best one does (right)");
    }
}

impl Made {
    fn generate(dice: &mut Rng) -> Self {
        let mut domains: Vec<usize> = (0..POOL.len()).collect();
        dice.shuffle(&mut domains);
        domains.truncate(if dice.u8(..4) == 0 { dice.usize(2..=3) } else { 1 });
        let name = match dice.u8(..3) {
            0 => None,
            1 => Some(domains[0]),
            _ => Some(dice.usize(..POOL.len())),
        };
        Self { domains, name, system: dice.u8(..5) == 0 }
    }
}

#[test]
fn no_plan_is_better_and_none_does_harm() {
    let pool: Vec<Domain> = POOL.iter().map(|name| name.parse().unwrap()).collect();
    for seed in 0..WORLDS {
        let world = World::generate(&mut Rng::with_seed(seed));
        let sites: Vec<Site> = (1..)
            .zip(&world.sites)
            .map(|(id, (domain, cert_id))| Site {
                id,
                domain: pool[*domain].clone(),
                cert_id: *cert_id,
                config_synced: true,
                cname: None,
                enabled: true,
                disabled_reason: None,
            })
            .collect();
        let records: Vec<Record> =
            (1..).zip(&world.records).map(|(id, made)| made.as_record(id, &pool)).collect();
        let issued: HashMap<u64, OffsetDateTime> = world.newer.iter().map(|id| (*id, LATER)).collect();
        let domains: Vec<Domain> = world.asked.iter().map(|domain| pool[*domain].clone()).collect();
        let covers = |domain: &Domain| world.covered[pool.iter().position(|other| other == domain).unwrap()];
        let request = PlanRequest { covers: &covers, issued: ISSUED, domains: &domains, allow: world.allow };
        let account =
            Account { sites: &sites, records: &records, unreadable: &world.unreadable, issued: &issued };
        let told = Told { seed, world: &world };
        world.judge(&Plan::make(&account, &request), &pool);
        drop(told);
    }
}

impl Made {
    fn as_record(&self, id: u64, pool: &[Domain]) -> Record {
        Record {
            id,
            name: self.name.map(|name| pool[name].clone()),
            domains: self.domains.iter().map(|domain| pool[*domain].clone()).collect(),
            kind: if self.system { RecordType::System } else { RecordType::Other("upload".into()) },
        }
    }
}

/// Says which world it was when a test fails in it.
struct Told<'a> {
    seed: u64,
    world: &'a World,
}

#[expect(clippy::print_stderr, reason = "it is a test that fails")]
impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("world {}: {:#?}", self.seed, self.world);
        }
    }
}
