//! Changes to state files, as if time had passed.

use std::fs;
use std::path::{Path, PathBuf};

use edgecert_sandbox::set_times_back;
use serde_json::Value;

/// The default of `verify_every`, in seconds.
pub(crate) const DAY: i64 = 86_400;

/// The state files in a directory.
pub(crate) fn state_files(state: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(state).unwrap().map(|file| file.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|ending| ending == "json")).collect()
}

/// Edits a state file.
pub(crate) fn edit_state(file: &Path, change: impl FnOnce(&mut Value)) {
    let mut state = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    change(&mut state);
    fs::write(file, state.to_string()).unwrap();
}

/// Sets the times of all runs in a state directory back by this many seconds.
pub(crate) fn set_back(state: &Path, seconds: i64) {
    for file in state_files(state) {
        set_back_file(&file, seconds);
    }
}

/// Sets the times of all runs in a state file, or in the record of a `sync`, back by this many seconds.
pub(crate) fn set_back_file(file: &Path, seconds: i64) {
    edit_state(file, |state| set_times_back(state, seconds).unwrap());
}
