//! The lineages of this host, each once: those deployed before, and those in the configuration.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::bundle::Files;
use crate::env::Env;
use crate::names::{Domain, distinct};
use crate::settings::{Configuration, LineageEntry, Location};
use crate::source::{self, AcmeClient, Named, Source};
use crate::state::{
    self, DamagedFile, LineageState, RecordedOptions, SourceState, StateDirError, StateError, Store,
};
use crate::text;

/// A lineage of the inventory.
pub(crate) struct Member<'a> {
    /// Name of its state file; for an unusable entry, its path.
    pub(crate) name: String,
    /// An error only if the lineage was never deployed.
    pub(crate) source: Result<Source, source::SourceError>,
    /// Its entry in the configuration.
    pub(crate) entry: Option<&'a LineageEntry>,
    /// `None` if the lineage was never deployed.
    pub(crate) state: Option<LineageState>,
}

/// The sites to deploy to: those that an earlier run was given, else those of the entry; empty: every covered one.
pub(crate) fn domains(recorded: &RecordedOptions, entry: Option<&LineageEntry>) -> Vec<Domain> {
    let recorded = recorded.overrides.domains.iter();
    let recorded: Vec<Domain> = recorded.filter_map(|name| name.parse().ok()).collect();
    let configured = entry.map(|entry| entry.domains.as_slice()).unwrap_or_default();
    distinct(if recorded.is_empty() { configured } else { &recorded })
}

/// One of `of` equal shares of the lineages; `index` counts from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) index: u64,
    pub(crate) of: u64,
}

impl FromStr for Shard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected I/N, with I from 0 to N-1";
        let (index, of) = text.split_once('/').ok_or(EXPECTED)?;
        let shard =
            Self { index: index.parse().map_err(|_| EXPECTED)?, of: of.parse().map_err(|_| EXPECTED)? };
        if shard.index < shard.of { Ok(shard) } else { Err(EXPECTED) }
    }
}

impl Shard {
    /// Whether a lineage belongs to the share. The name decides, so a lineage stays in its share when others are added.
    pub(crate) fn contains(self, name: &str) -> bool {
        state::stable_hash(name) % self.of == self.index
    }
}

/// The lineages of this host. They are visited one by one, because there may be many thousands.
pub(crate) struct Inventory<'a> {
    store: Option<&'a Store>,
    /// Names of the lineages that have a state file.
    recorded: Vec<String>,
    /// The invalid state files of other lineages.
    damaged: Vec<DamagedFile>,
    configured: Entries<'a>,
}

