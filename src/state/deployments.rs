//! What this host deployed, according to its state files: the leaf in each record, for the guard `Older`, and the lineages
//! of each site, to decide which of them is superseded.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::rc::Rc;

use time::OffsetDateTime;

use super::records::Holder;
use super::{LineageState, SiteState};
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::text::rfc3339;

/// The deployments of all lineages.
#[derive(Debug, Default)]
pub(crate) struct Deployments {
    by_service: HashMap<String, Rc<ServiceDeployments>>,
}

/// The deployments to one service.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServiceDeployments {
    /// Leaves that were stored in a record, or may have been, by record.
    records: HashMap<u64, Vec<StoredLeaf>>,
    /// By host of the site; several lineages may have been deployed to one.
    sites: HashMap<String, Vec<SiteDeployment>>,
}

/// A leaf that was stored in a record.
#[derive(Clone, Debug)]
pub(crate) struct StoredLeaf {
    pub(crate) lineage: String,
    pub(crate) leaf: Rc<Leaf>,
    pub(crate) holder: Holder,
}

/// The deployment of a lineage to a site.
#[derive(Clone, Debug)]
pub(crate) struct SiteDeployment {
    pub(crate) lineage: String,
    pub(crate) leaf: Rc<Leaf>,
    /// The record that the site has the leaf from; `None`: unknown.
    record: Option<u64>,
    /// Whether `sync` keeps the site as it is: the lineage is for the site, and its files are there.
    is_maintained: bool,
}

impl Deployments {
    /// The deployments of these lineages.
    pub(crate) fn of(states: &[(String, LineageState)]) -> Self {
        let mut deployments = Self::default();
        for (lineage, state) in states {
            deployments.add(lineage, state);
        }
        deployments
    }

    /// Adds the deployments of a lineage.
    pub(crate) fn add(&mut self, lineage: &str, state: &LineageState) {
        let mut leaves: HashMap<String, Rc<Leaf>> = HashMap::new();
        let mut share = |leaf: &Leaf| {
            let shared = leaves.entry(leaf.fingerprint.clone());
            Rc::clone(shared.or_insert_with(|| Rc::new(leaf.clone())))
        };
        for known in state.records().leaves {
            let records = &mut self.service(&known.service).records;
            for holder in known.records {
                let (lineage, leaf) = (lineage.to_owned(), share(&known.leaf));
                records.entry(holder.id).or_insert_with(one).push(StoredLeaf { lineage, leaf, holder });
            }
        }
        let Some(service) = state.sites_service() else { return };
        let sites = &mut self.service(service).sites;
        for site in &state.sites {
            let Some(leaf) = state.leaf_deployed_to(site) else { continue };
            sites.entry(site.domain.host().to_owned()).or_insert_with(one).push(SiteDeployment {
                lineage: lineage.to_owned(),
                leaf: share(leaf),
                record: site.cert_id,
                is_maintained: state.is_for(site) && state.missing_since.is_none(),
            });
        }
    }

    fn service(&mut self, service: &str) -> &mut ServiceDeployments {
        Rc::make_mut(self.by_service.entry(service.to_owned()).or_default())
    }

    /// The deployments to a service.
    pub(crate) fn of_service(&self, service: &str) -> Rc<ServiceDeployments> {
        self.by_service.get(service).cloned().unwrap_or_default()
    }
}

/// A list that nearly always has one item; the first push would make room for four.
fn one<T>() -> Vec<T> {
    Vec::with_capacity(1)
}

impl ServiceDeployments {
    /// The hosts of the sites to which a lineage was deployed; `None`: any lineage.
    pub(crate) fn hosts(&self, lineage: Option<&str>) -> impl Iterator<Item = &str> {
        let is_of = move |site: &SiteDeployment| lineage.is_none_or(|lineage| site.lineage == lineage);
        let deployed = self.sites.iter().filter(move |(_, deployments)| deployments.iter().any(is_of));
        deployed.map(|(host, _)| host.as_str())
    }

    /// The deployments of the last runs to a site, one for each lineage.
    pub(crate) fn on(&self, site: &Domain) -> &[SiteDeployment] {
        self.sites.get(site.host()).map(Vec::as_slice).unwrap_or_default()
    }

