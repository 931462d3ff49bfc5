//! The modelled service: its rules as the API document states them, independent of the code that uses it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use fastrand::Rng;
use time::{Duration, OffsetDateTime};

use crate::api::{Gap, List, Listing, Record, Site};
use crate::error::ErrorKind;
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::verify::fixture::Shown;
use crate::verify::{EdgeView, OtherLeaf};

/// Names of leaves. All but the last may be the domains of sites.
pub(crate) const NAMES: [&str; 7] =
    ["a.example", "b.example", "c.example", "*.a.example", "x.a.example", "y.a.example", "*.example"];
pub(crate) const SITE_NAMES: usize = 6;
/// The issuer of untrusted leaves.
pub(crate) const STAGING: &str = "staging";

static DOMAINS: LazyLock<Vec<Domain>> =
    LazyLock::new(|| NAMES.iter().map(|name| name.parse().unwrap()).collect());

/// Sites, records and edges, and what may go wrong. Domains are indices into `NAMES`, leaves into `leaves`, sites into
/// `sites`; the id of a site is its index plus one.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) sites: Vec<ModelSite>,
    pub(crate) records: BTreeMap<u64, ModelRecord>,
    pub(crate) leaves: Vec<Leaf>,
    pub(crate) now: OffsetDateTime,
    /// How long the service has had no faults.
    pub(crate) healthy: Duration,
    pub(crate) faults: Faults,
    pub(crate) rng: Rng,
    /// What this host sent, most recent last.
    pub(crate) changes: Vec<Change>,
    /// Whether `config_synced` is false while the new content of a record is being pushed.
    pub(crate) announces_content: bool,
    pub(crate) last_record: u64,
    /// Number of events, of requests that failed and of runs that were killed.
    pub(crate) disturbances: usize,
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one site")]
pub(crate) struct ModelSite {
    pub(crate) domain: usize,
    pub(crate) cert_id: Option<u64>,
    pub(crate) is_enabled: bool,
    pub(crate) is_deleted: bool,
    pub(crate) is_synced: bool,
    /// Whether nothing reaches the edges for now.
    pub(crate) is_push_held: bool,
    pub(crate) edges: Vec<ModelEdge>,
}

/// A time, and `World::healthy` by then.
pub(crate) type Moment = (OffsetDateTime, Duration);

/// An address of a site's edge.
#[derive(Clone, Debug)]
pub(crate) struct ModelEdge {
    pub(crate) leaf: Option<usize>,
    pub(crate) is_reachable: bool,
    /// Whether no push reaches it for now.
    pub(crate) is_left_behind: bool,
    /// Since when it shows what it shows now.
    pub(crate) since: Moment,
}

#[derive(Clone, Debug)]
pub(crate) struct ModelRecord {
    pub(crate) domain: usize,
    pub(crate) leaf: usize,
    pub(crate) is_system_issued: bool,
}

/// Faults of the service and of the host, until they end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// Every request fails like this, and nothing is carried out.
    pub(crate) outage: Option<ErrorKind>,
    /// Out of 16, how many requests fail; some of them are carried out.
    pub(crate) failing: u8,
    /// Before anything is sent, no edge responds.
    pub(crate) is_blind: bool,
    /// The sites cannot be read after the uploads.
    pub(crate) is_unreadable: bool,
    /// Out of 16, how many runs are killed.
    pub(crate) killed: u8,
    /// The listing lacks this site.
    pub(crate) hidden_site: Option<usize>,
    /// The listing lacks the records after this one.
    pub(crate) hides_records_after: Option<u64>,
}

impl Faults {
    pub(crate) fn is_listing_partial(&self) -> bool {
        self.hidden_site.is_some() || self.hides_records_after.is_some()
    }
}

/// A request of this host that the service carried out.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// `replaced` is the previous leaf. If the response was lost, only `replaced` identifies the record.
    Upload { leaf: usize, record: u64, replaced: Option<usize>, is_lost: bool },
    /// `from` is the record before.
    Bind { site: usize, from: Option<u64>, to: u64 },
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The service refused, and nothing was written.
    Refused,
    /// The service was busy, and nothing was written.
    Busy,
    /// It was carried out, but the response was lost.
    Lost,
}

