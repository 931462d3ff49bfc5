//! Compares decisions from the part of an account around a lineage with those from the whole account, on generated
//! accounts: the sites that need no deployment, the edges to observe, the plan, and the warnings.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::LazyLock;

use fastrand::Rng;
use time::macros::datetime;
use time::{Duration, OffsetDateTime};

use super::left_behind::left_by_renewal;
use super::scope::tests::not_needed;
use super::scope::{Scope, SurveyGroup};
use super::survey::{Survey, tried};
use crate::api::{Gap, List, Listing, Record, Site};
use crate::leaf::Leaf;
use crate::names::{Domain, Names};
use crate::outcome::{ChangedRecords, Outcome};
use crate::plan::{Account, Action, Allow, IndexedListing, Plan};
use crate::report::Report;
use crate::settings::{Guards, Settings, Verify};
use crate::sightings::EdgeMemory;
use crate::source::Source;
use crate::state::{Deployments, LineageState, Origin, RunOptions, ServiceDeployments, SiteState};
use crate::verify::fixture::Shown;
use crate::verify::{EdgeView, OtherLeaf};

const ACCOUNTS: u64 = 100_000;
const NAMES: [&str; 9] = [
    "a.example",
    "b.example",
    "c.example",
    "*.a.example",
    "x.a.example",
    "y.a.example",
    "*.b.example",
    "x.b.example",
    "b\u{fc}cher.example",
];
const SERVICE: &str = "https://cdn.example";
const LINEAGE: &str = "own";
const NOW: OffsetDateTime = datetime!(2026-06-01 00:00 UTC);

/// Hosts are expensive to generate, so each is used for many accounts.
const HOSTS: u64 = 1_000;

/// Without and with verification.
static SETTINGS: LazyLock<[Settings; 2]> =
    LazyLock::new(|| [Verify::Off, Verify::Auto].map(|verify| Settings { verify, ..Settings::example() }));

/// What a host deployed before.
#[derive(Debug)]
struct Host {
    deployments: Rc<ServiceDeployments>,
    /// The records that the lineage stored a leaf in.
    records: Vec<u64>,
}

/// Everything that the decisions for one lineage depend on.
#[derive(Debug)]
struct Case<'h> {
    listing: IndexedListing,
    leaf: Leaf,
    requested: Vec<Domain>,
    host: &'h Host,
    missed: HashMap<u64, u64>,
    allow: Allow,
    is_verified: bool,
    force: bool,
    /// Varies what the edges serve.
    edges: u64,
}

/// What follows from an account. Sites are given by their addresses, which tell duplicates apart.
#[derive(Debug, PartialEq)]
struct Decisions<'a> {
    has_sites: Result<bool, String>,
    error: Option<String>,
    unlisted: Vec<String>,
    not_needed: BTreeMap<u64, Action>,
    warnings: Vec<String>,
    groups: Vec<(Vec<*const Site>, Vec<*const Site>)>,
    uploads: Vec<(&'a str, Vec<u64>, bool, Vec<&'a str>)>,
    targets: Vec<(*const Site, bool, Action)>,
}

impl Host {
    fn generate(rng: &mut Rng, domains: &[Domain]) -> Self {
        let own = state(rng, LINEAGE, domains);
        let mut deployments = Deployments::default();
        deployments.add(LINEAGE, &own);
        for lineage in ["second", "third"].iter().filter(|_| rng.u8(..4) > 0).collect::<Vec<_>>() {
            deployments.add(lineage, &state(rng, lineage, domains));
        }
        Self { deployments: deployments.of_service(SERVICE), records: own.stored_records(SERVICE) }
    }
}

impl<'h> Case<'h> {
    fn generate(rng: &mut Rng, host: &'h Host, domains: &[Domain]) -> Self {
        let records: Vec<Record> = (1..=rng.u64(..=7)).map(|id| record(rng, id, domains)).collect();
        let listing = IndexedListing::new(listing(rng, records, domains));
        let own = leaf(rng, LINEAGE);
        let is_asked_for = rng.u8(..3) == 0;
        let requested = domains.iter().filter(|_| is_asked_for && rng.u8(..4) == 0).cloned().collect();
        let missed = missed(rng);
        let mut rarely = || rng.u8(..4) == 0;
        let rebind = rarely();
        let guards = Guards {
            allow_shrink: rarely(),
            allow_older: rarely(),
            replace_lets: rarely(),
            allow_partial: rarely(),
        };
        let allow = Allow { rebind, guards };
        Self {
            listing,
            leaf: own,
            requested,
            host,
            missed,
            allow,
            is_verified: !rarely(),
            force: rarely(),
            edges: rng.u64(..),
        }
    }

