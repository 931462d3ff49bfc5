//! Gathers the status of each lineage from its state file and from the certificate on disk. Opens no key and sends no
//! request.

use time::OffsetDateTime;

use super::fleet::{DiskStatus, LeafAge, LineageStatus, Pending, SiteStatus};
use crate::bundle::{self, Files};
use crate::cert::KeyType;
use crate::file;
use crate::inventory::{Inventory, Member};
use crate::leaf::Leaf;
use crate::outcome::Outcome;
use crate::source::SourceError;
use crate::state::{Deployments, LineageState, SiteState, StateError};
use crate::text;

/// Returns the lineages in the order of their names, and the errors of state files.
pub(super) fn gather(inventory: Inventory<'_>, now: OffsetDateTime) -> (Vec<LineageStatus>, Vec<StateError>) {
    let (mut lineages, mut deployments, mut errors) = (Vec::new(), Deployments::default(), Vec::new());
    let visitor = |member: Member<'_>| {
        let disk = match &member.source {
            Ok(source) => DiskStatus::read(&source.files, member.state.as_ref()),
            // An entry of the configuration leads to no lineage.
            Err(SourceError::NotALineage { directory, .. })
                if matches!(directory.try_exists(), Ok(false)) =>
            {
                DiskStatus::Missing
            }
            Err(error) => DiskStatus::Unreadable(error.to_string()),
        };
        let written_at = member.source.as_ref().ok().and_then(|source| file::modified(&source.files.cert));
        if let Some(state) = &member.state {
            deployments.add(&member.name, state);
        }
        lineages.push(LineageStatus::new(member, disk, written_at.unwrap_or(now)));
    };
    inventory.visit(visitor, |error| errors.push(error));
    mark_superseded(&mut lineages, &deployments, now);
    lineages.sort_by_cached_key(|lineage| lineage.name.clone());
    // Several entries may name a path that leads to no lineage.
    lineages.dedup_by(|a, b| a.name == b.name);
    (lineages, errors)
}

/// Marks the sites whose certificate another lineage provides, as `sync` will.
pub(super) fn mark_superseded(lineages: &mut [LineageStatus], all: &Deployments, now: OffsetDateTime) {
    for lineage in lineages {
        // A leaf that no run has seen may have been issued later.
        let last_run = lineage.last_run.as_ref().filter(|_| !lineage.disk.is_unseen());
        let Some((service, leaf)) = last_run else { continue };
        let deployments = all.of_service(service);
        for site in &mut lineage.sites {
            // A run that failed there may have seen that no other lineage reaches the site through its record.
            let record = site.state.cert_id.filter(|_| !site.state.outcome.is_failed());
            let (place, leaf) = ((&site.state.domain, record), site.reached_with.as_ref().unwrap_or(leaf));
            if let Some(later) = deployments.superseding(place, &lineage.name, leaf, now) {
                site.state.outcome = Outcome::Superseded;
                site.state.detail = Some(later.reason());
                (site.is_on_record, site.leaf) = (None, None);
            }
        }
        if lineage.is_superseded() {
            (lineage.pending, lineage.deployed, lineage.last_error) = (None, None, None);
        }
    }
}

impl LineageStatus {
    /// The status of a lineage, given what its files hold and when they were written.
    pub(super) fn new(member: Member<'_>, disk: DiskStatus, written_at: OffsetDateTime) -> Self {
        let Member { name, source, entry, state, .. } = member;
        let (state, source) = (state.as_ref(), source.ok());
        let begun = state.and_then(|state| state.pending_since);
        let unseen = disk.leaf().filter(|_| disk.is_unseen());
        // A copy may keep the time of a file, or have none.
        let pending = begun.or(unseen.map(|leaf| written_at.max(leaf.not_before))).map(|since| Pending {
            since,
            is_begun: begun.is_some(),
            leaf: disk.leaf().or_else(|| state?.leaf.as_ref()).cloned(),
        });
        let recorded = state.map(|state| state.given(disk.leaf()).0.settings).unwrap_or_default();
        let configured = entry.and_then(|entry| entry.layer.local.edge_address.clone());
        Self {
            name,
            client: source.as_ref().map(|source| source.client),
            cert: source.as_ref().map(|source| text::path(&source.files.cert)),
            is_configured: entry.is_some(),
            generation: state.map_or(0, |state| state.generation),
            begun_at: state.and_then(|state| state.begun_at),
            pending,
            last_success: state.and_then(|state| state.last_success),
            last_run: state.and_then(|state| Some((state.service.clone()?, state.leaf.clone()?))),
            last_error: state.and_then(|state| state.result.clone()).filter(|result| result.exit_code != 0),
            deployed: state.and_then(LineageState::deployed).cloned(),
            sites: state.map(|state| sites(state, &disk)).unwrap_or_default(),
            edge_address: recorded.local.edge_address.or(configured),
            disk,
        }
    }
}

