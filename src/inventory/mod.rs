//! The lineages of this host, each once: those deployed before, and those in the configuration.

mod entries;
mod pattern;

use std::collections::BTreeMap;

pub(crate) use self::entries::{Account, targets};
use self::entries::{Entries, Unusable};
use crate::names::{Domain, distinct};
use crate::settings::{Configuration, LineageEntry};
use crate::source::{Source, SourceError};
use crate::state::{self, DamagedFile, Given, LineageState, StateError, Store};
use crate::text;

/// A lineage of the inventory.
pub(crate) struct Member<'a> {
    /// Name of its state file; for an unusable entry, its path.
    pub(crate) name: String,
    /// An error only if the lineage was never deployed.
    pub(crate) source: Result<Source, SourceError>,
    /// Its entry in the configuration.
    pub(crate) entry: Option<&'a LineageEntry>,
    /// `None` if the lineage was never deployed.
    pub(crate) state: Option<LineageState>,
    /// Whether the configuration no longer says where to deploy the lineage: see [`Entries::is_unclaimed`].
    pub(crate) is_unclaimed: bool,
}

impl<'a> Member<'a> {
    /// A lineage that was never deployed.
    fn new(name: String, source: Result<Source, SourceError>, entry: Option<&'a LineageEntry>) -> Self {
        Self { name, source, entry, state: None, is_unclaimed: false }
    }
}

/// The sites to deploy to: those that an earlier run was given, else those of the entry; empty: every covered one.
pub(crate) fn domains(given: &Given, entry: Option<&LineageEntry>) -> Vec<Domain> {
    let configured = entry.map(|entry| entry.domains.as_slice()).unwrap_or_default();
    distinct(if given.domains.is_empty() { configured } else { &given.domains })
}

/// The lineages of this host. They are visited one by one, because there may be many thousands.
#[derive(Default)]
pub(crate) struct Inventory<'a> {
    store: Option<&'a Store>,
    /// Names of the lineages that have a state file.
    recorded: Vec<String>,
    /// The invalid state files of other lineages.
    damaged: Vec<DamagedFile>,
    configured: Entries<'a>,
    /// Lineages that were found elsewhere, by the names of their state files.
    found: BTreeMap<String, Source>,
}

impl<'a> Inventory<'a> {
    /// Finds the lineages of the configuration and lists those that have a state file. Cannot fail without a store.
    pub(crate) fn gather(store: Option<&'a Store>, file: &'a Configuration) -> Result<Self, StateError> {
        let (recorded, damaged) = store.map(Store::list).transpose()?.unwrap_or_default();
        let configured = Entries::find(file, &recorded);
        Ok(Self { store, recorded, damaged, configured, found: BTreeMap::new() })
    }

    /// Adds a lineage that is neither recorded nor in the configuration.
    pub(crate) fn add(&mut self, source: Source) {
        self.found.insert(state::lineage_name(&source), source);
    }

    /// The patterns of the configuration that match no lineage.
    pub(crate) fn unmatched_patterns(&self) -> &[&'a str] {
        &self.configured.unmatched
    }

    /// Upper bound on the number of lineages.
    pub(crate) fn len(&self) -> usize {
        let configured = self.configured.found.len() + self.configured.unusable.len();
        self.recorded.len() + self.damaged.len() + configured + self.found.len()
    }

    /// Visits each lineage, those deployed before first. Errors of state files are passed to `on_error`.
    pub(crate) fn visit(self, mut visitor: impl FnMut(Member<'a>), mut on_error: impl FnMut(StateError)) {
        self.damaged.into_iter().for_each(|file| on_error(file.into()));
        let (mut configured, mut found) = (self.configured, self.found);
        for name in self.recorded {
            let read = self.store.map_or(Ok(None), |store| store.read(&name));
            // There is none if it was deleted since it was listed.
            let Some(state) = read.map_err(&mut on_error).unwrap_or_default() else { continue };
            found.remove(&name);
            let (entry, source) = configured.take(&name, &state.source);
            let is_unclaimed = entry.is_none() && configured.is_unclaimed(&source);
            visitor(Member { state: Some(state), is_unclaimed, ..Member::new(name, Ok(source), entry) });
        }
        for (name, (entry, source)) in configured.found {
            visitor(Member::new(name, Ok(source), Some(entry)));
        }
        for (name, source) in found {
            visitor(Member::new(name, Ok(source), None));
        }
        for Unusable { entry, path, error } in configured.unusable {
            visitor(Member::new(text::path(&path), Err(error), Some(entry)));
        }
    }
}
