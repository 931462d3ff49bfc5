//! Lineages with a valid entry in the index of the state directory. Their files are not read: they are unchanged if the
//! service still lists their sites as they were left. All others are read and examined.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::join_all;
use time::OffsetDateTime;

use super::decision::is_due;
use super::scan::Scan;
use super::workers::ListedAccount;
use super::{Sync, list_account};
use crate::api::Site;
use crate::clock;
use crate::deploy::DeployError;
use crate::inventory::{self, Member};
use crate::plan::IndexedListing;
use crate::settings::{Settings, Verify};
use crate::source::AcmeClient;
use crate::state::{
    Index, IndexStamps, IndexedLineage, IndexedRank, ServiceDeployments, Stamp, StateError, Store,
};
use crate::trust::TrustStores;

/// The settings of an account, and the places of its lineages in the index.
type Members = (Arc<Settings>, Vec<usize>);

/// The lineages that are not read, as positions in the index.
pub(super) struct UnreadLineages {
    index: Index,
    /// Those that this run processes.
    own: Vec<usize>,
    /// Those of other shards.
    others: Vec<usize>,
    /// Stamps of the state files of all other lineages.
    stamps: HashMap<String, Stamp>,
    /// When the first leaf expires, in seconds since the Unix epoch.
    first_expiry: i64,
    /// Names of lineages that were removed because they had to be read.
    read: Vec<String>,
    now: OffsetDateTime,
}

/// The present situation, with which the entries are compared.
pub(super) struct Present<'a> {
    pub(super) settings: &'a Settings,
    pub(super) account: &'a IndexedListing,
    /// What the lineages that were read deployed to the service.
    pub(super) deployments: &'a ServiceDeployments,
    pub(super) now: OffsetDateTime,
}

impl UnreadLineages {
    pub(super) fn new(index: Index, now: OffsetDateTime) -> Self {
        let (own, others, stamps) = (Vec::new(), Vec::new(), HashMap::new());
        Self { index, own, others, stamps, first_expiry: i64::MAX, read: Vec::new(), now }
    }

    /// Whether a lineage need not be read; if so, adds it. Names must be passed in ascending order, before any file is
    /// read.
    pub(super) fn add(&mut self, store: &Store, name: &str, is_own: bool) -> bool {
        let stamp = store.stamp(name);
        let Some(found) = self.index.find(name, stamp, is_own) else {
            self.stamps.extend(stamp.map(|stamp| (name.to_owned(), stamp)));
            return false;
        };
        self.first_expiry = self.first_expiry.min(found.expires_at);
        if is_own { &mut self.own } else { &mut self.others }.push(found.place);
        true
    }

    /// Encodes the entry of a lineage that is going to be examined; `None` if it cannot be indexed.
    pub(super) fn entry(&mut self, member: &Member<'_>, is_own: bool) -> Option<Vec<u8>> {
        let (stamp, source) = (self.stamps.remove(&member.name)?, member.source.as_ref().ok()?);
        // Their files may move.
        let stays = !matches!(source.client, AcmeClient::AcmeSh | AcmeClient::Kubernetes);
        let state = member.state.as_ref().filter(|_| stays && member.entry.is_none())?;
        let cert = if is_own { Some(Stamp::of(&source.files.cert)?) } else { None };
        self.index.encode(&member.name, state, IndexStamps { state: stamp, cert, now: self.now })
    }

    /// Indexes a lineage that has been examined and need not be deployed.
    pub(super) fn keep(&mut self, name: &str, entry: Vec<u8>) {
        self.index.add(name, entry);
    }

    pub(super) fn write(&mut self, store: &Store) {
        self.index.write(store);
    }

    /// The lineages of this run by account, and those whose options no longer resolve to the service that they were
    /// deployed to.
    pub(super) fn by_account(&self, scan: &mut Scan<'_>) -> (Vec<Members>, Vec<usize>) {
        let (mut accounts, mut changed) = (Vec::<Members>::new(), Vec::new());
        // Keyed by the position of the options.
        let mut account_of = HashMap::new();
        for &place in &self.own {
            let Some(lineage) = self.index.lineage(place) else { continue };
            let account = *account_of.entry(lineage.options).or_insert_with(|| {
                let options = self.index.options(&lineage)?;
                let settings = scan.settings(&options.settings, None).ok()?;
                if settings.base_url.to_string() != options.service {
                    return None;
                }
                let is_same =
                    |(other, _): &Members| Arc::ptr_eq(other, &settings) || other.is_same_service(&settings);
                let known = accounts.iter().position(is_same);
                Some(known.unwrap_or_else(|| {
                    accounts.push((settings, Vec::new()));
                    accounts.len() - 1
                }))
            });
            match account.and_then(|account| accounts.get_mut(account)) {
                Some((_, members)) => members.push(place),
                None => changed.push(place),
            }
        }
        (accounts, changed)
    }

    /// Those of these lineages that may need a deployment or an edge check.
    pub(super) fn changed(&self, places: &[usize], present: &Present<'_>) -> Vec<usize> {
        let latest = self.latest_leaves(&present.settings.base_url.to_string());
        let is_unchanged = |place: usize| {
            let lineage = self.index.lineage(place);
            lineage.is_some_and(|lineage| {
                is_as_left(&lineage, present, &latest)
                    && !needs_edge_check(&lineage, present.settings, present.now)
            })
        };
        places.iter().copied().filter(|place| !is_unchanged(*place)).collect()
    }

