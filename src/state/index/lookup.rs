//! What all lineages deployed, with as few state files read as possible. What indexed lineages deployed to a site or
//! stored in a record is looked up, without reading the other entries.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;

use time::OffsetDateTime;

use super::changes::ChangeLog;
use super::header::{Header, Layout};
use super::lineage::IndexedLineage;
use super::tables::{Contents, Place, Table, record_key, site_key};
use super::{Index, MAX_BYTES, NAME};
use crate::file;
use crate::state::deployments::{Deployments, RecordContents, ServiceDeployments, SiteDeployment};
use crate::state::{LineageState, StateDirError, StateError, Store};

/// Usually enough for the header.
const HEADER_BYTES: usize = 4 << 10;

/// The deployments of indexed lineages to a service.
#[derive(Debug)]
pub(crate) struct IndexedDeployments {
    pub(super) contents: Contents,
    pub(super) header: Header,
    pub(super) layout: Layout,
    pub(super) service: String,
    /// Lineages whose entries do not count.
    pub(super) skipped: BTreeSet<String>,
    /// Whether a leaf of these lineages may expire before a time, in seconds since the Unix epoch.
    pub(super) first_expiry: i64,
    pub(super) store: Store,
    /// The deployments according to the state files, which are read if the index is damaged.
    pub(super) read: OnceLock<ServiceDeployments>,
}

impl IndexedDeployments {
    /// The deployments to a site.
    pub(in crate::state) fn on_site(&self, host: &str) -> Vec<SiteDeployment> {
        let mut deployments = Vec::new();
        let key = site_key(&self.service, host);
        let found = self.visit(&self.layout.sites, key, |lineage| {
            let sites = lineage.sites.iter().filter(|site| site.host == host);
            deployments.extend(sites.map(|site| lineage.deployment_to(site)));
        });
        found.map_or_else(|error| self.read(&error).on_site(host).into_owned(), |()| deployments)
    }

    /// What a record holds.
    pub(in crate::state) fn in_record(&self, record: u64) -> RecordContents {
        let mut contents = RecordContents::default();
        let key = record_key(&self.service, record);
        let found = self.visit(&self.layout.records, key, |lineage| {
            lineage.leaf_in(record).into_iter().for_each(|leaf| contents.add_stored(leaf));
        });
        found.map_or_else(|error| self.read(&error).in_record(record), |()| contents)
    }

    /// The hosts of all sites.
    pub(in crate::state) fn hosts(&self) -> BTreeSet<String> {
        let mut hosts = BTreeSet::new();
        let visited = self.visit_all(|lineage| {
            hosts.extend(lineage.sites.iter().map(|site| site.host.to_owned()));
        });
        visited.map_or_else(|error| self.read(&error).hosts(), |()| hosts)
    }

    /// Whether a leaf may expire before a time.
    pub(in crate::state) fn may_expire_before(&self, time: OffsetDateTime) -> bool {
        self.first_expiry < time.unix_timestamp()
    }

