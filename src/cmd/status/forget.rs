//! `status --forget`: deletes the state of a lineage. Lock files stay, because another run may hold one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::Deadline;
use crate::deploy::locked;
use crate::error::{CommandError, Diagnostic, ErrorKind, Result};
use crate::report::Report;
use crate::runtime::Runtime;
use crate::state::{LineageState, Store};
use crate::text;

/// How long to wait for another run on the lineage.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Forgets the lineage with this name, directory or certificate.
pub(super) fn run(wanted: &Path, store: Option<&Store>, report: &mut Report) -> Result<()> {
    let Some(store) = store else { return Err(unknown(wanted, &[])) };
    // Reading may quarantine a file, which can then be forgotten, too. `status` reports the errors.
    let (recorded, _) = store.read_all();
    let (mut names, damaged) = store.list()?;
    names.extend(damaged.into_iter().map(|file| file.lineage));
    names.sort();
    let name = find(wanted, &names, &recorded)?;
    let lock = store.lock(name, Deadline::after(LOCK_TIMEOUT));
    let _lock = Runtime::without_network()?.block_on(lock)?.ok_or_else(|| locked(name))?;
    store.forget(name).map_err(|error| error.diagnose().with_consequence("nothing was forgotten"))?;
    report.push(format!("forgot {name}"));
    report.set("forgotten", name);
    Ok(())
}

/// Finds the name of the lineage.
fn find<'a>(wanted: &Path, names: &'a [String], states: &'a [(String, LineageState)]) -> Result<&'a String> {
    if let Some(name) = names.iter().find(|name| wanted.to_str() == Some(name)) {
        return Ok(name);
    }
    let resolve = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    let is_wanted = |path: &PathBuf| resolve(path) == resolve(wanted);
    let found = states.iter().filter(|(_, LineageState { source, .. })| {
        is_wanted(&source.files.cert) || source.directory.as_ref().is_some_and(is_wanted)
    });
    match found.collect::<Vec<_>>().as_slice() {
        [] => Err(unknown(wanted, names)),
        [(name, _)] => Ok(name),
        several => {
            // The accounts that the lineage is for, if they differ from the configured one.
            let name = |(name, state): &&(String, LineageState)| match &state.source.target {
                Some(target) => format!("{name} (for {target})"),
                None => name.clone(),
            };
            let (wanted, names) = (text::path(wanted), text::list(several.iter().map(name)));
            let message = format!("{wanted} holds {names}; nothing was forgotten");
            Err(CommandError::new(ErrorKind::NoInput, message).hint("pass the name of one lineage"))
        }
    }
}

fn unknown(wanted: &Path, known: &[String]) -> CommandError {
    let hint = match known {
        [] => "the state directory is empty; check --state-dir and EDGECERT_STATE_DIR".to_owned(),
        known => format!("known lineages: {}", text::list(known)),
    };
    let wanted = text::path(wanted);
    let message = format!("there is no state file of a lineage {wanted}; nothing was forgotten");
    CommandError::new(ErrorKind::NoInput, message).hint(hint)
}
