//! The `[[lineage]]` entries of the configuration, and which lineage each of them names.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::pattern;
use crate::settings::{Configuration, Connection, LineageEntry, Location};
use crate::source::{Source, SourceError};
use crate::state;
use crate::text;

/// The entries of the configuration, without those that were visited.
#[derive(Default)]
pub(super) struct Entries<'a> {
    /// By the name of the lineage's state file, even if it has none.
    pub(super) found: BTreeMap<String, (&'a LineageEntry, Source)>,
    /// By real path and target: a client may name a lineage by a link to the configured directory. Empty if the names of
    /// all lineages that were deployed before are found.
    by_real_path: HashMap<(PathBuf, Option<String>), (String, &'a LineageEntry)>,
    pub(super) unusable: Vec<Unusable<'a>>,
    /// Patterns that match no lineage.
    pub(super) unmatched: Vec<&'a str>,
    patterns: Vec<&'a LineageEntry>,
    /// The other entries, by the real path of the directory or the certificate that they name; empty if `by_real_path` is
    /// not needed.
    by_location: HashMap<PathBuf, Vec<&'a LineageEntry>>,
}

/// An entry, or a match of its pattern, that leads to no lineage.
pub(super) struct Unusable<'a> {
    pub(super) entry: &'a LineageEntry,
    pub(super) path: PathBuf,
    pub(super) error: SourceError,
}

impl<'a> Entries<'a> {
    /// Finds the lineages of all entries. `recorded` are the names of those that were deployed before.
    pub(super) fn find(file: &'a Configuration, recorded: &[String]) -> Self {
        let mut entries = Self::default();
        for entry in by_precedence(file) {
            match &entry.location {
                Location::Directory(path) => entries.add(entry, path, Source::at(path)),
                Location::Files { cert, key } => {
                    entries.add(entry, cert, Ok(Source::of_files(cert.clone(), Some(key.clone()))));
                }
                Location::Pattern(pattern) => {
                    entries.patterns.push(entry);
                    let matches = pattern::expand(pattern);
                    if matches.is_empty() {
                        entries.unmatched.push(pattern.as_str());
                    }
                    for (path, found) in matches {
                        entries.add(entry, &path, found);
                    }
                }
            }
        }
        // Most runs need no real paths, which take a third of the time of `sync`.
        if recorded.iter().any(|name| !entries.found.contains_key(name)) {
            let paths = entries.found.iter().map(|(name, (entry, source))| {
                ((source.real_path(), source.target.clone()), (name.clone(), *entry))
            });
            entries.by_real_path = paths.collect();
            for entry in by_precedence(file) {
                if let Location::Directory(path) | Location::Files { cert: path, .. } = &entry.location {
                    entries.by_location.entry(real(path)).or_default().push(entry);
                }
            }
        }
        entries
    }

    fn add(&mut self, entry: &'a LineageEntry, path: &Path, found: Result<Source, SourceError>) {
        match found {
            Ok(source) => {
                let source = source.for_target(entry.target.clone());
                self.found.entry(state::lineage_name(&source)).or_insert((entry, source));
            }
            Err(error) => self.unusable.push(Unusable { entry, path: path.to_owned(), error }),
        }
    }

    /// Takes the entry of a lineage that was deployed before, and finds its source.
    pub(super) fn take(&mut self, name: &str, recorded: &Source) -> (Option<&'a LineageEntry>, Source) {
        if let Some((entry, source)) = self.found.remove(name) {
            return (Some(entry), source);
        }
        let source = recorded.refresh();
        if !self.by_real_path.is_empty()
            && let Some((name, entry)) = self.by_real_path.get(&(source.real_path(), source.target.clone()))
        {
            self.found.remove(name);
            return (Some(entry), source);
        }
        // The files may have been deleted since the deployment.
        let is_for = |entry: &&LineageEntry| entry.target == source.target && is_location_of(entry, &source);
        let position = self.unusable.iter().position(|unusable| is_at(unusable, recorded));
        let entry = position.map(|position| self.unusable.swap_remove(position).entry);
        let entry = entry.or_else(|| self.patterns.iter().copied().find(is_for));
        (entry, source)
    }

