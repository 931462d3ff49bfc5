//! An entry of the index: what shows that a lineage is unchanged, and what it deployed where.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::stamp::Stamp;
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::state::deployments::{Deployments, SiteDeployment, StoredLeaf};
use crate::state::{LeafRank, LineageState, stable_hash};

/// A lineage whose last deployment succeeded. Only the common case is indexed: one leaf, in records that hold no other,
/// on sites that are bound to them.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexedLineage<'a> {
    pub(crate) name: &'a str,
    /// Path of the certificate.
    pub(crate) cert: &'a str,
    pub(super) state_stamp: Stamp,
    /// `None` in an entry made for another shard, for which only the state file was read.
    pub(super) cert_stamp: Option<Stamp>,
    /// Position of its options in the header of the index.
    pub(crate) options: u32,
    /// Stable hash of the name, which spreads edge checks over time.
    pub(crate) hash: u64,
    fingerprint: &'a str,
    not_before: i64,
    /// End of the leaf's validity, in seconds since the Unix epoch.
    pub(crate) not_after: i64,
    /// The DNS names of the leaf, as A-labels.
    #[serde(borrow)]
    pub(crate) names: Vec<&'a str>,
    /// The requested sites; empty: every covered one.
    #[serde(borrow)]
    pub(crate) domains: Vec<&'a str>,
    /// When a deployment or `sync` last checked its edges, in milliseconds since the Unix epoch.
    edge_seen_at: i64,
    /// Its sites, without `skipped` ones.
    #[serde(borrow)]
    pub(crate) sites: Vec<IndexedSite<'a>>,
    /// The records that hold the leaf, and since when, in milliseconds since the Unix epoch.
    records: Vec<(u64, i64)>,
}

/// A site that is bound to a record of the lineage.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexedSite<'a> {
    pub(crate) id: u64,
    /// The domain as A-labels.
    pub(crate) host: &'a str,
    pub(crate) cert_id: Option<u64>,
    /// Whether handshakes confirmed the leaf.
    pub(crate) is_served: bool,
}

/// Orders leaves as [`LeafRank`] does.
pub(crate) type IndexedRank<'a> = (i64, i64, &'a str);

impl<'a> IndexedLineage<'a> {
    /// Creates the entry of a lineage, with the stamps that its files had before they were read. `None` if its state is
    /// not the common case; it is then read in every run.
    pub(crate) fn new(
        name: &'a str,
        state: &'a LineageState,
        hosts: &'a [String],
        (state_stamp, cert_stamp): (Stamp, Option<Stamp>),
        options: u32,
    ) -> Option<Self> {
        let leaf = state.leaf.as_ref()?;
        let is_success = state.result.as_ref().is_some_and(|result| result.exit_code == 0);
        let is_settled = is_success && state.pending_since.is_none() && state.missing_since.is_none();
        let memory = state.records();
        let service = state.options.service.as_deref()?;
        let is_usual = is_settled
            && state.has_current_sites()
            && state.sites_service() == Some(service)
            && memory.leaves().len() <= 1;
        let known = memory.leaves().first();
        let holds_leaf = known
            .is_none_or(|known| known.service == service && known.leaf == *leaf && known.maybe.is_empty());
        let domains = &state.options.domains;
        let has_own_domains = state.options_for(true).overrides.domains == *domains;
        if !is_usual || !holds_leaf || !has_own_domains || !domains.iter().all(|domain| is_host(domain)) {
            return None;
        }
        let sites = state.sites.iter().filter(|site| site.outcome != Outcome::Skipped).zip(hosts);
        let sites = sites.map(|(site, host)| {
            let is_own = domains.is_empty() || domains.contains(&site.domain);
            let is_bound = matches!(site.outcome, Outcome::Served | Outcome::Synced);
            let is_served = site.outcome == Outcome::Served;
            Some(IndexedSite { id: site.id?, host, cert_id: site.cert_id, is_served })
                .filter(|_| is_own && is_bound)
        });
        let seen_at = state.edge_checked_at.or(state.last_success).unwrap_or(state.begun_at);
        Some(Self {
            name,
            cert: state.source.cert.to_str()?,
            state_stamp,
            cert_stamp,
            options,
            hash: stable_hash(name),
            fingerprint: &leaf.fingerprint,
            not_before: leaf.not_before.unix_timestamp(),
            not_after: leaf.not_after.unix_timestamp(),
            names: leaf
                .names
                .iter()
                .map(|name| is_host(name).then_some(name.as_str()))
                .collect::<Option<_>>()?,
            domains: domains.iter().map(String::as_str).collect(),
            edge_seen_at: millis(seen_at)?,
            sites: sites.collect::<Option<_>>()?,
            records: known.map_or(Some(Vec::new()), |known| {
                known.records.iter().map(|holder| Some((holder.id, millis(holder.at)?))).collect()
            })?,
        })
    }

    /// The hosts of the sites, for [`Self::new`]; `None` if one has no valid domain.
    pub(crate) fn hosts(state: &LineageState) -> Option<Vec<String>> {
        let sites = state.sites.iter().filter(|site| site.outcome != Outcome::Skipped);
        sites.map(|site| Some(site.domain.parse::<Domain>().ok()?.host().to_owned())).collect()
    }