/// Whether a name of a leaf covers a domain: it is the same, or a wildcard over its first label.
pub(crate) fn covers(leaf: &Leaf, domain: usize) -> bool {
    let domain = NAMES[domain];
    let parent = domain.split_once('.').filter(|(label, _)| *label != "*").map(|(_, parent)| parent);
    leaf.names
        .iter()
        .any(|name| name == domain || name.strip_prefix("*.").is_some_and(|of| Some(of) == parent))
}

impl World {
    pub(crate) fn moment(&self) -> Moment {
        (self.now, self.healthy)
    }

    pub(crate) fn domain(index: usize) -> Domain {
        DOMAINS[index].clone()
    }

    pub(crate) fn index_of(domain: &Domain) -> usize {
        NAMES.iter().position(|name| *name == domain.spelled()).unwrap()
    }

    pub(crate) fn index_of_leaf(&self, leaf: &Leaf) -> usize {
        self.leaves.iter().position(|other| other == leaf).unwrap()
    }

    pub(crate) fn covers(&self, leaf: usize, site: usize) -> bool {
        covers(&self.leaves[leaf], self.sites[site].domain)
    }

    /// The leaf in the record that a site is bound to.
    pub(crate) fn bound_leaf(&self, site: usize) -> Option<usize> {
        self.records.get(&self.sites[site].cert_id?).map(|record| record.leaf)
    }

    /// `POST /api/certs/upload`
    pub(crate) fn upload(&mut self, domain: usize, leaf: usize) -> Result<(u64, bool), Failure> {
        let is_site = self.sites.iter().any(|site| site.domain == domain && !site.is_deleted);
        let content = &self.leaves[leaf];
        if !is_site || content.not_after <= self.now || !covers(content, domain) {
            return Err(Failure::Refused);
        }
        let failure = self.failure();
        if failure == Some(Failure::Busy) {
            return Err(Failure::Busy);
        }
        let known = self.records.iter().find(|(_, record)| record.domain == domain).map(|(id, _)| *id);
        let record = known.unwrap_or(self.last_record + 1);
        let replaced = known.map(|id| self.records[&id].leaf);
        self.store(record, ModelRecord { domain, leaf, is_system_issued: false });
        self.changes.push(Change::Upload { leaf, record, replaced, is_lost: failure.is_some() });
        failure.map_or(Ok((record, known.is_none())), Err)
    }

    /// Replaces a record in place, or creates it and binds it to the covered sites without a certificate.
    pub(crate) fn store(&mut self, id: u64, mut record: ModelRecord) {
        let leaf = record.leaf;
        if let Some(known) = self.records.get(&id) {
            record.is_system_issued = known.is_system_issued;
        } else {
            self.last_record = self.last_record.max(id);
            for at in 0..self.sites.len() {
                let site = &self.sites[at];
                if site.cert_id.is_none() && !site.is_deleted && self.covers(leaf, at) {
                    self.sites[at].cert_id = Some(id);
                    self.sites[at].is_synced = false;
                }
            }
        }
        self.records.insert(id, record);
        for site in self.sites.iter_mut().filter(|site| site.cert_id == Some(id)) {
            site.is_synced &= !self.announces_content;
        }
    }

    /// `POST /api/sites/{id}/update` with a `cert_id`
    pub(crate) fn bind(&mut self, site: usize, to: u64) -> Result<(), Failure> {
        if !self.records.contains_key(&to) || self.sites[site].is_deleted {
            return Err(Failure::Refused);
        }
        let failure = self.failure();
        if failure == Some(Failure::Busy) {
            return Err(Failure::Busy);
        }
        let from = self.sites[site].cert_id.replace(to);
        self.sites[site].is_synced = false;
        self.changes.push(Change::Bind { site, from, to });
        failure.map_or(Ok(()), Err)
    }