/// The entries of the configuration, without those that were visited.
#[derive(Default)]
struct Entries<'a> {
    /// By the name of the lineage's state file, even if it has none.
    found: BTreeMap<String, (&'a LineageEntry, Source)>,
    /// By real path: a client may name a lineage by a link to the configured directory.
    by_real_path: HashMap<PathBuf, (String, &'a LineageEntry)>,
    /// Entries whose lineage cannot be found.
    unusable: Vec<(&'a LineageEntry, source::SourceError)>,
}

impl<'a> Inventory<'a> {
    /// Finds the lineages of the configuration and lists those that have a state file.
    pub(crate) fn gather(store: Option<&'a Store>, file: &'a Configuration) -> Result<Self, StateDirError> {
        let (recorded, damaged) = store.map(Store::list).transpose()?.unwrap_or_default();
        Ok(Self { store, recorded, damaged, configured: Entries::find(file) })
    }

    /// Finds the lineages of the configuration only.
    pub(crate) fn configured(file: &'a Configuration) -> Self {
        Self { store: None, recorded: Vec::new(), damaged: Vec::new(), configured: Entries::find(file) }
    }

    /// Upper bound on the number of lineages.
    pub(crate) fn len(&self) -> usize {
        let configured = self.configured.found.len() + self.configured.unusable.len();
        self.recorded.len() + self.damaged.len() + configured
    }

    /// Removes lineages that were deployed before and need not be read. `is_known` gets their names in ascending order.
    pub(crate) fn leave_out(&mut self, is_known: impl FnMut(&str) -> bool) {
        let mut is_known = is_known;
        self.recorded.retain(|name| !is_known(name));
    }

    /// Visits each lineage, those deployed before first. Errors of state files are passed to `on_error`.
    pub(crate) fn visit(self, mut visitor: impl FnMut(Member<'a>), mut on_error: impl FnMut(StateError)) {
        self.damaged.into_iter().for_each(|file| on_error(file.into()));
        let mut configured = self.configured;
        for name in self.recorded {
            let state = match self.store.map_or(Ok(None), |store| store.read(&name)) {
                Ok(Some(state)) => state,
                // Deleted since it was listed.
                Ok(None) => continue,
                Err(error) => {
                    on_error(error);
                    continue;
                }
            };
            let (entry, source) = configured.take(&name, &state.source);
            visitor(Member { name, source: Ok(source), entry, state: Some(state) });
        }
        for (name, (entry, source)) in configured.found {
            visitor(Member { name, source: Ok(source), entry: Some(entry), state: None });
        }
        for (entry, error) in configured.unusable {
            let name = text::path(main_path(entry));
            visitor(Member { name, source: Err(error), entry: Some(entry), state: None });
        }
    }
}

impl<'a> Entries<'a> {
    fn find(file: &'a Configuration) -> Self {
        let mut entries = Self::default();
        for entry in &file.lineages {
            match find(entry) {
                Ok(source) => {
                    // If two entries name one lineage, the first one counts, as in a hook.
                    let name = state::lineage_name(&source.stable_path());
                    entries.found.entry(name).or_insert((entry, source));
                }
                Err(error) => entries.unusable.push((entry, error)),
            }
        }
        let paths = entries.found.iter();
        let paths = paths.map(|(name, (entry, source))| (source.real_path(), (name.clone(), *entry)));
        entries.by_real_path = paths.collect();
        entries
    }

    /// Takes the entry of a lineage that was deployed before, and finds its source.
    fn take(&mut self, name: &str, recorded: &SourceState) -> (Option<&'a LineageEntry>, Source) {
        if let Some((entry, source)) = self.found.remove(name) {
            return (Some(entry), source);
        }
        let files = Files {
            cert: recorded.cert.clone(),
            issuers: recorded.issuers.clone(),
            key: recorded.key.clone(),
        };
        let source =
            source::recorded(AcmeClient::from_name(&recorded.client), files, recorded.directory.clone());
        if !self.by_real_path.is_empty()
            && let Some((name, entry)) = self.by_real_path.get(&source.real_path())
        {
            self.found.remove(name);
            return (Some(entry), source);
        }
        // The files may have been deleted since the deployment.
        let position = self.unusable.iter().position(|(entry, _)| is_at(entry, recorded));
        (position.map(|position| self.unusable.swap_remove(position).0), source)
    }
}

/// Reads a lineage that was deployed before, for a configuration without entries; `None` if it is no longer recorded.
pub(crate) fn recorded<'a>(store: &Store, name: &str) -> Result<Option<Member<'a>>, StateError> {
    let Some(state) = store.read(name)? else { return Ok(None) };
    let (entry, source) = Entries::default().take(name, &state.source);
    Ok(Some(Member { name: name.to_owned(), source: Ok(source), entry, state: Some(state) }))
}

/// The first entry of the configuration for this lineage.
pub(crate) fn entry_of<'a>(configuration: &'a Configuration, source: &Source) -> Option<&'a LineageEntry> {
    let is_same = |a: &Path, b: &Path| match (a.canonicalize(), b.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => std::path::absolute(a).ok() == std::path::absolute(b).ok(),
    };
    configuration.lineages.iter().find(|entry| match &entry.location {
        Location::Directory(directory) => {
            source.directory.as_ref().is_some_and(|known| is_same(known, directory))
        }
        Location::Files { cert, key } => {
            is_same(cert, &source.files.cert)
                && source.files.key.as_ref().is_some_and(|known| is_same(key, known))
        }
    })
}

/// Finds the lineage of an entry.
fn find(entry: &LineageEntry) -> Result<Source, source::SourceError> {
    let named = match &entry.location {
        Location::Directory(directory) => Named { lineage: Some(directory.clone()), ..Named::default() },
        Location::Files { cert, key } => {
            Named { cert: Some(cert.clone()), key: Some(key.clone()), ..Named::default() }
        }
    };
    source::find(&named, &Env::default())
}

/// Whether an entry names the recorded directory or certificate.
fn is_at(entry: &LineageEntry, recorded: &SourceState) -> bool {
    let known = match &entry.location {
        Location::Directory(_) => recorded.directory.as_ref(),
        Location::Files { .. } => Some(&recorded.cert),
    };
    known.is_some_and(|known| std::path::absolute(main_path(entry)).is_ok_and(|path| path == *known))
}

fn main_path(entry: &LineageEntry) -> &Path {
    match &entry.location {
        Location::Directory(directory) => directory,
        Location::Files { cert, .. } => cert,
    }
}