    fn names(&self) -> Names {
        Names::of(self.leaf.names.iter().map(String::as_str))
    }

    fn decisions<'a>(&'a self, account: &Account<'a>) -> Decisions<'a> {
        let deployments = &self.host.deployments;
        let mut scope = Scope {
            lineage: LINEAGE,
            leaf: self.leaf.clone(),
            names: self.names(),
            domains: &self.requested,
            account,
            deployments,
            missed: &self.missed,
            settings: &SETTINGS[usize::from(self.is_verified)],
            allow: self.allow,
            repeats_since: None,
            force: self.force,
            now: NOW,
            survey: Survey::default(),
        };
        let mut report = Report::new("deploy");
        let has_sites = scope.has_sites(false, &mut report);
        let groups = scope.survey_groups();
        scope.survey = self.survey(&groups, &scope);
        let Plan { uploads, targets, .. } = scope.plan();
        let spelled = |domain: &'a Domain| domain.spelled();
        let not_needed = account.sites.iter().filter_map(|site| Some((site.id, not_needed(&scope, site)?)));
        let uploads = uploads.into_iter().map(|upload| {
            let alternatives = upload.alternatives.into_iter().map(spelled).collect();
            (spelled(upload.domain), upload.replaces, upload.may_create, alternatives)
        });
        let targets =
            targets.into_iter().map(|target| (std::ptr::from_ref(target.site), target.wanted, target.action));
        Decisions {
            has_sites: has_sites.map_err(|error| error.to_string()),
            error: report.error(),
            unlisted: report.deployed.sites.iter().map(|site| site.domain.spelled().to_owned()).collect(),
            not_needed: not_needed.collect(),
            warnings: left_by_renewal(&scope),
            groups: groups.iter().map(|group| (addresses(&group.wanted), addresses(&group.others))).collect(),
            uploads: uploads.collect(),
            targets: targets.collect(),
        }
    }