    /// Visits the lineages that a table has for a key.
    fn visit(&self, table: &Table, key: u64, mut visitor: impl FnMut(&IndexedLineage<'_>)) -> io::Result<()> {
        for (start, length) in table.find(&self.contents, key)? {
            let bytes = self.entries((start, length))?;
            let lineage = postcard::from_bytes(&bytes).map_err(invalid)?;
            self.visit_if_valid(&lineage, &mut visitor)?;
        }
        Ok(())
    }

    fn visit_all(&self, mut visitor: impl FnMut(&IndexedLineage<'_>)) -> io::Result<()> {
        let bytes = self.entries((0, self.header.entry_bytes))?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (lineage, after) = postcard::take_from_bytes(rest).map_err(invalid)?;
            self.visit_if_valid(&lineage, &mut visitor)?;
            rest = after;
        }
        Ok(())
    }

    fn visit_if_valid(
        &self,
        lineage: &IndexedLineage<'_>,
        visitor: &mut impl FnMut(&IndexedLineage<'_>),
    ) -> io::Result<()> {
        let options = self.header.options.get(lineage.options as usize).ok_or(io::ErrorKind::InvalidData)?;
        if options.service == self.service && !self.skipped.contains(lineage.name) {
            visitor(lineage);
        }
        Ok(())
    }

    fn entries(&self, (start, length): Place) -> io::Result<Vec<u8>> {
        self.contents.read(self.layout.entries.saturating_add(start), length, self.header.entry_bytes)
    }

    /// Reads all state files instead, except those that the index would not be used for.
    fn read(&self, error: &io::Error) -> &ServiceDeployments {
        self.read.get_or_init(|| {
            log::info!(
                "reading all state files, because the index of the state directory is damaged: {error}"
            );
            let mut deployments = Deployments::default();
            let (states, errors) = self.store.read_all();
            for error in errors {
                log::warn!("{error}");
            }
            for (name, state) in states.iter().filter(|(name, _)| !self.skipped.contains(name)) {
                deployments.add(name, state);
            }
            deployments.of_service(&self.service)
        })
    }
}

impl Store {
    /// The deployments of all lineages to a service. Reads only the state files that have no valid entry in the index.
    /// `own` is a lineage with its state, if it has one.
    pub(crate) fn deployments(
        &self,
        own: (&str, Option<&LineageState>),
        service: &str,
        now: OffsetDateTime,
    ) -> (ServiceDeployments, Vec<StateError>) {
        if let Some(deployments) = self.indexed_deployments(own, service, now) {
            return deployments;
        }
        let (deployments, errors) = self.compared_deployments(now);
        (deployments.of_service(service), errors)
    }

    /// The deployments of all lineages, according to the entries whose stamps are those of the state files, and to the
    /// other state files.
    fn compared_deployments(&self, now: OffsetDateTime) -> (Deployments, Vec<StateError>) {
        let (mut deployments, mut errors) = (Deployments::default(), Vec::new());
        let names = match self.names() {
            Ok(names) => names,
            Err(StateDirError(error)) => return (deployments, vec![error.into()]),
        };
        let mut index = Index::read(self, now);
        for name in names {
            let found = index.find(&name, self.stamp(&name), false);
            let known = found.and_then(|found| index.lineage(found.place));
            let options = known.as_ref().and_then(|known| index.options(known));
            if let (Some(lineage), Some(options)) = (&known, options) {
                deployments.add_indexed(&options.service, lineage);
                continue;
            }
            match self.read(&name) {
                Ok(state) => state.iter().for_each(|state| deployments.add(&name, state)),
                Err(error) => errors.push(error),
            }
        }
        (deployments, errors)
    }

    /// The deployments of all lineages to a service, according to the index and to the state files that were changed
    /// since, without looking at the others. `own` is a lineage with its state, if it has one. `None` if that is not
    /// possible.
    fn indexed_deployments(
        &self,
        own: (&str, Option<&LineageState>),
        service: &str,
        now: OffsetDateTime,
    ) -> Option<(ServiceDeployments, Vec<StateError>)> {
        let (file, header, length) = open(self)?;
        if !header.counts(&Header::new(self, now)) {
            return None;
        }
        let mut skipped = ChangeLog::open(self)?.changed_since_index(&header.id)?;
        skipped.extend(header.unindexed.iter().cloned());
        let (mut deployments, mut errors) = (Deployments::default(), Vec::new());
        own.1.iter().for_each(|state| deployments.add(own.0, state));
        for name in skipped.iter().filter(|name| *name != own.0) {
            match self.read(name) {
                Ok(state) => state.iter().for_each(|state| deployments.add(name, state)),
                Err(error) => errors.push(error),
            }
        }
        skipped.insert(own.0.to_owned());
        let index = IndexedDeployments {
            contents: Contents::File(file),
            layout: header.layout(length),
            header,
            service: service.to_owned(),
            skipped,
            // Unknown.
            first_expiry: i64::MIN,
            store: self.clone(),
            read: OnceLock::new(),
        };
        Some((deployments.of_service(service).with_index(index), errors))
    }
}

/// Opens the index and reads its header; also returns the length of the header.
fn open(store: &Store) -> Option<(File, Header, usize)> {
    let file = file::open_regular(&store.path(NAME), OpenOptions::new().read(true)).ok()?;
    let size = usize::try_from(file.metadata().ok()?.len().min(MAX_BYTES)).ok()?;
    let mut bytes = vec![0; HEADER_BYTES.min(size)];
    let mut known = 0;
    loop {
        file.read_exact_at(bytes.get_mut(known..)?, known as u64).ok()?;
        if let Some(end) = bytes.iter().skip(known).position(|byte| *byte == b'\n') {
            let end = known + end;
            let header = serde_json::from_slice(bytes.get(..end)?).ok()?;
            return Some((file, header, end + 1));
        }
        known = bytes.len();
        if known >= size {
            return None;
        }
        bytes.resize((known * 4).min(size), 0);
    }
}

fn invalid(error: postcard::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
