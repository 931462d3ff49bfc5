//! Where the parts of a lineage are on disk.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::file::recorded_path;

/// Maximum size of a file.
pub const MAX_BYTES: u64 = 1 << 20;

/// The paths of a lineage's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// The full chain, or only the leaf.
    #[serde(with = "recorded_path")]
    pub cert: PathBuf,
    /// Issuers that are not in `cert` (`ca.cer`, `NAME.issuer.crt`). The file may be missing.
    #[serde(with = "recorded_path")]
    pub issuers: Option<PathBuf>,
    /// `None` means that the key is not read: it is not checked, and nothing can be deployed.
    #[serde(with = "recorded_path")]
    pub key: Option<PathBuf>,
}
