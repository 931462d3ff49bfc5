//! Examines each lineage offline: its files, its state and its settings.
//!
//! In two passes, so that the memory of a run does not grow with what the states of all lineages hold: the first finds
//! the accounts to list, the second reads each lineage when it is decided on. One that is deployed is examined once more
//! under its lock.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ptr;
use std::sync::Arc;

use time::OffsetDateTime;

use crate::bundle;
use crate::cert::KeyType;
use crate::clock::Deadline;
use crate::deploy::Journal;
use crate::error::{CommandError, ErrorKind, Result};
use crate::file::ReadError;
use crate::hint::Hint;
use crate::inventory::{self, Member};
use crate::leaf::Leaf;
use crate::names::{Domain, Names};
use crate::outcome::Outcome;
use crate::report::Report;
use crate::settings::{Layer, Layers, LineageEntry, Settings, Verify};
use crate::source::Source;
use crate::state::{LineageState, RunOptions, SiteState, Store};
use crate::text::rfc3339;

/// What the first pass keeps of a lineage.
pub(super) struct Scanned<'a> {
    pub(super) name: String,
    pub(super) source: Source,
    /// Its entry in the configuration.
    pub(super) entry: Option<&'a LineageEntry>,
    /// When the last run began; `None` if it was never deployed.
    pub(super) begun: Option<OffsetDateTime>,
}

/// A lineage that can be deployed.
pub(super) struct Candidate<'a> {
    pub(super) name: String,
    pub(super) source: Source,
    /// Its entry in the configuration.
    pub(super) entry: Option<&'a LineageEntry>,
    pub(super) settings: Arc<Settings>,
    /// How it is deployed: with the recorded options for the leaf on disk.
    pub(super) options: RunOptions,
    /// The leaf on disk; `None` if it cannot be read. The recorded one if the file is missing.
    pub(super) leaf: Option<Leaf>,
    /// Its names.
    pub(super) names: Names,
    /// The sites as the last deployment reported them.
    pub(super) sites: Vec<SiteState>,
    /// When a deployment or `sync` last looked at its edges; `None` if it was never deployed.
    pub(super) edge_seen_at: Option<OffsetDateTime>,
    /// When the last run began; `None` if it was never deployed. If it differs under the lock, another run has begun since,
    /// which may seem earlier: the clock may have been set back.
    pub(super) begun: Option<OffsetDateTime>,
    /// Why it is deployed, or cannot be; `None` if only what the service lists or the edges serve can be a reason.
    pub(super) reason: Option<Reason>,
}

/// Why a lineage is deployed, or cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Reason {
    #[error("never deployed before")]
    New,
    #[error("renewed")]
    Renewed,
    #[error("pending since {}", rfc3339(*.0))]
    Pending(OffsetDateTime),
    #[error("options changed")]
    OptionsChanged,
    /// The client may be replacing them at this moment, so they are read again before this is reported.
    #[error("its files are missing")]
    FilesMissing,
    /// Deploying clears the mark in the state, so that files which disappear again are reported again.
    #[error("its files are back")]
    FilesBack,
    #[error("{0}")]
    Drifted(String),
    /// Nothing can be done: the deployed leaf expired at this time, and there is no later one on disk.
    #[error("expired")]
    Expired(OffsetDateTime),
}

/// Examines lineages one by one.
pub(super) struct Examiner<'a> {
    layers: &'a Layers<'a>,
    pub(super) store: Store,
    resolved: RefCell<Resolved>,
}

/// The settings for each entry and for what was recorded, which most lineages share.
type Resolved = HashMap<Option<*const LineageEntry>, Vec<(Layer, Arc<Settings>)>>;

impl<'a> Examiner<'a> {
    pub(super) fn new(layers: &'a Layers<'a>, store: Store) -> Self {
        Self { layers, store, resolved: RefCell::default() }
    }