    /// Whether a stamp equals that of the state file in this entry.
    pub(crate) fn has_state(&self, stamp: Option<Stamp>) -> bool {
        stamp == Some(self.state_stamp)
    }

    pub(crate) fn rank(&self) -> IndexedRank<'a> {
        (self.not_before, self.not_after, self.fingerprint)
    }

    pub(crate) fn edge_seen_at(&self) -> OffsetDateTime {
        time_of(self.edge_seen_at)
    }

    /// The records that hold the leaf.
    pub(super) fn record_ids(&self) -> impl Iterator<Item = u64> {
        self.records.iter().map(|(record, _)| *record)
    }

    /// The leaf, if a record holds it.
    pub(super) fn leaf_in(&self, record: u64) -> Option<StoredLeaf> {
        let (_, at) = self.records.iter().find(|(id, _)| *id == record)?;
        Some(StoredLeaf {
            at: time_of(*at),
            lineage: self.name.to_owned(),
            rank: self.leaf_rank(),
            names: self.names.iter().map(|name| (*name).to_owned()).collect(),
            is_certain: true,
        })
    }

    /// The deployment to one of its sites.
    pub(super) fn deployment_to(&self, site: &IndexedSite<'_>) -> SiteDeployment {
        SiteDeployment {
            lineage: self.name.to_owned(),
            rank: self.leaf_rank(),
            record: site.cert_id,
            is_maintained: true,
        }
    }

    pub(crate) fn leaf_rank(&self) -> LeafRank {
        let time =
            |seconds| OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let fingerprint = self.fingerprint.to_owned();
        LeafRank { issued: time(self.not_before), expires: time(self.not_after), fingerprint }
    }
}

impl Deployments {
    /// Adds the deployments of a lineage to a service, as [`Self::add`] does from its state.
    pub(crate) fn add_indexed(&mut self, service: &str, lineage: &IndexedLineage<'_>) {
        for record in lineage.record_ids() {
            lineage.leaf_in(record).into_iter().for_each(|leaf| self.add_stored(service, record, leaf));
        }
        for site in &lineage.sites {
            self.add_site(service, site.host, lineage.deployment_to(site));
        }
    }
}

/// Whether a name is in A-label form already, so that it can be looked up unchanged.
fn is_host(name: &str) -> bool {
    name.parse::<Domain>().is_ok_and(|domain| domain.host() == name)
}

/// Milliseconds since the Unix epoch; `None` if that loses precision.
fn millis(time: OffsetDateTime) -> Option<i64> {
    let millis = i64::try_from(time.unix_timestamp_nanos() / 1_000_000).ok()?;
    (time_of(millis) == time).then_some(millis)
}

fn time_of(millis: i64) -> OffsetDateTime {
    let nanos = i128::from(millis) * 1_000_000;
    OffsetDateTime::from_unix_timestamp_nanos(nanos).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::ChangedRecords;
    use crate::state::fixture::{DAY_1, DAY_2, ISSUED, SERVICE, begin, deployed, leaf, served};

    /// The deployments of a lineage from its state, and from its entry if it has one.
    fn both(state: &LineageState) -> (String, Option<String>) {
        let hosts = IndexedLineage::hosts(state).unwrap();
        let indexed = IndexedLineage::new("shop", state, &hosts, (Stamp::default(), None), 0);
        let from_index = indexed.map(|indexed| {
            let bytes = postcard::to_allocvec(&indexed).unwrap();
            let mut deployments = Deployments::default();
            deployments.add_indexed(SERVICE, &postcard::from_bytes(&bytes).unwrap());
            format!("{deployments:?}")
        });
        let mut deployments = Deployments::default();
        deployments.add("shop", state);
        (format!("{deployments:?}"), from_index)
    }

    #[test]
    fn entry_has_the_deployments_of_its_state() {
        let state = deployed(leaf("aa", ISSUED), DAY_1);
        let (from_state, from_index) = both(&state);
        assert_eq!(from_index, Some(from_state));
        let mut renewed = begin(Some(state), leaf("bb", DAY_1), DAY_2);
        assert_eq!(both(&renewed).1, None, "pending");
        renewed.finish(0, None, served(), &ChangedRecords::default(), DAY_2);
        let (from_state, from_index) = both(&renewed);
        assert_eq!(from_index, Some(from_state));
    }

    #[test]
    fn unusual_states_have_no_entry() {
        let state = deployed(leaf("aa", ISSUED), DAY_1);
        let changed = |change: fn(&mut LineageState)| {
            let mut state = state.clone();
            change(&mut state);
            both(&state).1
        };
        assert!(changed(|_| {}).is_some());
        assert_eq!(changed(|state| state.pending_since = Some(DAY_1)), None);
        assert_eq!(changed(|state| state.mark_missing(DAY_1)), None);
        assert_eq!(changed(|state| state.result = None), None);
        assert_eq!(changed(|state| state.sites[0].outcome = Outcome::Stale), None);
        assert_eq!(changed(|state| state.sites[0].outcome = Outcome::Superseded), None);
        assert_eq!(changed(|state| state.sites[0].id = None), None);
        assert_eq!(changed(|state| state.options.domains = vec!["a.example".into()]), None);
        assert_eq!(changed(|state| state.options.service = Some("https://other.example.net".into())), None);
    }
}