    /// Whether a lineage that was deployed before, and has no entry for its account, belongs nowhere: the entry was
    /// removed, or all entries for the lineage are for other accounts, which are then the only ones that the hook deploys
    /// to. The settings of the run are not those of its account.
    pub(super) fn is_unclaimed(&self, source: &Source) -> bool {
        let places = places(source).filter(|_| !self.by_location.is_empty());
        let entries = places.filter_map(|place| self.by_location.get(&real(place))).flatten();
        source.target.is_some() || entries.chain(&self.patterns).any(|entry| is_location_of(entry, source))
    }
}

/// What tells an account from others in a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) base_url: Option<String>,
    /// The file with the API key that the configuration names.
    pub(crate) key_file: Option<PathBuf>,
}

impl Account {
    /// The account of an entry, or of the configuration.
    pub(crate) fn of(file: &Configuration, entry: Option<&LineageEntry>) -> Self {
        let layer = entry.map_or_else(|| file.layer.clone(), |entry| entry.layer.or(&file.layer));
        let Connection { base_url, api_key_file: key_file, .. } = layer.connection;
        Self { base_url: base_url.map(|url| url.to_string()), key_file }
    }

    /// The base URL, with the key file if others of these accounts have the same URL. A single account has no label.
    pub(crate) fn label(&self, accounts: &[Self]) -> Option<String> {
        let base_url = self.base_url.as_ref().filter(|_| accounts.len() > 1)?;
        let is_shared = |other: &Self| other.base_url == self.base_url && other.key_file != self.key_file;
        Some(match &self.key_file {
            Some(file) if accounts.iter().any(is_shared) => format!("{base_url} with {}", text::path(file)),
            _ => base_url.clone(),
        })
    }
}

/// The accounts that the configuration names for a lineage: the lineage for each of them, with the entry. Without an
/// entry, the lineage itself.
pub(crate) fn targets<'a>(
    configuration: &'a Configuration,
    source: &Source,
) -> Vec<(Source, Option<&'a LineageEntry>)> {
    let mut targets: Vec<(Source, Option<&LineageEntry>)> = Vec::new();
    for entry in by_precedence(configuration) {
        let is_new = targets.iter().all(|(source, _)| source.target != entry.target);
        if is_new && is_location_of(entry, source) {
            let source = source.clone().for_target(entry.target.clone());
            targets.push((source, Some(entry)));
        }
    }
    if targets.is_empty() {
        targets.push((source.clone(), None));
    }
    targets
}

/// The entries, patterns last: if several name one lineage and account, the first one counts.
fn by_precedence(configuration: &Configuration) -> impl Iterator<Item = &LineageEntry> {
    let is_pattern = |entry: &&LineageEntry| matches!(entry.location, Location::Pattern(_));
    let (patterns, others): (Vec<_>, Vec<_>) = configuration.lineages.iter().partition(is_pattern);
    others.into_iter().chain(patterns)
}

/// Whether an entry names this lineage.
fn is_location_of(entry: &LineageEntry, source: &Source) -> bool {
    match &entry.location {
        Location::Directory(directory) => {
            source.directory.as_ref().is_some_and(|known| real(known) == real(directory))
        }
        Location::Pattern(pattern) => places(source).any(|path| pattern::matches(pattern, path)),
        Location::Files { cert, key } => {
            real(cert) == real(&source.files.cert)
                && source.files.key.as_ref().is_some_and(|known| real(key) == real(known))
        }
    }
}

/// A path with links resolved; of what does not exist, the absolute path.
fn real(path: &Path) -> PathBuf {
    let real = path.canonicalize().or_else(|_| std::path::absolute(path));
    real.unwrap_or_else(|_| path.to_owned())
}

/// Whether an entry without a lineage names the recorded directory or certificate.
fn is_at(Unusable { entry, path, .. }: &Unusable<'_>, recorded: &Source) -> bool {
    let is_there = |known: &PathBuf| std::path::absolute(path).is_ok_and(|path| path == *known);
    entry.target == recorded.target && places(recorded).any(is_there)
}

/// The paths by which an entry may name a lineage.
fn places(source: &Source) -> impl Iterator<Item = &PathBuf> {
    source.directory.iter().chain([&source.files.cert])
}