    /// The latest leaf that was deployed to each site, by host.
    fn latest_leaves(&self, service: &str) -> HashMap<&str, IndexedRank<'_>> {
        let mut latest = HashMap::new();
        for lineage in self.lineages() {
            if self.index.options(&lineage).is_some_and(|options| options.service == service) {
                for site in &lineage.sites {
                    let known = latest.entry(site.host).or_insert_with(|| lineage.rank());
                    *known = lineage.rank().max(*known);
                }
            }
        }
        latest
    }

    fn lineages(&self) -> impl Iterator<Item = IndexedLineage<'_>> {
        self.own.iter().chain(&self.others).filter_map(|place| self.index.lineage(*place))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.others.is_empty()
    }

    /// The name of a lineage.
    pub(super) fn name(&self, place: usize) -> Option<String> {
        self.index.lineage(place).map(|lineage| lineage.name.to_owned())
    }

    /// Whether the state file of a lineage is the one that was indexed.
    fn has_same_state(&self, place: usize, store: &Store) -> bool {
        self.index.lineage(place).is_some_and(|lineage| lineage.has_state(store.stamp(lineage.name)))
    }

    /// Removes lineages that are going to be read.
    pub(super) fn remove(&mut self, places: &[usize]) {
        let removed: HashSet<usize> = places.iter().copied().collect();
        self.own.retain(|place| !removed.contains(place));
        let names: Vec<String> = places.iter().filter_map(|place| self.name(*place)).collect();
        self.read.extend(names);
    }

    /// Adds the deployments of these lineages to a service.
    pub(super) fn add_to(
        &self,
        deployments: ServiceDeployments,
        service: &str,
        store: &Store,
    ) -> ServiceDeployments {
        if self.is_empty() {
            return deployments;
        }
        let read = self.read.iter().cloned();
        deployments.with_index(self.index.deployments(service, read, self.first_expiry, store))
    }
}

impl Sync<'_> {
    /// Lists the accounts of the lineages that were not read, counts the unchanged ones, and reads and examines the
    /// others. Returns the listing of each account, with the number of its unread lineages if it failed.
    pub(super) async fn list_unread(
        &mut self,
        stores: &Arc<TrustStores>,
        errors: &mut Vec<StateError>,
    ) -> Vec<(Arc<Settings>, usize, Result<ListedAccount, DeployError>)> {
        let (accounts, mut changed) = self.unread.by_account(&mut self.scan);
        let mut listed = Vec::new();
        let listings = accounts.iter().map(|(settings, _)| list_account(settings, stores));
        let listings = join_all(listings).await;
        for ((settings, places), listing) in accounts.into_iter().zip(listings) {
            let mut unread = places.len();
            if let Ok(account) = &listing {
                let present = Present {
                    settings: &settings,
                    account: &account.snapshot.listing,
                    deployments: &self.scan.deployments.of_service(&settings.base_url.to_string()),
                    now: clock::now(),
                };
                let read = self.unread.changed(&places, &present);
                self.summary.add_unchanged(places.len() - read.len());
                unread = 0;
                changed.extend(read);
            }
            listed.push((settings, unread, listing));
        }
        self.unread.remove(&changed);
        let store = Store::at(&self.state_dir);
        for place in changed {
            let Some(name) = self.unread.name(place) else { continue };
            match inventory::recorded(&store, &name) {
                Ok(Some(member)) if self.unread.has_same_state(place, &store) => self.scan(member),
                // Another run has begun since the stamps were compared, maybe since the listing.
                Ok(Some(_)) => self.summary.add_unchanged(1),
                Ok(None) => {}
                Err(error) => errors.push(error),
            }
        }
        listed
    }
}

/// Whether `decide` would find nothing to do but an edge check. False in case of doubt; the lineage is then read.
pub(super) fn is_as_left(
    lineage: &IndexedLineage<'_>,
    present: &Present<'_>,
    latest: &HashMap<&str, IndexedRank<'_>>,
) -> bool {
    let Present { settings, account, deployments, now } = *present;
    let sites: Vec<&Site> = if lineage.domains.is_empty() {
        account.sites_covered_by_hosts(lineage.names.iter().copied())
    } else {
        lineage.domains.iter().filter_map(|host| account.site_of_host(host)).collect()
    };
    let may_lack_sites = settings.skip_unmatched || !sites.is_empty() && sites.len() >= lineage.domains.len();
    let is_complete =
        sites.len() == lineage.sites.len() && may_lack_sites && account.listing().gaps().next().is_none();
    if !is_complete || lineage.not_after <= now.unix_timestamp() {
        return false;
    }
    let rank = lineage.rank();
    sites.iter().all(|site| {
        let known = lineage.sites.iter().find(|known| known.id == site.id);
        let is_as_left = known.is_some_and(|known| known.cert_id == site.cert_id)
            && site.unreadable_cert_id.is_none()
            && site.cert_id.is_some_and(|id| !account.is_deleted(id));
        let is_latest = || latest.get(site.domain.host()).is_none_or(|latest| *latest <= rank);
        let is_superseded = || {
            let place = (&site.domain, site.cert_id);
            deployments.superseding(place, lineage.name, &lineage.leaf_rank(), now).is_some()
        };
        is_as_left && is_latest() && !(deployments.has_any(&site.domain) && is_superseded())
    })
}

/// Whether an edge check is due, or the last one did not confirm every site as served.
fn needs_edge_check(lineage: &IndexedLineage<'_>, settings: &Settings, now: OffsetDateTime) -> bool {
    let is_off = settings.verify == Verify::Off || settings.verify_every.is_zero();
    let is_served = lineage.sites.iter().all(|site| site.is_served);
    !is_off && (!is_served || is_due(lineage.hash, lineage.edge_seen_at(), now, settings.verify_every))
}