    /// The leaves that a record may hold; several if responses to uploads were lost.
    pub(crate) fn leaves_in(&self, record: u64) -> Vec<&StoredLeaf> {
        let stored = self.stored_in(record);
        let is_since = |leaf: &&StoredLeaf| {
            // A lineage forgets its own; the clock may have been set back in between.
            stored.is_none_or(|stored| stored.lineage == leaf.lineage || leaf.holder.at > stored.holder.at)
        };
        // A later one may have been stored before, and not have reached the edge yet.
        let is_later = |leaf: &StoredLeaf| {
            stored.is_some_and(|seen| seen.holder.is_seen && leaf.leaf.not_before > seen.leaf.not_before)
        };
        let known = self.known_in(record);
        let others = known.filter(|leaf| is_later(leaf) || leaf.holder.is_doubtful && is_since(leaf));
        stored.into_iter().chain(others).collect()
    }

    /// Whether another lineage has stored its leaf in a record after this one had, both since a time.
    pub(crate) fn is_taken_since(&self, since: OffsetDateTime, lineage: &str, record: u64) -> bool {
        let mut known = self.known_in(record);
        known.any(|leaf| leaf.lineage == lineage && !leaf.holder.is_doubtful && leaf.holder.at > since)
            && self.stored_in(record).is_some_and(|last| last.lineage != lineage)
    }

    /// Whether a record is known to hold a leaf.
    pub(crate) fn record_holds(&self, record: u64, leaf: &Leaf) -> bool {
        let known = self.leaves_in(record);
        let has_leaf =
            |stored: &&StoredLeaf| !stored.holder.is_doubtful && stored.leaf.fingerprint == leaf.fingerprint;
        !known.is_empty() && known.iter().all(has_leaf)
    }

    /// The leaf of the last upload to a record that the service confirmed. Two lineages may have used the record: what was
    /// stored last counts. The name of the lineage breaks ties.
    pub(crate) fn stored_in(&self, record: u64) -> Option<&StoredLeaf> {
        let certain = self.known_in(record).filter(|leaf| !leaf.holder.is_doubtful);
        certain.max_by_key(|leaf| (leaf.holder.at, Reverse(&leaf.lineage)))
    }

    /// The leaves that lineages stored in a record, or may have.
    fn known_in(&self, record: u64) -> impl Iterator<Item = &StoredLeaf> {
        self.records.get(&record).into_iter().flatten()
    }

    /// The deployment that supersedes a lineage with this leaf on a site, given with its record: that of another lineage,
    /// whose leaf is valid and was issued later. If `sync` does not maintain it, the site must still be bound to its record,
    /// and no other leaf may have been stored there since. Where it is held like this, a valid leaf also supersedes an
    /// expired one that was issued later.
    pub(crate) fn superseding(
        &self,
        (site, record): (&Domain, Option<u64>),
        lineage: &str,
        leaf: &Leaf,
        now: OffsetDateTime,
    ) -> Option<&SiteDeployment> {
        let is_held = |other: &SiteDeployment| {
            let known = record.filter(|_| other.record == record).map(|record| self.leaves_in(record));
            known.is_some_and(|known| known.iter().any(|stored| stored.leaf == other.leaf))
        };
        let has_expired = leaf.not_after < now;
        let supersedes = |other: &&SiteDeployment| {
            let is_later = other.leaf.rank() > leaf.rank();
            let is_provided =
                if is_later { other.is_maintained || is_held(other) } else { has_expired && is_held(other) };
            other.lineage != lineage && other.leaf.not_after >= now && is_provided
        };
        self.on(site).iter().filter(supersedes).max_by_key(|other| other.leaf.rank())
    }
}

impl SiteDeployment {
    /// Why the lineage supersedes others.
    pub(crate) fn reason(&self) -> String {
        let Self { lineage, leaf, .. } = self;
        format!("lineage {lineage} provides the certificate, issued at {}", rfc3339(leaf.not_before))
    }
}