impl DiskStatus {
    /// Reads the files of a lineage.
    fn read(files: &Files, state: Option<&LineageState>) -> Self {
        match bundle::load_chain(files).map(|bundle| bundle.chain) {
            Err(error) if error.is_missing() => Self::Missing,
            Err(error) => Self::Unreadable(error.to_string()),
            Ok(Err(defects)) => {
                let found = text::list(defects.iter().map(|defect| &defect.found));
                Self::Unreadable(format!("{} holds {found}", text::path(&files.cert)))
            }
            Ok(Ok(chain)) => Self::of(chain.leaf.to_leaf(), chain.leaf.public_key.key_type, state),
        }
    }

    /// The status of files with this leaf.
    pub(super) fn of(leaf: Leaf, key_type: KeyType, state: Option<&LineageState>) -> Self {
        let age = match state.and_then(|state| state.leaf.as_ref()) {
            Some(recorded) if recorded.fingerprint == leaf.fingerprint => LeafAge::Same,
            Some(recorded) if leaf.not_before < recorded.not_before => LeafAge::Older,
            _ => LeafAge::Newer,
        };
        Self::Leaf { leaf, key_type, age }
    }
}

/// The sites of the last run that reported any, which may have deployed an earlier leaf: a run that fails before it
/// knows its sites, or that has not ended, leaves them as they were.
fn sites(state: &LineageState, disk: &DiskStatus) -> Vec<SiteStatus> {
    let on_disk = disk.leaf().map(|leaf| &leaf.fingerprint);
    let is_reached = |site: &SiteState| site.outcome.is_bound() && !state.is_for(site);
    let site = |site: &SiteState| {
        let (recorded, served) = leaves_of(site, state);
        SiteStatus {
            state: SiteState { detail: site.detail.as_deref().map(text::sanitize), ..site.clone() },
            is_on_record: recorded.zip(on_disk).map(|(recorded, disk)| recorded.fingerprint == *disk),
            leaf: served.cloned(),
            reached_with: state.leaf_deployed_to(site).filter(|_| is_reached(site)).cloned(),
            edge: None,
        }
    };
    state.sites.iter().map(site).collect()
}