    /// The first pass: finds the settings of a lineage, which name its account. `None`: its files are missing, and
    /// nothing is to be reported.
    pub(super) fn scan(&self, member: Member<'a>) -> Result<Option<(Arc<Settings>, Scanned<'a>)>> {
        let Member { name, source, entry, state, .. } = member;
        let source = source?;
        let mut recorded = Layer::default();
        if let Some(state) = &state {
            // Nobody needs the files of a superseded lineage.
            let needs_no_files = state.missing_since.is_some() || state.is_superseded();
            // Only the options of a pending run depend on the leaf on disk.
            let is_needed = needs_no_files || state.pending_since.is_some();
            let on_disk = is_needed.then(|| LeafOnDisk::read(&source, Some(state)));
            if needs_no_files && on_disk.as_ref().is_some_and(|leaf| leaf.is_missing) {
                return Ok(None);
            }
            recorded = state.given(on_disk.and_then(|on_disk| on_disk.leaf).as_ref()).0.settings;
        }
        let settings = self.settings(&recorded, entry)?;
        let begun = state.and_then(|state| state.begun_at);
        Ok(Some((settings, Scanned { name, source, entry, begun })))
    }

    /// The second pass. Fails if the account is no longer the one of the first; `None`: the state was deleted since.
    pub(super) fn examine(&self, lineage: Scanned<'a>, listed: &Settings) -> Result<Option<Candidate<'a>>> {
        let state = self.store.read(&lineage.name)?;
        if state.is_none() && lineage.begun.is_some() && lineage.entry.is_none() {
            return Ok(None);
        }
        // A run that began between the passes is noticed under the lock.
        self.candidate(lineage, listed, state).map(Some)
    }

    /// Locks a lineage and examines it again: its client or another run may have changed it since the scan. `None` if its
    /// state was deleted and the configuration does not name it.
    pub(super) async fn open(
        &self,
        lineage: &Candidate<'a>,
        deadline: Deadline,
        report: &mut Report,
    ) -> Result<Option<(Journal, Candidate<'a>)>> {
        let Candidate { name, source, entry, begun, .. } = lineage;
        let directory = Some(self.store.directory.as_path());
        let mut journal = Journal::open(name.clone(), source, directory, deadline, report).await?;
        // Without a record of this run the next `sync` would not finish it.
        if let Some(error) = journal.write_error.take() {
            return Err(error.into());
        }
        if journal.has_no_state && begun.is_some() && entry.is_none() {
            return Ok(None);
        }
        let state = journal.before.clone();
        let begun = state.as_ref().and_then(|state| state.begun_at);
        // The client may have switched the files.
        let scanned = Scanned { name: name.clone(), source: source.refresh(), entry: *entry, begun };
        let now = self.candidate(scanned, &lineage.settings, state)?;
        journal.options = now.options.clone();
        Ok(Some((journal, now)))
    }

    /// Chooses the options of a lineage, and resolves its settings. Fails if they name another account than the one that
    /// was listed.
    fn candidate(
        &self,
        lineage: Scanned<'a>,
        listed: &Settings,
        state: Option<LineageState>,
    ) -> Result<Candidate<'a>> {
        let (entry, on_disk) = (lineage.entry, LeafOnDisk::read(&lineage.source, state.as_ref()));
        let (given, origin) =
            state.as_ref().map(|state| state.given(on_disk.leaf.as_ref())).unwrap_or_default();
        let settings = self.settings(&given.settings, entry)?;
        if !settings.is_same_service(listed) {
            let message = "the account of the lineage changed during this run; nothing was sent for it";
            return Err(CommandError::new(ErrorKind::Temporary, message).hint(Hint::RETRY));
        }
        let options = RunOptions {
            service: Some(settings.base_url.to_string()),
            domains: inventory::domains(&given, entry),
            given,
            origin,
            is_configured: entry.is_some(),
        };
        Ok(Candidate::new(lineage, settings, options, on_disk, state))
    }

    fn settings(&self, recorded: &Layer, entry: Option<&'a LineageEntry>) -> Result<Arc<Settings>> {
        let mut resolved = self.resolved.borrow_mut();
        let resolved = resolved.entry(entry.map(ptr::from_ref)).or_default();
        if let Some((_, settings)) = resolved.iter().find(|(known, _)| known == recorded) {
            return Ok(Arc::clone(settings));
        }
        let settings = Arc::new(self.layers.resolve(recorded, entry)?);
        resolved.push((recorded.clone(), Arc::clone(&settings)));
        Ok(settings)
    }
}