    fn survey(&self, groups: &[SurveyGroup<'_>], scope: &Scope<'_, '_>) -> Survey {
        let mut survey = Survey::default();
        if !self.is_verified {
            return survey;
        }
        for site in groups.iter().flat_map(tried) {
            survey.add([(site, self.view(site))].into_iter());
        }
        let due = survey.due(groups, |group| survey.may_be_current(group, scope));
        survey.add(due.into_iter().map(|site| (site, self.view(site))));
        survey
    }

    /// What the edge of a site serves; the same each time.
    fn view(&self, site: &Site) -> EdgeView {
        let mut rng = Rng::with_seed(self.edges ^ site.id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut view = EdgeView::new(false);
        let other = leaf(&mut rng, "served");
        let shown = match rng.u8(..5) {
            0 | 1 => Shown::Expected,
            2 => Shown::Unreachable,
            3 => Shown::Refusal,
            _ => Shown::Other(OtherLeaf { leaf: other, covers_site: true }),
        };
        view.show(1, shown);
        view
    }
}

/// The records of some sites.
fn missed(rng: &mut Rng) -> HashMap<u64, u64> {
    (1..=8)
        .map(|site| (site, rng.u64(1..=8), rng.u8(..6)))
        .filter(|(.., n)| *n == 0)
        .map(|(site, record, _)| (site, record))
        .collect()
}

fn addresses(sites: &[&Site]) -> Vec<*const Site> {
    sites.iter().map(|site| std::ptr::from_ref(*site)).collect()
}

fn listing(rng: &mut Rng, records: Vec<Record>, domains: &[Domain]) -> Listing {
    let mut sites: Vec<Site> = (1..=rng.u64(..=8)).map(|id| site(rng, id, domains)).collect();
    // A page that was sent twice.
    if rng.u8(..8) == 0 {
        sites.extend(sites.first().cloned());
    }
    let (mut records, mut sites) = (List::complete(records), List::complete(sites));
    for gaps in [&mut sites.gaps, &mut records.gaps] {
        gaps.extend((rng.u8(..8) == 0).then(Gap::any));
    }
    let unreadable: Vec<u64> = (1..=8).filter(|_| rng.u8(..24) == 0).collect();
    if !unreadable.is_empty() {
        sites.gaps.push(Gap::of_bindings(unreadable));
    }
    Listing { records, sites }
}

fn record(rng: &mut Rng, id: u64, domains: &[Domain]) -> Record {
    let several = if rng.u8(..4) == 0 { rng.usize(..=3) } else { 1 };
    let name = (rng.u8(..3) > 0).then(|| any(rng, domains));
    let is_system_issued = rng.u8(..6) == 0;
    Record {
        // Two records rarely have the same id.
        id: if rng.u8(..24) == 0 { rng.u64(1..=8) } else { id },
        name,
        domains: (0..several).map(|_| any(rng, domains)).collect::<Vec<_>>().into(),
        is_system_issued,
    }
}

fn site(rng: &mut Rng, id: u64, domains: &[Domain]) -> Site {
    let cert_id = (rng.u8(..4) > 0).then(|| rng.u64(1..=8));
    Site {
        id,
        domain: any(rng, domains),
        cert_id,
        unreadable_cert_id: (cert_id.is_none() && rng.u8(..4) == 0).then(|| "[]".into()),
        config_synced: rng.u8(..4) > 0,
        cname: None,
        enabled: rng.u8(..12) > 0,
        https_enabled: rng.u8(..12) > 0,
        disabled_reason: None,
    }
}

fn any(rng: &mut Rng, domains: &[Domain]) -> Domain {
    domains[rng.usize(..domains.len())].clone()
}

fn leaf(rng: &mut Rng, prefix: &str) -> Leaf {
    let number = rng.i64(0..4);
    let names = NAMES.iter().filter(|_| rng.u8(..3) == 0).map(|name| (*name).to_owned()).collect();
    let not_before = datetime!(2026-05-01 00:00 UTC) + Duration::days(number);
    let lifetime = Duration::days(if rng.u8(..8) == 0 { 10 } else { 90 });
    Leaf {
        fingerprint: format!("{prefix}{number}"),
        names,
        not_before,
        not_after: not_before + lifetime,
        issuer: None,
    }
}

/// The state of a lineage after one run.
fn state(rng: &mut Rng, lineage: &str, domains: &[Domain]) -> LineageState {
    let source = Source::of_file("/c");
    let service = Some(SERVICE.to_owned());
    let options = RunOptions { service, origin: Origin::Hook, ..RunOptions::default() };
    let leaf = leaf(rng, lineage);
    let now = leaf.not_before;
    let mut state = LineageState::begin(None, source, &options, Some(leaf), now);
    let sites = (1..=8).filter(|_| rng.u8(..4) == 0).collect::<Vec<u64>>();
    let sites = sites.into_iter().map(|id| {
        let outcomes =
            [Outcome::Served, Outcome::Served, Outcome::Misbound, Outcome::Queued, Outcome::Superseded];
        SiteState {
            id: Some(id),
            domain: any(rng, domains).clone(),
            cname: None,
            cert_id: Some(rng.u64(1..=8)),
            outcome: outcomes[rng.usize(..outcomes.len())].clone(),
            detail: None,
            leaf: None,
            edge: EdgeMemory::default(),
        }
    });
    let sites = sites.collect();
    let stored = (1..=8).filter(|_| rng.u8(..6) == 0).collect();
    let maybe_stored = (1..=8).filter(|_| rng.u8(..12) == 0).collect();
    let changed = ChangedRecords { stored, maybe_stored, ..ChangedRecords::default() };
    state.finish((0, None), sites, &changed, &options, now);
    state
}

#[test]
fn part_of_account_leads_to_same_decisions() {
    compare_decisions(ACCOUNTS / 100);
}

#[test]
fn part_of_every_account_leads_to_same_decisions() {
    compare_decisions(ACCOUNTS);
}

fn compare_decisions(accounts: u64) {
    let domains: Vec<Domain> = NAMES.iter().map(|name| name.parse().unwrap()).collect();
    let hosts: Vec<Host> =
        (0..HOSTS).map(|seed| Host::generate(&mut Rng::with_seed(seed), &domains)).collect();
    for seed in 0..accounts {
        let mut rng = Rng::with_seed(seed);
        let host = &hosts[rng.usize(..hosts.len())];
        let case = Case::generate(&mut rng, host, &domains);
        let names = Names::of(case.leaf.names.iter().map(String::as_str));
        let whole = case.decisions(&Account::whole(&case.listing));
        let part = case.listing.around(&names, &case.requested, host.records.iter().copied());
        assert_eq!(case.decisions(&part), whole, "part (left) and whole (right), seed {seed}: {case:#?}");
    }
}