/// The leaf in the record of a site and the leaf that its visitors get, according to its outcome.
fn leaves_of<'a>(site: &SiteState, state: &'a LineageState) -> (Option<&'a Leaf>, Option<&'a Leaf>) {
    let (latest, deployed) = (state.leaf.as_ref(), state.deployed());
    match &site.outcome {
        Outcome::Misbound | Outcome::Skipped | Outcome::Superseded => (None, None),
        _ if !state.is_of_current_leaf(site) => (state.leaf_deployed_to(site), state.leaf_deployed_to(site)),
        Outcome::Stale => (latest, deployed),
        outcome if outcome.is_deployed() => (latest, latest),
        _ => (None, deployed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::ChangedRecords;
    use crate::sightings::EdgeMemory;
    use crate::source::Source;
    use crate::state::fixture::served;
    use crate::state::{Origin, RunOptions};
    use time::macros::datetime;

    /// Site outcomes; the exit code of the last run and whether it reported sites; whether the record of the first site
    /// holds the leaf on disk; the year in which the leaf that visitors get expires.
    type Row = (&'static [Outcome], Option<(u8, bool)>, Option<bool>, Option<i32>);

    fn year(year: i32) -> OffsetDateTime {
        datetime!(2000-01-01 0:00 UTC).replace_year(year).unwrap()
    }

    fn leaf(fingerprint: &str, issued: i32) -> Leaf {
        Leaf {
            fingerprint: fingerprint.into(),
            names: Vec::new(),
            not_before: year(issued),
            not_after: year(issued + 1),
            issuer: None,
        }
    }

    fn options() -> RunOptions {
        RunOptions { origin: Origin::Hook, ..RunOptions::default() }
    }

    fn begin(before: Option<LineageState>, leaf: Leaf) -> LineageState {
        let source = Source::of_file("/c");
        let now = leaf.not_before;
        LineageState::begin(before, source, &options(), Some(leaf), now)
    }

    /// A lineage whose leaf `old` was deployed, and whose leaf `new` ended as given.
    fn state(outcomes: &[Outcome], end: Option<(u8, bool)>) -> LineageState {
        let site = |outcome: &Outcome| SiteState {
            id: None,
            domain: "a.example".parse().unwrap(),
            cname: None,
            cert_id: Some(5),
            outcome: outcome.clone(),
            detail: None,
            leaf: None,
            edge: EdgeMemory::default(),
        };
        let sites: Vec<SiteState> = outcomes.iter().map(site).collect();
        let mut state = begin(None, leaf("old", 2026));
        state.finish((0, None), sites.clone(), &ChangedRecords::default(), &options(), year(2026));
        state = begin(Some(state), leaf("new", 2027));
        if let Some((exit_code, has_sites)) = end {
            state.finish(
                (exit_code, None),
                if has_sites { sites } else { Vec::new() },
                &ChangedRecords::default(),
                &options(),
                year(2027),
            );
        }
        state
    }

    #[test]
    fn outcome_decides_leaf_of_site() {
        use Outcome::{Misbound, Queued, Served, Skipped, Stale, Uploaded};
        const UNKNOWN: &[Outcome] = &[Outcome::Unknown(String::new())];
        let rows: [Row; 10] = [
            (&[Served], Some((0, true)), Some(true), Some(2028)),
            (&[Uploaded], Some((0, true)), Some(true), Some(2028)),
            (&[Served, Queued], Some((75, true)), Some(true), Some(2028)),
            (&[Stale], Some((75, true)), Some(true), Some(2027)),
            (&[Queued, Served], Some((75, true)), None, Some(2027)),
            (&[Misbound], Some((0, true)), None, None),
            (&[Skipped], Some((0, true)), None, None),
            (UNKNOWN, Some((0, true)), None, Some(2028)),
            // The run failed before it knew its sites, or has not ended: they are those of the leaf before.
            (&[Served], Some((75, false)), Some(false), Some(2027)),
            (&[Served], None, Some(false), Some(2027)),
        ];
        for (outcomes, end, on_record, year) in rows {
            let disk =
                DiskStatus::Leaf { leaf: leaf("new", 2027), key_type: KeyType::P256, age: LeafAge::Same };
            let sites = sites(&state(outcomes, end), &disk);
            let found = (sites[0].is_on_record, sites[0].leaf.as_ref().map(|leaf| leaf.not_after.year()));
            assert_eq!(found, (on_record, year), "{outcomes:?} {end:?}");
        }
    }

    #[test]
    fn site_may_be_reached_with_an_earlier_leaf() {
        use Outcome::{Queued, Served};
        let mut state = state(&[Served, Served, Queued], Some((75, true)));
        state.domains = vec!["a.example".parse().unwrap()];
        for (site, domain) in state.sites.iter_mut().zip(["a.example", "b.example", "c.example"]) {
            site.domain = domain.parse().unwrap();
        }
        let sites = sites(&state, &DiskStatus::Missing).into_iter();
        let reached_with = sites.map(|site| site.reached_with.map(|leaf| leaf.fingerprint));
        assert_eq!(reached_with.collect::<Vec<_>>(), [None, Some("new".to_owned()), None]);

        let lineages =
            marked([("own", 2028, "b.example", &Served), ("other", 2027, "a.example", &Served)], |own| {
                own.sites[0].reached_with = Some(leaf("own", 2026));
            });
        assert_eq!(lineages[0].sites[0].state.outcome, Outcome::Superseded);
    }

    /// Lineages with these names, issue dates, domains and outcomes of `a.example`, as `sync` will mark them.
    fn marked(
        lineages: [(&str, i32, &str, &Outcome); 2],
        edit: impl FnOnce(&mut LineageStatus),
    ) -> Vec<LineageStatus> {
        let now = year(2027);
        let member = |name: &str, issued, domain: &str, outcome: &Outcome| {
            let domains = vec![domain.parse().unwrap()];
            let options =
                RunOptions { service: Some("https://api.example.net".into()), domains, ..options() };
            let leaf = Some(leaf(name, issued));
            let mut state = LineageState::begin(None, Source::of_file("/c"), &options, leaf, now);
            let site = SiteState {
                domain: "a.example".parse().unwrap(),
                cert_id: Some(5),
                outcome: outcome.clone(),
                leaf: None,
                ..served().remove(0)
            };
            let stored = (name == "other").then_some(5).into_iter().collect();
            let changed = ChangedRecords { stored, ..ChangedRecords::default() };
            state.finish((65, None), vec![site], &changed, &options, now);
            let (name, source) = (name.to_owned(), Ok(Source::of_file("/c")));
            Member { name, source, entry: None, state: Some(state), is_unclaimed: false }
        };
        let (mut statuses, mut deployments) = (Vec::new(), Deployments::default());
        for (name, issued, domain, outcome) in lineages {
            let member = member(name, issued, domain, outcome);
            let disk = DiskStatus::of(leaf(name, issued), KeyType::P256, member.state.as_ref());
            deployments.add(name, member.state.as_ref().unwrap());
            statuses.push(LineageStatus::new(member, disk, now));
        }
        edit(&mut statuses[0]);
        mark_superseded(&mut statuses, &deployments, now);
        statuses
    }

    /// Another lineage reached the site of one that was guarded there.
    #[test]
    fn failed_site_is_not_superseded_through_a_shared_record() {
        for outcome in [Outcome::Guarded, Outcome::Served, Outcome::Superseded] {
            let lineages =
                [("own", 2026, "a.example", &outcome), ("other", 2027, "b.example", &Outcome::Served)];
            let own = &marked(lineages, |_| {})[0];
            let is_superseded = outcome != Outcome::Guarded;
            let found = (own.sites[0].state.outcome == Outcome::Superseded, own.pending.is_none());
            assert_eq!(found, (is_superseded, is_superseded), "{outcome}");
        }
    }
}