impl LineageState {
    /// The leaf that was deployed to a site last.
    pub(crate) fn leaf_deployed_to(&self, site: &SiteState) -> Option<&Leaf> {
        match &site.outcome {
            outcome if outcome.is_bound() => {
                let remembered = self.records.leaves.iter().map(|known| &known.leaf);
                let mut known = self.leaf.iter().chain(&self.previously_deployed).chain(remembered);
                known.find(|leaf| Some(&leaf.fingerprint) == site.leaf.as_ref())
            }
            // Without it, a failed renewal would bring back the lineages that it superseded.
            Outcome::Queued | Outcome::Guarded | Outcome::Refused => self.previously_deployed.as_ref(),
            _ => None,
        }
    }

    /// Whether another lineage has superseded this one on every site.
    pub(crate) fn is_superseded(&self) -> bool {
        !self.sites.is_empty() && self.sites.iter().all(|site| site.outcome == Outcome::Superseded)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{DAY_1, DAY_2, ISSUED, SERVICE, begin, deployed, finish, leaf, served};
    use super::*;
    use crate::outcome::ChangedRecords;
    use time::macros::datetime;

    fn deployments(states: [&LineageState; 2]) -> Deployments {
        let mut deployments = Deployments::default();
        for (name, state) in ["first", "second"].iter().zip(states) {
            deployments.add(name, state);
        }
        deployments
    }

    fn issued(states: [&LineageState; 2]) -> OffsetDateTime {
        deployments(states).of_service(SERVICE).leaves_in(5)[0].leaf.not_before
    }

    #[test]
    fn later_deployment_decides_issue_date() {
        let first = deployed(leaf("aa", datetime!(2026-01-02 00:00 UTC)), DAY_1);
        let second = deployed(leaf("bb", ISSUED), DAY_2);
        for states in [[&first, &second], [&second, &first]] {
            assert_eq!(issued(states), ISSUED);
            assert!(deployments(states).of_service("https://other.example.net").leaves_in(5).is_empty());
        }
    }

    #[test]
    fn leaf_seen_at_the_edge_leaves_a_later_one_that_was_stored() {
        let mut seen = begin(None, leaf("bb", DAY_1), DAY_2);
        finish(&mut seen, 0, served(), &ChangedRecords::default(), DAY_2);
        for (issued, expected) in [(DAY_2, &["bb", "cc"][..]), (DAY_1, &["bb"]), (ISSUED, &["bb"])] {
            let stored = deployed(leaf("cc", issued), DAY_1);
            let known = deployments([&seen, &stored]).of_service(SERVICE);
            let held = known.leaves_in(5).into_iter().map(|known| known.leaf.fingerprint.as_str());
            assert_eq!(held.collect::<Vec<_>>(), expected, "it may not have reached the edge: {issued}");
        }
        let mut lost = begin(None, leaf("cc", DAY_2), DAY_1);
        let maybe = ChangedRecords { maybe_stored: [5].into(), ..ChangedRecords::default() };
        finish(&mut lost, 75, Vec::new(), &maybe, DAY_1);
        let known = deployments([&seen, &lost]).of_service(SERVICE);
        assert_eq!(known.leaves_in(5).len(), 2, "nor may one whose response was lost");
        let stored = deployed(leaf("bb", DAY_1), DAY_2 + time::Duration::HOUR);
        let known = deployments([&deployed(leaf("cc", DAY_2), DAY_1), &stored]).of_service(SERVICE);
        assert_eq!(known.leaves_in(5).len(), 1, "it was replaced");
    }

    #[test]
    fn run_without_sites_keeps_issue_date() {
        let state = deployed(leaf("aa", ISSUED), DAY_1);
        let mut newer = begin(Some(state.clone()), leaf("bb", DAY_1), DAY_2);
        finish(&mut newer, 75, Vec::new(), &ChangedRecords::default(), DAY_2);
        assert!(!state.has_earlier_leaf() && newer.has_earlier_leaf());
        assert_eq!(issued([&newer, &newer]), ISSUED);
    }

    #[test]
    fn expired_leaf_is_superseded_by_an_earlier_one() {
        let earlier = deployed(leaf("aa", ISSUED), DAY_1);
        let (known, site) =
            (deployments([&earlier, &earlier]).of_service(SERVICE), "a.example".parse().unwrap());
        for (not_after, record, is_superseded) in
            [(DAY_1, Some(5), true), (DAY_1, Some(6), false), (DAY_1, None, false), (DAY_2, Some(5), false)]
        {
            let own = Leaf { not_after, ..leaf("bb", DAY_1) };
            let other = known.superseding((&site, record), "own", &own, DAY_2);
            assert_eq!(other.is_some(), is_superseded, "{not_after} {record:?}");
        }
    }

    #[test]
    fn failed_renewal_supersedes_with_earlier_leaf() {
        use Outcome::{Guarded, Misbound, Queued, Refused, Skipped, Stale, Superseded};
        let first = deployed(leaf("bb", ISSUED), DAY_1);
        let by_second = |before: Option<LineageState>, outcome: &Outcome| {
            let mut second = begin(before, leaf("cc", DAY_2), DAY_2);
            let mut sites = served();
            sites[0].outcome = outcome.clone();
            finish(&mut second, 75, sites, &ChangedRecords::default(), DAY_2);
            let (known, site) =
                (deployments([&first, &second]).of_service(SERVICE), "a.example".parse().unwrap());
            let other = known.superseding((&site, None), "first", &leaf("bb", ISSUED), DAY_2);
            other.map(|other| other.leaf.not_before)
        };
        let before = || Some(deployed(leaf("dd", DAY_1), DAY_1));
        for outcome in [Queued, Guarded, Refused] {
            assert_eq!(by_second(before(), &outcome), Some(DAY_1), "{outcome}");
            assert_eq!(by_second(None, &outcome), None, "{outcome}: never deployed");
        }
        assert_eq!(by_second(before(), &Stale), Some(DAY_2), "bound");
        for outcome in [Misbound, Skipped, Superseded] {
            assert_eq!(by_second(before(), &outcome), None, "{outcome}");
        }
    }

    #[test]
    fn record_holds_the_leaf_that_was_certainly_stored_last() {
        let first = deployed(leaf("aa", ISSUED), DAY_1);
        let running = begin(Some(first.clone()), leaf("bb", DAY_1), DAY_2);
        let later = deployed(leaf("bb", DAY_1), DAY_2);
        let mut repeated = begin(Some(first.clone()), leaf("aa", ISSUED), DAY_2);
        let lost = ChangedRecords { maybe_stored: [5].into(), ..ChangedRecords::default() };
        finish(&mut repeated, 76, Vec::new(), &lost, DAY_2 + time::Duration::HOUR);
        for (states, held) in [
            ([&first, &first], "aa"),
            ([&first, &running], ""),
            ([&first, &later], "bb"),
            ([&later, &repeated], ""),
            ([&repeated, &repeated], ""),
        ] {
            for fingerprint in ["aa", "bb"] {
                let known = deployments(states).of_service(SERVICE);
                assert_eq!(known.record_holds(5, &leaf(fingerprint, ISSUED)), fingerprint == held, "{held}");
                assert!(!known.record_holds(6, &leaf(fingerprint, ISSUED)));
            }
        }
    }

    #[test]
    fn record_may_hold_what_was_uploaded_since() {
        let hour = |hours| DAY_2 + time::Duration::hours(hours);
        let first = deployed(leaf("aa", ISSUED), DAY_2);
        let lost = |before, at| begin(Some(before), leaf("cc", ISSUED), at);
        let held = |states: [&LineageState; 2]| {
            let known = deployments(states).of_service(SERVICE);
            known.leaves_in(5).iter().map(|leaf| leaf.leaf.fingerprint.clone()).collect::<Vec<_>>()
        };
        for (hours, expected) in [(-1, &["aa"][..]), (0, &["aa"]), (1, &["aa", "cc"])] {
            let second = lost(deployed(leaf("bb", ISSUED), DAY_1), hour(hours));
            assert_eq!(held([&first, &second]), expected, "{hours}");
        }
        let set_back = lost(first.clone(), hour(-1));
        assert_eq!(held([&set_back, &deployed(leaf("bb", ISSUED), DAY_1)]), ["aa", "cc"]);
    }

    #[test]
    fn record_is_taken_if_both_leaves_were_certainly_stored() {
        let run = |fingerprint, is_certain: bool, at| {
            let mut state = begin(None, leaf(fingerprint, ISSUED), at);
            let [stored, maybe_stored] =
                [is_certain, !is_certain].map(|holds| holds.then_some(5).into_iter().collect());
            let changed = ChangedRecords { stored, maybe_stored, ..ChangedRecords::default() };
            finish(&mut state, 75, Vec::new(), &changed, at);
            state
        };
        for (is_own_certain, is_other_certain, since, is_taken) in [
            (true, true, ISSUED, true),
            (true, true, DAY_1, false),
            (true, false, ISSUED, false),
            (false, true, ISSUED, false),
        ] {
            let [own, other] = [run("aa", is_own_certain, DAY_1), run("bb", is_other_certain, DAY_2)];
            let known = deployments([&own, &other]).of_service(SERVICE);
            let found = known.is_taken_since(since, "first", 5);
            assert_eq!(found, is_taken, "{is_own_certain} {is_other_certain} {since}");
        }
    }

    #[test]
    fn abandoned_site_must_still_have_the_record() {
        let abandon: [fn(&mut LineageState); 3] = [
            |_| {},
            |state| state.domains = vec!["b.example".parse().unwrap()],
            |state| state.mark_missing(DAY_2),
        ];
        for (number, abandon) in abandon.into_iter().enumerate() {
            let mut second = deployed(leaf("bb", DAY_1), DAY_1);
            abandon(&mut second);
            let states = [&begin(None, leaf("aa", ISSUED), DAY_1), &second];
            let (known, site) = (deployments(states).of_service(SERVICE), "a.example".parse().unwrap());
            let is_superseded =
                |record| known.superseding((&site, record), "first", &leaf("aa", ISSUED), DAY_2).is_some();
            assert_eq!([None, Some(6), Some(5)].map(is_superseded), [number == 0, number == 0, true]);
        }
    }

    #[test]
    fn later_valid_leaf_supersedes() {
        let states = [deployed(leaf("aa", ISSUED), DAY_2), deployed(leaf("bb", DAY_1), DAY_1)];
        let known = deployments([&states[0], &states[1]]).of_service(SERVICE);
        let by = |lineage: &str, fingerprint: &str, issued, now| {
            let own = leaf(fingerprint, issued);
            let site: Domain = "A.example".parse().unwrap();
            known.superseding((&site, None), lineage, &own, now).map(|other| other.lineage.clone())
        };
        let second = Some("second".to_owned());
        assert_eq!(by("first", "aa", ISSUED, DAY_2), second);
        assert_eq!(by("second", "bb", DAY_1, DAY_2), None);
        assert_eq!(by("second", "cc", ISSUED, DAY_2), None, "its own later leaf");
        assert_eq!(by("first", "bb", DAY_1, DAY_2), None, "the same leaf");
        assert_eq!(by("first", "cc", DAY_1, DAY_2), None, "equal dates: the fingerprint decides");
        assert_eq!(by("first", "ba", DAY_1, DAY_2), second, "equal dates: the fingerprint decides");
        let end = datetime!(2027-01-01 00:00 UTC);
        assert_eq!(by("first", "aa", ISSUED, end), second);
        assert_eq!(by("first", "aa", ISSUED, end + time::Duration::SECOND), None, "expired");
        let own = leaf("aa", ISSUED);
        let other: Domain = "b.example".parse().unwrap();
        assert!(known.superseding((&other, None), "first", &own, DAY_1).is_none());
        let site: Domain = "a.example".parse().unwrap();
        let lineages_on = |known: &ServiceDeployments, site| {
            known.on(site).iter().map(|known| known.lineage.clone()).collect::<Vec<_>>()
        };
        assert_eq!(lineages_on(&known, &site), ["first", "second"]);
        assert!(known.on(&other).is_empty());
        let known = deployments([&states[0], &begin(None, own, DAY_1)]).of_service(SERVICE);
        assert_eq!(lineages_on(&known, &site), ["first"]);
    }
}
