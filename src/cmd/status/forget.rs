//! `status --forget`: deletes the state of a lineage. Lock files stay, because another run may hold one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::Deadline;
use crate::error::{CommandError, Diagnostic, ErrorKind};
use crate::hint::Hint;
use crate::inventory::{Inventory, Member};
use crate::report::CommandReport;
use crate::settings::Configuration;
use crate::state::{LockError, StateError, Store, WriteError};
use crate::text;

/// How long to wait for another run on the lineage.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// The reason why a lineage was not forgotten.
#[derive(Debug, thiserror::Error)]
enum ForgetError {
    #[error("there is no state file of a lineage {}; nothing was forgotten", text::path(wanted))]
    Unknown { wanted: PathBuf, known: Vec<String> },
    #[error("{} holds {}; nothing was forgotten", text::path(wanted), text::list(names))]
    Ambiguous { wanted: PathBuf, names: Vec<String> },
    #[error("{0}; nothing was forgotten")]
    Write(#[from] WriteError),
}

impl Diagnostic for ForgetError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unknown { .. } | Self::Ambiguous { .. } => ErrorKind::NoInput,
            Self::Write(_) => ErrorKind::Config,
        }
    }

    fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::Unknown { known, .. } if known.is_empty() => {
                "the state directory is empty; check --state-dir and EDGECERT_STATE_DIR".into()
            }
            Self::Unknown { known, .. } => format!("known lineages: {}", text::list(known)).into(),
            Self::Ambiguous { .. } => "pass the name of one lineage".into(),
            Self::Write(error) => return error.hint(),
        })
    }
}

/// A lineage with a valid state file.
struct Recorded {
    name: String,
    /// Paths that may be given instead of its name.
    paths: Vec<PathBuf>,
    /// The account that it is for, if that differs from the configured one.
    target: Option<String>,
    is_configured: bool,
}

impl Recorded {
    fn name_with_target(&self) -> String {
        self.target.as_ref().map_or(self.name.clone(), |target| format!("{} (for {target})", self.name))
    }
}

/// Forgets the lineage with this name, directory or certificate.
pub(super) fn run(
    wanted: &Path,
    store: Option<&Store>,
    configuration: &Configuration,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let Some(store) = store else {
        return Err(ForgetError::Unknown { wanted: wanted.into(), known: Vec::new() }.into());
    };
    // This may quarantine a file, which can then be forgotten, too.
    let recorded = recorded(store, configuration, report)?;
    let (mut names, damaged) = store.list()?;
    names.extend(damaged.into_iter().map(|file| file.lineage));
    names.sort();
    let name = find(wanted, &names, &recorded)?;
    let lock = match store.lock(&name, Deadline::after(LOCK_TIMEOUT)) {
        Ok(lock) => lock,
        Err(LockError::Timeout(error)) => return Err(error.into()),
        Err(LockError::Write(error)) => return Err(ForgetError::from(error).into()),
    };
    store.forget(&name).map_err(ForgetError::from)?;
    drop(lock);
    if recorded.iter().any(|recorded| recorded.name == name && recorded.is_configured) {
        let warning =
            format!("a [[lineage]] in the configuration names {name}; the next sync deploys it again");
        report.warnings.push(warning);
    }
    report.body.text = format!("forgot {name}\n");
    report.body.set("forgotten", name);
    Ok(())
}

fn recorded(
    store: &Store,
    configuration: &Configuration,
    report: &mut CommandReport,
) -> Result<Vec<Recorded>, CommandError> {
    let mut recorded = Vec::new();
    let visit = |member: Member<'_>| {
        let Some(state) = member.state else { return };
        let target = member.source.ok().and_then(|source| source.target);
        let paths = [Some(state.source.cert), state.source.directory].into_iter().flatten().collect();
        recorded.push(Recorded { name: member.name, paths, target, is_configured: member.entry.is_some() });
    };
    let mut warn = |error: StateError| {
        // It may be the one to forget.
        if !matches!(error, StateError::Damaged(_)) {
            report.warnings.push(error.to_string());
        }
    };
    Inventory::gather(Some(store), configuration)?.visit(visit, &mut warn);
    Ok(recorded)
}

/// Finds the name of the lineage.
fn find(wanted: &Path, names: &[String], recorded: &[Recorded]) -> Result<String, ForgetError> {
    if let Some(name) = names.iter().find(|name| wanted.to_str() == Some(name)) {
        return Ok(name.clone());
    }
    let forms = [std::path::absolute(wanted).ok(), wanted.canonicalize().ok()];
    let is_wanted = |path: &PathBuf| {
        let is_same = |form: &PathBuf| form == path || path.canonicalize().is_ok_and(|path| path == *form);
        forms.iter().flatten().any(is_same)
    };
    let found = recorded.iter().filter(|recorded| recorded.paths.iter().any(is_wanted));
    let found: Vec<&Recorded> = found.collect();
    match found.as_slice() {
        [] => Err(ForgetError::Unknown { wanted: wanted.into(), known: names.to_vec() }),
        [recorded] => Ok(recorded.name.clone()),
        _ => {
            let names = found.into_iter().map(Recorded::name_with_target).collect();
            Err(ForgetError::Ambiguous { wanted: wanted.into(), names })
        }
    }
}
