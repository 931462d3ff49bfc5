//! What happens to the hook's state directory between two runs.

use std::fs;
use std::io;
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
        self.note(format!("{hours} hours pass: the rehearsal sets the times in the state directory back"));
        let directory = self.state_dir();
        let file_error = |source| Error::File { path: directory.clone(), source };
        for entry in fs::read_dir(&directory).map_err(file_error)? {
            let path = entry.map_err(file_error)?.path();
            // Locks are empty.
            let Some(mut state) = fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok())
            else {
                continue;
            };
            set_times_back(&mut state, 3600 * hours).map_err(|error| file_error(io::Error::other(error)))?;
            fs::write(&path, state.to_string()).map_err(file_error)?;
        }
        Ok(())
    }
}

/// Sets the times of all runs in a state file of the hook, or in its record of a `sync`, back by this many seconds. Fails
/// if one of them is no time.
pub fn set_times_back(state: &mut Value, seconds: i64) -> Result<(), jiff::Error> {
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
    for pointer in TIMES {
        let Some(value) = state.pointer_mut(pointer) else { continue };
        if let Some(text) = value.as_str() {
            *value = json!(text.parse::<Timestamp>()?.checked_sub(SignedDuration::from_secs(seconds))?);
        }
    }
    Ok(())
}
