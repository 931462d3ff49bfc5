//! The configuration file: its contents, and where it is searched for.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use glob::Pattern;

use super::{HeartbeatUrl, Layer, Local, Program, SettingsError, parser};
use crate::env::Env;
use crate::names::Domain;
use crate::{file, text};

/// The variable that names the file.
pub(super) const VARIABLE: &str = "EDGECERT_CONFIG";

/// The first default path.
const SYSTEM: &str = "/etc/edgecert/config.toml";

/// Maximum size of the file, enough for a thousand lineages. Parsing takes a hundred times as much memory.
const MAX_BYTES: u64 = 256 << 10;

/// The configuration file in effect: the valid part of its contents. Empty if there is none.
#[derive(Default)]
pub(crate) struct Configuration {
    pub(crate) path: Option<PathBuf>,
    /// Settings for all lineages.
    pub(crate) layer: Layer,
    /// Where each setting, `on_failure` and `heartbeat_url` is set.
    pub(super) origins: Origins,
    /// The `[[lineage]]` entries, in order.
    pub(crate) lineages: Vec<LineageEntry>,
    /// Program to run after a failure. It is known even if the rest of the file is invalid: that is a failure, too.
    pub(crate) on_failure: Option<Program>,
    /// URL to call after each `sync`. Like `on_failure`, it is known even if other lines of the file are invalid.
    pub(crate) heartbeat_url: Option<HeartbeatUrl>,
    /// The errors, in the order of the file.
    pub(super) faults: Vec<SettingsError>,
}

/// The settings that a source has, valid or not, by their keys.
pub(super) type Origins = BTreeMap<String, Origin>;

/// Where a setting is.
pub(super) struct Origin {
    /// The flag, variable or line.
    pub(super) place: String,
    /// Why it cannot be used.
    pub(super) error: Option<SettingsError>,
}

/// A `[[lineage]]` entry.
pub(crate) struct LineageEntry {
    pub(crate) location: Location,
    /// The account, if the entry names another one than the rest of the file.
    pub(crate) account: Option<String>,
    /// Tells the entries for one lineage apart: the account, with a number if several entries name it. Part of the name
    /// of the state file.
    pub(crate) target: Option<String>,
    /// Sites to deploy to; every covered site if empty.
    pub(crate) domains: Vec<Domain>,
    /// Settings for this lineage only.
    pub(crate) layer: Layer,
    pub(super) origins: Origins,
}

/// Where a lineage is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Directory(PathBuf),
    /// All that match, as [`glob`] defines it.
    Pattern(Pattern),
    Files {
        cert: PathBuf,
        key: PathBuf,
    },
}

impl Configuration {
    /// The file itself, or the first reason why it cannot be used.
    pub(crate) fn require_valid(&self) -> Result<&Self, SettingsError> {
        self.faults.first().map_or(Ok(self), |fault| Err(fault.clone()))
    }

    /// What a run uses of the file. If it is invalid, that is the state directory, because the failure has to be recorded
    /// where later runs look for it, and whom to tell of the failure.
    pub(crate) fn usable(self) -> Self {
        if self.faults.is_empty() {
            return self;
        }
        let local = Local { state_dir: self.layer.local.state_dir, ..Local::default() };
        let layer = Layer { local, ..Layer::default() };
        Self { layer, origins: Origins::new(), lineages: Vec::new(), ..self }
    }
}

impl LineageEntry {
    /// The path or pattern that the entry names.
    pub(crate) fn path(&self) -> &Path {
        match &self.location {
            Location::Directory(path) => path,
            Location::Pattern(pattern) => Path::new(pattern.as_str()),
            Location::Files { cert, .. } => cert,
        }
    }
}

/// Reads the named file, or the first default file that exists.
pub(crate) fn read(named: Option<&Path>, env: &Env) -> Configuration {
    let named = named.map(Path::to_owned).or_else(|| env.path(VARIABLE));
    let Some(path) = named.or_else(|| default_paths(env).find(|path| exists(path))) else {
        return Configuration::default();
    };
    match file::read_text(&path, MAX_BYTES, file::default_deadline()) {
        Ok(text) => parser::parse(&path, &text),
        Err(error) => {
            let faults = vec![error.into()];
            Configuration { path: Some(path), faults, ..Configuration::default() }
        }
    }
}

/// The places of the configuration file, unless one is named.
pub(crate) fn default_paths(env: &Env) -> impl Iterator<Item = PathBuf> {
    let home = env.path("XDG_CONFIG_HOME").or_else(|| env.path("HOME").map(|home| home.join(".config")));
    [Some(PathBuf::from(SYSTEM)), home.map(|home| home.join("edgecert/config.toml"))].into_iter().flatten()
}

/// Whether a default file exists. `HOME` may be inherited from another user; a file that cannot be reached there is
/// ignored.
fn exists(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            log::warn!("ignoring {}: cannot search its directory", text::path(path));
            false
        }
        Err(_) => false,
    }
}