impl<'a> Candidate<'a> {
    /// Examines a lineage that is not reported as missing.
    pub(super) fn new(
        Scanned { name, source, entry, begun }: Scanned<'a>,
        settings: Arc<Settings>,
        options: RunOptions,
        LeafOnDisk { is_missing, leaf }: LeafOnDisk,
        state: Option<LineageState>,
    ) -> Self {
        let is_same_service = |known: &Option<String>| known.is_none() || *known == options.service;
        let reason = match &state {
            None => Some(Reason::New),
            Some(_) if is_missing => Some(Reason::FilesMissing),
            Some(LineageState { pending_since: Some(since), .. }) => Some(Reason::Pending(*since)),
            Some(state) if leaf != state.leaf || state.has_earlier_leaf() => Some(Reason::Renewed),
            Some(LineageState { missing_since: Some(_), .. }) => Some(Reason::FilesBack),
            Some(state) if !is_same_service(&state.service) || state.domains != options.domains => {
                Some(Reason::OptionsChanged)
            }
            Some(_) => None,
        };
        let seen_at = |state: &LineageState| state.edge_checked_at.or(state.last_success).or(state.begun_at);
        let edge_seen_at = state.as_ref().and_then(seen_at);
        let sites = state.map(|state| state.sites).unwrap_or_default();
        let names = Names::of(leaf.iter().flat_map(|leaf| &leaf.names).map(String::as_str));
        Self { name, source, entry, settings, options, leaf, names, sites, edge_seen_at, begun, reason }
    }

    /// Whether it is for a site that its leaf covers, or was deployed to.
    pub(super) fn is_for(&self, site: &SiteState) -> bool {
        self.options.domains.is_empty() || self.options.domains.contains(&site.domain)
    }

    /// Whether the push of its leaf to a site was not confirmed when the last run ended.
    pub(super) fn was_uploaded_to(&self, domain: &Domain) -> bool {
        let leaf = self.leaf.as_ref().map(|leaf| &leaf.fingerprint);
        let mut uploaded = self.sites.iter().filter(|site| site.outcome == Outcome::Uploaded);
        uploaded.any(|site| site.domain == *domain && site.leaf.as_ref() == leaf)
    }

    /// Whether its sites must be verified.
    pub(super) fn is_strict(&self) -> bool {
        self.settings.verify == Verify::Require
    }

    /// The type of its leaf's key, which saves handshakes if it is known.
    pub(super) fn key_type(&self) -> Option<KeyType> {
        let leaf = self.leaf.as_ref()?;
        let on_disk = bundle::load_chain(&self.source.files).ok()?.chain.ok()?.leaf;
        (on_disk.fingerprint() == leaf.fingerprint).then_some(on_disk.public_key.key_type)
    }
}

/// What the certificate file of a lineage holds.
pub(super) struct LeafOnDisk {
    pub(super) is_missing: bool,
    /// `None` if it cannot be read. The recorded one if the file is missing.
    pub(super) leaf: Option<Leaf>,
}

