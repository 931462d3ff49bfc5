//! The lineages that edgecert looks after: those that were deployed before and those of the configuration file, each once.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::bundle::Files;
use crate::env::Env;
use crate::file::ReadError;
use crate::names::{Domain, distinct};
use crate::settings::{Configuration, LineageEntry, Location};
use crate::source::{self, Client, Named, Source};
use crate::state::{self, LineageState, StateError, Store};

/// One lineage.
pub(crate) struct Member<'a> {
    /// What its memory is called.
    pub(crate) name: String,
    /// Where it is; an error only where it was never deployed.
    pub(crate) source: Result<Source, source::Error>,
    /// What the configuration says of it.
    pub(crate) entry: Option<&'a LineageEntry>,
    /// What is remembered of it; `None`: it was never deployed.
    pub(crate) memory: Option<LineageState>,
}

impl Member<'_> {
    /// The sites that have to get the certificate: those that an earlier run was told, else those of the configuration;
    /// empty: every covered one.
    pub(crate) fn domains(&self) -> Vec<Domain> {
        let told = self.memory.iter().flat_map(|memory| &memory.options.overrides.domains);
        let told: Vec<Domain> = told.filter_map(|name| name.parse().ok()).collect();
        let configured = self.entry.map(|entry| entry.domains.as_slice()).unwrap_or_default();
        distinct(if told.is_empty() { configured } else { &told })
    }
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

/// The lineages, to be visited one by one: there may be many thousands.
pub(crate) struct Inventory<'a> {
    store: Option<&'a Store>,
    /// Names of memories.
    names: Vec<String>,
    /// By the name that its memory has or would have.
    configured: BTreeMap<String, (&'a LineageEntry, Source)>,
    /// Entries that lead to no lineage.
    astray: Vec<(&'a LineageEntry, source::Error)>,
}

impl<'a> Inventory<'a> {
    /// Finds the lineages of the configuration and lists those that are remembered.
    pub(crate) fn gather(store: Option<&'a Store>, file: &'a Configuration) -> Result<Self, ReadError> {
        let remembered = store.map(Store::names).transpose()?.unwrap_or_default();
        Ok(Self::new(store, remembered, file))
    }

    /// Those of the configuration alone.
    pub(crate) fn configured(file: &'a Configuration) -> Self {
        Self::new(None, Vec::new(), file)
    }

    fn new(store: Option<&'a Store>, names: Vec<String>, file: &'a Configuration) -> Self {
        let (mut configured, mut astray) = (BTreeMap::new(), Vec::new());
        for entry in &file.lineages {
            match find(entry) {
                Ok(source) => {
                    // Of two entries for one lineage the first one counts, as for the hook.
                    configured.entry(state::lineage_name(&source.stable_path())).or_insert((entry, source));
                }
                Err(error) => astray.push((entry, error)),
            }
        }
        Self { store, names, configured, astray }
    }

    /// How many there are at most.
    pub(crate) fn len(&self) -> usize {
        self.names.len() + self.configured.len() + self.astray.len()
    }

    /// Visits each, those that are remembered first; damaged memories are set aside, and the second argument says so.
    pub(crate) fn visit(self, mut visitor: impl FnMut(Member<'a>), mut strange: impl FnMut(StateError)) {
        let Self { store, names, mut configured, mut astray } = self;
        // A client may call a lineage by a link, and the configuration by what it leads to.
        let places =
            configured.iter().map(|(name, (entry, source))| (source.real_path(), (name.clone(), *entry)));
        let places: HashMap<PathBuf, (String, &LineageEntry)> = places.collect();
        for name in names {
            let memory = match store.map_or(Ok(None), |store| store.read(&name)) {
                Ok(Some(memory)) => memory,
                // A state that cannot be read leaves nothing to visit, unless an entry names its lineage.
                Ok(None) => continue,
                Err(error) => {
                    strange(error);
                    continue;
                }
            };
            let (mut entry, source) = configured.remove(&name).unzip();
            let source = source.unwrap_or_else(|| remembered(&memory.source));
            if entry.is_none()
                && !places.is_empty()
                && let Some((other, own)) = places.get(&source.real_path())
            {
                configured.remove(other);
                entry = Some(*own);
            }
            // The files of an entry may be gone that were there when it was deployed.
            let is_of_it = |(entry, _): &(&LineageEntry, _)| is_place_of(entry, &memory.source);
            if entry.is_none() {
                entry = astray.iter().position(is_of_it).map(|place| astray.swap_remove(place).0);
            }
            visitor(Member { name, source: Ok(source), entry, memory: Some(memory) });
        }
        for (name, (entry, source)) in configured {
            visitor(Member { name, source: Ok(source), entry: Some(entry), memory: None });
        }
        for (entry, error) in astray {
            visitor(Member { name: shown(entry), source: Err(error), entry: Some(entry), memory: None });
        }
    }
}

/// The lineage of an entry of the configuration.
fn find(entry: &LineageEntry) -> Result<Source, source::Error> {
    let named = match &entry.location {
        Location::Directory(directory) => Named { lineage: Some(directory.clone()), ..Named::default() },
        Location::Files { cert, key } => {
            Named { cert: Some(cert.clone()), key: Some(key.clone()), ..Named::default() }
        }
    };
    source::find(&named, &Env::default())
}

fn is_place_of(entry: &LineageEntry, lineage: &state::SourceState) -> bool {
    let same = |a: &Path, b: &Path| std::path::absolute(a).is_ok_and(|a| a == b);
    match &entry.location {
        Location::Directory(directory) => {
            lineage.directory.as_ref().is_some_and(|known| same(directory, known))
        }
        Location::Files { cert, .. } => same(cert, &lineage.cert),
    }
}

/// The lineage that is remembered, as its client keeps it now.
pub(crate) fn remembered(lineage: &state::SourceState) -> Source {
    let files =
        Files { cert: lineage.cert.clone(), issuers: lineage.issuers.clone(), key: lineage.key.clone() };
    source::recorded(Client::from_name(&lineage.client), files, lineage.directory.clone())
}

fn shown(entry: &LineageEntry) -> String {
    let path: &Path = match &entry.location {
        Location::Directory(directory) => directory,
        Location::Files { cert, .. } => cert,
    };
    crate::text::path(path)
}
