//! Forgets a lineage: its memory goes, and the locks stay, because another run may hold one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::Deadline;
use crate::error::{AdHocError, CommandError, ErrorKind};
use crate::inventory::{Inventory, Member};
use crate::report::CommandReport;
use crate::settings::Configuration;
use crate::state::{LockError, Store, WriteError};
use crate::text;

/// Another run on the lineage is waited for so long.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// A lineage as it may be named.
struct Known {
    name: String,
    places: Vec<PathBuf>,
    configured: bool,
}

/// Forgets the lineage of this name, directory or certificate.
pub(super) fn run(
    wanted: &str,
    store: Option<&Store>,
    file: &Configuration,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let store = store.ok_or_else(|| unknown(wanted, &[]))?;
    let known = known(store, file, report)?;
    // Damaged memories can be forgotten, too; the visit may have set one aside.
    let (remembered, damaged) = (store.names()?, store.quarantined());
    let mut names: Vec<String> =
        damaged.iter().filter_map(|path| stem(path)).chain(remembered.clone()).collect();
    names.sort_unstable();
    names.dedup();
    let name = find(wanted, &names, &known)?;
    let lock = match store.lock(&name, Deadline::after(LOCK_TIMEOUT)) {
        Ok(lock) => lock,
        Err(LockError::Timeout(timeout)) => return Err(timeout.into()),
        Err(LockError::Write(error)) => return Err(unwritable(&error)),
    };
    if remembered.contains(&name) {
        store.forget(&name).map_err(|error| unwritable(&error))?;
    }
    for path in damaged.iter().filter(|path| stem(path).as_ref() == Some(&name)) {
        let failed = |error| WriteError::new(path, &error);
        std::fs::remove_file(path).map_err(failed).map_err(|error| unwritable(&error))?;
    }
    drop(lock);
    if known.iter().any(|known| known.name == name && known.configured) {
        let note =
            format!("a [[lineage]] of the configuration names {name}: the next sync will deploy it again");
        report.warnings.push(note);
    }
    report.body.text = format!("forgot {name}\n");
    report.body.set("forgotten", name);
    Ok(())
}

/// The lineages with a memory that can be read.
fn known(
    store: &Store,
    file: &Configuration,
    report: &mut CommandReport,
) -> Result<Vec<Known>, CommandError> {
    let mut known = Vec::new();
    let visit = |member: Member<'_>| {
        let configured = member.entry.is_some();
        let Some(memory) = member.memory else { return };
        let places = [Some(memory.source.cert), memory.source.directory].into_iter().flatten().collect();
        known.push(Known { name: member.name, places, configured });
    };
    Inventory::gather(Some(store), file)?.visit(visit, |note| report.warnings.push(note.to_string()));
    Ok(known)
}

fn stem(path: &Path) -> Option<String> {
    Some(path.file_stem()?.to_str()?.to_owned())
}

/// The name of the one that is meant.
fn find(wanted: &str, names: &[String], known: &[Known]) -> Result<String, CommandError> {
    if let Some(name) = names.iter().find(|name| *name == wanted) {
        return Ok(name.clone());
    }
    let forms = [std::path::absolute(wanted).ok(), Path::new(wanted).canonicalize().ok()];
    let is_it = |place: &PathBuf| {
        let same = |form: &PathBuf| form == place || place.canonicalize().is_ok_and(|place| place == *form);
        forms.iter().flatten().any(same)
    };
    let found: Vec<&str> = known
        .iter()
        .filter(|known| known.places.iter().any(is_it))
        .map(|known| known.name.as_str())
        .collect();
    match found.as_slice() {
        [] => Err(unknown(wanted, names)),
        [name] => Ok((*name).to_owned()),
        several => {
            let message = format!("{} holds {}", text::sanitize(wanted), text::list(several));
            Err(AdHocError::new(ErrorKind::NoInput, message, "name one of them; nothing was forgotten")
                .into())
        }
    }
}

fn unknown(wanted: &str, names: &[String]) -> CommandError {
    let message = format!("no lineage {} is remembered; nothing was forgotten", text::sanitize(wanted));
    let hint = match names {
        [] => "none is remembered at all; check --state-dir and EDGECERT_STATE_DIR".into(),
        names => format!("remembered are {}", text::list(names)),
    };
    AdHocError::new(ErrorKind::NoInput, message, hint).into()
}

fn unwritable(error: &WriteError) -> CommandError {
    let message = format!("{error}; nothing was forgotten");
    let hint = "run edgecert as the user that the ACME client runs as";
    AdHocError::new(ErrorKind::Config, message, hint).into()
}
