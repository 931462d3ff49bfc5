//! What happens to the hook's state directory between two runs.

use std::fs;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Rehearsal;
use crate::Error;

impl Rehearsal<'_> {
    pub(super) fn state_dir(&self) -> PathBuf {
        self.files.path().join("state")
    }

    /// Deletes the state directory, as the restart of a container without a volume does.
    pub(super) fn lose_state(&self) -> Result<(), Error> {
        let path = self.state_dir();
        fs::remove_dir_all(&path).map_err(|source| Error::File { path, source })
    }

    /// Sets the times of all runs back, as if so many hours had passed since, and reports it.
    pub(super) fn pass_hours(&mut self, hours: i64) -> Result<(), Error> {
        // Those of state files, and of the record of the last `sync`.
        const TIMES: [&str; 8] = [
            "/begun",
            "/pending_since",
            "/last_success",
            "/edge_checked_at",
            "/result/at",
            "/ended_at",
            "/failing_since",
            "/last_unattended",
        ];
        self.note(format!("{hours} hours pass: the rehearsal sets the times in the state directory back"));
        let directory = self.state_dir();
        let file_error = |source| Error::File { path: directory.clone(), source };
        for entry in fs::read_dir(&directory).map_err(file_error)? {
            let path = entry.map_err(file_error)?.path();
            // Locks are empty.
            let Some(mut state) =
                fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok())
            else {
                continue;
            };
            for pointer in TIMES {
                let Some(value) = state.pointer_mut(pointer) else { continue };
                let time = value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
                if let Some(Ok(earlier)) =
                    time.map(|time| time.checked_sub(SignedDuration::from_hours(hours)))
                {
                    *value = json!(earlier);
                }
            }
            fs::write(&path, state.to_string()).map_err(file_error)?;
        }
        Ok(())
    }
}
