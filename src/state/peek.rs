//! Reads state files for completions: only what they offer, regardless of the rest, and without changing the directory.

use std::path::{Path, PathBuf};

use super::Store;
use super::lineage_state::SourceState;
use crate::file;

/// Number and size of the files that are read, so that completions stay quick.
const MAX_FILES: usize = 1000;
const MAX_BYTES: u64 = 256 << 10;

/// Part of a state file.
#[derive(serde::Deserialize)]
struct Peek {
    #[serde(rename = "lineage")]
    source: SourceState,
    sites: Vec<PeekedSite>,
}

#[derive(serde::Deserialize)]
struct PeekedSite {
    domain: String,
}

/// A lineage that was deployed before.
pub(crate) struct PeekedLineage {
    pub(crate) directory: PathBuf,
    /// The sites of its last deployment, as the service spelled them.
    pub(crate) domains: Vec<String>,
}

impl Store {
    /// Reads the lineages that were deployed before. What cannot be read is left out.
    pub(crate) fn peek(&self) -> impl Iterator<Item = PeekedLineage> {
        let names = self.names().unwrap_or_default().into_iter().take(MAX_FILES);
        names.filter_map(|name| {
            let bytes = file::read_regular(&self.file(&name, super::store::EXTENSION), MAX_BYTES).ok()?;
            let Peek { source, sites } = serde_json::from_slice(&bytes).ok()?;
            let directory = source.directory.or_else(|| source.cert.parent().map(Path::to_owned))?;
            Some(PeekedLineage { directory, domains: sites.into_iter().map(|site| site.domain).collect() })
        })
    }
}
