//! State files that cannot be parsed. Each is renamed, so that it can be examined and does not get in the way, and reported
//! in every run until its lineage has a valid state file again or is forgotten.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use time::OffsetDateTime;

use super::StateError;
use super::store::{MAX_BYTES, QUARANTINED};
use crate::{file, text};

/// A state file that cannot be parsed, after it was renamed.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "{} is an invalid state file, so {lineage} {}; deploy it again, or run `edgecert status --forget {lineage}`",
    text::path(path),
    self.consequence()
)]
pub(crate) struct DamagedFile {
    /// Name of the lineage.
    pub(crate) lineage: String,
    pub(crate) path: PathBuf,
    /// Whether a deployment is pending, or may be because the file does not say.
    pub(crate) is_pending: bool,
    /// When the file was written; `None`: unknown.
    pub(crate) written_at: Option<OffsetDateTime>,
}

impl DamagedFile {
    /// Reads a file that was renamed.
    pub(super) fn read(lineage: String, path: PathBuf) -> Self {
        let contents = file::read_regular(&path, MAX_BYTES);
        let is_pending = contents.map_or(true, |bytes| may_be_pending(&bytes));
        let written_at =
            fs::metadata(&path).and_then(|found| found.modified()).ok().map(OffsetDateTime::from);
        Self { lineage, path, is_pending, written_at }
    }

    /// What the file keeps edgecert from doing.
    pub(crate) fn consequence(&self) -> &'static str {
        if self.is_pending { "may be pending and is not retried" } else { "is no longer checked" }
    }
}

/// Renames a file that cannot be parsed.
pub(super) fn quarantine(lineage: &str, path: &Path) -> StateError {
    let renamed_to = path.with_extension(QUARANTINED);
    match fs::rename(path, &renamed_to) {
        Ok(()) => {
            let file = DamagedFile::read(lineage.to_owned(), renamed_to);
            StateError::Quarantined { path: path.to_owned(), file }
        }
        Err(error) => StateError::NotQuarantined { path: path.to_owned(), reason: file::reason(&error) },
    }
}

/// Whether a deployment may be pending. Only a complete file that says otherwise is believed.
fn may_be_pending(bytes: &[u8]) -> bool {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => fields.get("pending_since") != Some(&Value::Null),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_file_denies_that_it_is_pending() {
        let rows: [(&[u8], bool); 8] = [
            (br#"{"version": 1, "pending_since": null, "begun": 5}"#, false),
            (br#"{"version": 1, "pending_since": "2026-01-01T00:00:00Z"}"#, true),
            (br#"{"version": 1}"#, true),
            (br#"{"version": 1, "pending_since": null,"#, true),
            (br#"[{"pending_since": null}]"#, true),
            (b"{\"pending_since\": null, \"x\": \"\xff\"}", true),
            (&[0; 4096], true),
            (b"", true),
        ];
        for (bytes, expected) in rows {
            let is_pending = may_be_pending(bytes);
            assert_eq!(is_pending, expected, "{}", String::from_utf8_lossy(bytes));
            let (lineage, path) = (String::new(), PathBuf::new());
            let file = DamagedFile { lineage, path, is_pending, written_at: None };
            assert_eq!(file.consequence().contains("not retried"), expected);
        }
    }
}
