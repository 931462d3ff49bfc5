//! `status --forget`: deletes the state of a lineage. Lock files stay, because another run may hold one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::Deadline;
use crate::error::{CommandError, Diagnostic, ErrorKind};
use crate::inventory::{Inventory, Member};
use crate::report::Report;
use crate::runtime::Runtime;
use crate::settings::Configuration;
use crate::state::Store;
use crate::text;

/// How long to wait for another run on the lineage.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Forgets the lineage with this name, directory or certificate.
pub(super) fn run(
    wanted: &Path,
    store: Option<&Store>,
    configuration: &Configuration,
    report: &mut Report,
) -> Result<(), CommandError> {
    let Some(store) = store else { return Err(unknown(wanted, &[])) };
    let mut members = Vec::new();
    // This may quarantine a file, which can then be forgotten, too. `status` reports the errors.
    Inventory::gather(Some(store), configuration)?.visit(|member| members.push(member), drop);
    let (mut names, damaged) = store.list()?;
    names.extend(damaged.into_iter().map(|file| file.lineage));
    names.sort();
    let name = find(wanted, &names, &members)?;
    let locked = store.lock(name, Deadline::after(LOCK_TIMEOUT));
    let _lock = Runtime::without_network()?.block_on(locked)?;
    store.forget(name).map_err(|error| error.diagnose().with_consequence("nothing was forgotten"))?;
    report.push(format!("forgot {name}"));
    report.set("forgotten", name);
    Ok(())
}

/// Finds the name of the lineage.
fn find<'a>(
    wanted: &Path,
    names: &'a [String],
    members: &'a [Member<'_>],
) -> Result<&'a String, CommandError> {
    if let Some(name) = names.iter().find(|name| wanted.to_str() == Some(name)) {
        return Ok(name);
    }
    let resolve = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    let is_wanted = |path: &PathBuf| resolve(path) == resolve(wanted);
    let found = members.iter().filter(|member| {
        let source = member.state.as_ref().map(|state| &state.source);
        source.is_some_and(|source| {
            is_wanted(&source.files.cert) || source.directory.as_ref().is_some_and(is_wanted)
        })
    });
    match found.collect::<Vec<_>>().as_slice() {
        [] => Err(unknown(wanted, names)),
        [member] => Ok(&member.name),
        several => {
            // The accounts that the lineage is for, if they differ from the configured one.
            let target = |member: &Member<'_>| member.source.as_ref().ok()?.target.clone();
            let name = |member: &&Member<'_>| match target(member) {
                Some(target) => format!("{} (for {target})", member.name),
                None => member.name.clone(),
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