    fn failure(&mut self) -> Option<Failure> {
        let fails = self.rng.u8(..16) < self.faults.failing;
        self.disturbances += usize::from(fails);
        fails.then(|| if self.rng.bool() { Failure::Busy } else { Failure::Lost })
    }

    /// Whether the run is killed at this point.
    pub(super) fn is_killed(&mut self) -> bool {
        let is_killed = self.rng.u8(..16) < self.faults.killed;
        self.disturbances += usize::from(is_killed);
        is_killed
    }

    /// Lets the configuration reach the edges. Without a record they keep what they serve.
    pub(crate) fn push(&mut self) {
        let moment = self.moment();
        for at in 0..self.sites.len() {
            let leaf = self.bound_leaf(at);
            let site = &mut self.sites[at];
            if site.is_push_held {
                continue;
            }
            site.is_synced = true;
            for edge in site.edges.iter_mut().filter(|edge| !edge.is_left_behind) {
                let pushed = leaf.or(edge.leaf.filter(|_| site.cert_id.is_some()));
                if pushed != edge.leaf {
                    (edge.leaf, edge.since) = (pushed, moment);
                }
            }
        }
    }

    /// `GET /api/me/sites` and `GET /api/certs`
    pub(crate) fn listing(&self) -> Listing {
        let records = self.records.iter().map(|(id, record)| Record {
            id: *id,
            name: Some(Self::domain(record.domain)),
            domains: vec![Self::domain(record.domain)].into(),
            is_system_issued: record.is_system_issued,
        });
        let Faults { hidden_site, hides_records_after: last, .. } = self.faults;
        let records = records.filter(|record| last.is_none_or(|last| record.id <= last));
        let is_listed = |at: &usize| hidden_site != Some(*at) && !self.sites[*at].is_deleted;
        let sites = (0..self.sites.len()).filter(is_listed);
        let mut records = List::complete(records.collect());
        let mut sites = List::complete(sites.map(|at| self.listed(at)).collect());
        sites.gaps.extend(hidden_site.map(|_| Gap::any()));
        records.gaps.extend(last.map(|_| Gap::any()));
        Listing { records, sites }
    }

    /// `GET /api/sites/{id}`
    pub(crate) fn listed(&self, at: usize) -> Site {
        let site = &self.sites[at];
        Site {
            unreadable_cert_id: None,
            id: at as u64 + 1,
            domain: Self::domain(site.domain),
            cert_id: site.cert_id,
            config_synced: site.is_synced,
            cname: None,
            enabled: site.is_enabled,
            https_enabled: true,
            disabled_reason: None,
        }
    }

    /// Handshakes with the edge of a site.
    pub(crate) fn observe(&self, site: u64, expected: usize, is_responding: bool, view: &mut EdgeView) {
        let at = usize::try_from(site).unwrap() - 1;
        for (address, edge) in (1..).zip(&self.sites[at].edges) {
            let shown = match edge.leaf {
                _ if !edge.is_reachable || !is_responding => Shown::Unreachable,
                Some(leaf) if self.sites[at].is_enabled && leaf == expected => Shown::Expected,
                Some(leaf) if self.sites[at].is_enabled => Shown::Other(self.served(leaf, at)),
                _ => Shown::Refusal,
            };
            view.show(address, shown);
        }
    }

    fn served(&self, leaf: usize, site: usize) -> OtherLeaf {
        OtherLeaf { leaf: self.leaves[leaf].clone(), covers_site: self.covers(leaf, site) }
    }
}

impl fmt::Display for ModelSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        write!(f, "{} on record {}", NAMES[self.domain], number(self.cert_id))?;
        if !self.is_enabled {
            write!(f, ", disabled")?;
        }
        if self.is_push_held {
            write!(f, ", push held")?;
        }
        for edge in &self.edges {
            let leaf = number(edge.leaf.map(|leaf| leaf as u64));
            let reach = if edge.is_reachable { "" } else { " cut off" };
            let push = if edge.is_left_behind { " left behind" } else { "" };
            write!(f, ", serves {leaf}{reach}{push}")?;
        }
        Ok(())
    }
}