impl LeafOnDisk {
    pub(super) fn read(source: &Source, state: Option<&LineageState>) -> Self {
        let recorded = state.and_then(|state| state.leaf.as_ref());
        let read = bundle::leaf(&source.files, recorded);
        let is_missing = read.as_ref().is_err_and(ReadError::is_missing);
        // Another lineage may supersede one that is missing.
        let leaf = if is_missing { recorded.cloned() } else { read.ok().flatten() };
        Self { is_missing, leaf }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use edgecert_workload::Authority;
    use tempfile::TempDir;

    use super::*;
    use crate::outcome::ChangedRecords;
    use crate::settings;
    use crate::state::fixture::served;
    use crate::state::{Given, Origin};

    /// Runs a test with a directory, and with a configuration that has one entry.
    fn examine(test: impl for<'a> FnOnce(&Path, &Examiner<'a>, &'a LineageEntry)) {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("config.toml");
        std::fs::write(&path, "[[lineage]]\npath = \"/c\"\n").unwrap();
        let env = [("EDGECERT_BASE_URL", "http://127.0.0.1:1"), ("EDGECERT_API_KEY", "key")];
        let (flags, env) = (Layer::default(), env.into_iter().collect());
        let file = settings::read_configuration(Some(&path), &env);
        let layers = Layers::new(&flags, &env, &file);
        let examiner = Examiner::new(&layers, Store::at(directory.path()));
        test(directory.path(), &examiner, &file.lineages[0]);
    }

    #[test]
    fn lineage_forgotten_between_the_passes_is_left_alone() {
        examine(|_, examiner, entry| {
            let settings = examiner.settings(&Layer::default(), None).unwrap();
            let begun = Some(OffsetDateTime::UNIX_EPOCH);
            for (begun, entry, is_left_alone) in
                [(begun, None, true), (begun, Some(entry), false), (None, None, false)]
            {
                let scanned = Scanned { name: "a".to_owned(), source: Source::of_file("/c"), entry, begun };
                let examined = examiner.examine(scanned, &settings);
                assert_eq!(examined.unwrap().is_none(), is_left_alone);
            }
        });
    }

    #[test]
    fn leaf_on_disk_decides_which_options_count() {
        type Edit = fn(&mut LineageState);
        let (deployed, by_hand) = (Some(Verify::Require), Some(Verify::Off));
        let rows: [(bool, bool, Edit, Option<Verify>); 8] = [
            (false, false, |_| {}, deployed),
            (false, false, |state| state.mark_missing(OffsetDateTime::UNIX_EPOCH), deployed),
            (true, false, |_| {}, deployed),
            (true, false, |state| state.mark_missing(OffsetDateTime::UNIX_EPOCH), None),
            (true, false, |state| state.sites[0].outcome = Outcome::Superseded, None),
            (false, true, |_| {}, by_hand),
            (true, true, |_| {}, by_hand),
            (false, true, |state| state.leaf = None, deployed),
        ];
        examine(|directory, examiner, _| {
            let file = directory.join("cert.pem");
            let issued = Authority::new("Test").unwrap().issue(&["a.example".into()]).unwrap();
            std::fs::write(&file, issued.fullchain()).unwrap();
            let (present, missing) = (Source::of_file(file.to_str().unwrap()), Source::of_file("/missing"));
            let leaf = LeafOnDisk::read(&present, None).leaf;
            let options = |origin, verify| {
                let given = Given { settings: Layer { verify, ..Layer::default() }, ..Given::default() };
                RunOptions { given, origin, ..RunOptions::default() }
            };
            for (row, (is_missing, is_pending, edit, expected)) in rows.into_iter().enumerate() {
                let source = if is_missing { &missing } else { &present };
                let begin = |before, options: &RunOptions| {
                    let now = OffsetDateTime::UNIX_EPOCH;
                    LineageState::begin(before, source.clone(), options, leaf.clone(), now)
                };
                let hook = options(Origin::Hook, deployed);
                let mut state = begin(None, &hook);
                state.finish(
                    (0, None),
                    served(),
                    &ChangedRecords::default(),
                    &hook,
                    OffsetDateTime::UNIX_EPOCH,
                );
                if is_pending {
                    state = begin(Some(state), &options(Origin::Hand, by_hand));
                }
                edit(&mut state);
                let on_disk = LeafOnDisk::read(source, Some(&state)).leaf;
                assert_eq!(on_disk, if is_missing { state.leaf.clone() } else { leaf.clone() });
                let (name, source) = ("a".to_owned(), Ok(source.clone()));
                let member = Member { name, source, entry: None, state: Some(state), is_unclaimed: false };
                let scanned = examiner.scan(member).unwrap();
                assert_eq!(scanned.map(|(settings, _)| settings.verify), expected, "row {row}");
            }
        });
    }
}
