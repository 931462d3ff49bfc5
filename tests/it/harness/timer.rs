//! An enabled timer of the user that runs the hook, for `doctor`.

use std::fs;
use std::os::unix::fs::symlink;

use super::Hook;
use super::hook::binary;

/// The directory of the user's units, below the home directory.
pub(crate) const UNITS: &str = ".config/systemd/user";

/// Enables an hourly timer of the user.
pub(crate) fn enable_timer(hook: &Hook) {
    let service = format!("[Service]\nType=oneshot\nExecStart={} sync\n", binary().display());
    hook.write_file(&format!("{UNITS}/edgecert-sync.service"), &service);
    let timer = hook.write_file(&format!("{UNITS}/edgecert-sync.timer"), "[Timer]\nOnCalendar=hourly\n");
    let link = hook.write_file(&format!("{UNITS}/timers.target.wants/edgecert-sync.timer"), "");
    fs::remove_file(&link).unwrap();
    symlink(timer, link).unwrap();
}
