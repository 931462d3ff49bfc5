//! Which lineages were ever deployed to a site, so that a deployment reads their states and no others.
//!
//! `sites/SERVICE/HOST` in the state directory holds their names, one per line, appended before the first upload. It only
//! says which state files to read; these decide. A name without a state file is ignored.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::store::{create_directory, read_existing};
use super::{Deployments, LineageState, StateError, Store, WriteError, unique_name};
use crate::file;

const DIRECTORY: &str = "sites";

/// Maximum size of a file: some thousand lineages of one site.
const MAX_BYTES: u64 = 1 << 20;

impl Store {
    /// Notes that a lineage is deployed to sites of a service. Must precede the upload: the run may be killed. Returns the
    /// first error, but notes what it can.
    pub(crate) fn claim<'h>(
        &self,
        service: &str,
        hosts: impl IntoIterator<Item = &'h str>,
        lineage: &str,
    ) -> Result<(), WriteError> {
        let (root, mut hosts) = (self.directory.join(DIRECTORY), hosts.into_iter().peekable());
        let directory = root.join(entry_name(service));
        if hosts.peek().is_some() && !directory.exists() {
            if !root.exists() {
                self.claim_recorded(&root)?;
            }
            create_directory(&directory)?;
        }
        hosts.map(|host| add_name(&directory, host, lineage)).fold(Ok(()), Result::and)
    }

    /// Makes the directory from the state files, whole or not at all. Another run may do the same.
    fn claim_recorded(&self, root: &Path) -> Result<(), WriteError> {
        let (states, errors) = self.read_all();
        for error in errors {
            if let StateError::Unreadable(error) | StateError::Directory(error) = error {
                return Err(WriteError::new(root, &io::Error::new(error.kind, error.reason)));
            }
        }
        let temporary = self.directory.join(format!("{DIRECTORY}.{:x}", fastrand::u64(..)));
        let fill = || {
            create_directory(&temporary)?;
            for (name, state) in &states {
                let Some(service) = state.sites_service() else { continue };
                let directory = temporary.join(entry_name(service));
                create_directory(&directory)?;
                state.sites.iter().try_for_each(|site| add_name(&directory, site.domain.host(), name))?;
            }
            fs::rename(&temporary, root).map_err(|error| WriteError::new(root, &error))
        };
        let filled = fill().map_err(|error| WriteError { path: root.to_owned(), ..error });
        // It is gone if it was renamed.
        let _ = fs::remove_dir_all(&temporary);
        if root.exists() { Ok(()) } else { filled }
    }

    /// What lineages deployed to these sites of a service, besides one, whose state is passed. Also returns the errors of
    /// the state files that cannot be used.
    pub(crate) fn neighbours<'h>(
        &self,
        service: &str,
        hosts: impl IntoIterator<Item = &'h str>,
        own: (&str, Option<&LineageState>),
    ) -> (Deployments, Vec<StateError>) {
        let root = self.directory.join(DIRECTORY);
        let (mut deployments, mut errors) = (Deployments::default(), Vec::new());
        let mut or_none = |names: Result<Vec<String>, StateError>| {
            names.map_err(|error| errors.push(error)).unwrap_or_default()
        };
        let names: BTreeSet<String> = if root.exists() {
            let directory = root.join(entry_name(service));
            hosts.into_iter().flat_map(|host| or_none(names_in(&directory.join(entry_name(host))))).collect()
        } else {
            or_none(self.names()).into_iter().collect()
        };
        own.1.iter().for_each(|state| deployments.add(own.0, state));
        for name in names.iter().filter(|name| *name != own.0) {
            if let Some(state) = self.read(name).map_err(|error| errors.push(error)).unwrap_or_default() {
                deployments.add(name, &state);
            }
        }
        (deployments, errors)
    }

    /// Removes the files of sites whose lineages have no state. `claimed` is the number of sites that lineages
    /// were deployed to.
    pub(crate) fn remove_unclaimed(&self, claimed: usize) {
        let entries =
            |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
        let files: Vec<PathBuf> = entries(self.directory.join(DIRECTORY)).flat_map(entries).collect();
        if files.len() <= claimed {
            return;
        }
        for path in files {
            if names_in(&path).is_ok_and(|names| !names.iter().any(|name| self.has(name))) {
                let _ = fs::remove_file(&path);
            }
        }
    }
}

fn entry_name(name: &str) -> String {
    unique_name(name, name.as_bytes())
}

fn names_in(path: &Path) -> Result<Vec<String>, StateError> {
    let bytes = read_existing(path, MAX_BYTES)?.unwrap_or_default();
    let lines = String::from_utf8_lossy(&bytes);
    // A name is that of a file in the state directory.
    Ok(lines.lines().filter(|name| !name.contains('/')).map(str::to_owned).collect())
}

/// Adds a lineage to those of a site, in the directory of its service.
fn add_name(directory: &Path, host: &str, lineage: &str) -> Result<(), WriteError> {
    let path = directory.join(entry_name(host));
    let add = || {
        let mut file = file::open_or_create(&path)?;
        // An empty list would take one more read.
        let mut known = Vec::with_capacity(1 << 10);
        if (&file).take(MAX_BYTES + 1).read_to_end(&mut known)? as u64 > MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if known.split(|byte| *byte == b'\n').any(|line| line == lineage.as_bytes()) {
            return Ok(());
        }
        // A power failure or a full disk may have torn the last line.
        let end = if known.last().is_none_or(|byte| *byte == b'\n') { "" } else { "\n" };
        file.write_all(format!("{end}{lineage}\n").as_bytes())
    };
    add().map_err(|error| WriteError::new(&path, &error))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{DAY_1, ISSUED, SERVICE, deployed, leaf};
    use super::*;

    fn found(store: &Store, host: &str) -> Vec<String> {
        let (deployments, _) = store.neighbours(SERVICE, [host], ("own", None));
        let known = deployments.of_service(SERVICE);
        known.leaves_in(5).into_iter().map(|leaf| leaf.lineage.clone()).collect()
    }

    fn file_of(store: &Store, host: &str) -> PathBuf {
        store.directory.join(DIRECTORY).join(entry_name(SERVICE)).join(entry_name(host))
    }

    #[test]
    fn claims_name_the_states_to_read() {
        let directory = tempfile::TempDir::new().unwrap();
        let store = Store::open(directory.path()).unwrap();
        store.write("first", &deployed(leaf("aa", ISSUED), DAY_1)).unwrap();
        assert_eq!(found(&store, "b.example"), ["first"], "without claims, all states are read");

        store.claim(SERVICE, ["b.example"], "own").unwrap();
        assert_eq!(found(&store, "a.example"), ["first"], "made from the state files");
        assert!(found(&store, "b.example").is_empty());
        let root = store.directory.join(DIRECTORY);
        store.claim_recorded(&root).expect("another run made it");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
        let error = Store::at(Path::new("/proc")).claim(SERVICE, ["a.example"], "own").unwrap_err();
        assert!(error.to_string().starts_with("cannot write /proc/sites: "), "{error}");

        let path = file_of(&store, "b.example");
        assert_eq!(fs::read_to_string(&path).unwrap(), "own\n");
        let outside = format!("../{}/first", directory.path().file_name().unwrap().display());
        fs::write(&path, format!("forgotten\n\n{outside}\nfir")).unwrap();
        store.claim(SERVICE, ["b.example"], "first").unwrap();
        store.claim(SERVICE, ["b.example"], "first").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("forgotten\n\n{outside}\nfir\nfirst\n"));
        assert_eq!(found(&store, "b.example"), ["first"]);
        assert!(found(&store, "../../x").is_empty());

        fs::create_dir(file_of(&store, "c.example")).unwrap();
        let (_, errors) = store.neighbours(SERVICE, ["c.example"], ("own", None));
        assert!(matches!(errors[..], [StateError::Unreadable(_)]));
        let error = store.claim(SERVICE, ["c.example", "d.example"], "own").unwrap_err();
        assert!(error.to_string().ends_with(": it is a directory"), "{error}");
        assert_eq!(fs::read_to_string(file_of(&store, "d.example")).unwrap(), "own\n");
        fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
        store.claim(SERVICE, ["b.example"], "own").unwrap();
        store.claim(SERVICE, ["b.example"], "second").unwrap_err();
    }

    #[test]
    fn unclaimed_sites_are_removed() {
        let directory = tempfile::TempDir::new().unwrap();
        let store = Store::open(directory.path()).unwrap();
        store.write("first", &deployed(leaf("aa", ISSUED), DAY_1)).unwrap();
        store.claim(SERVICE, ["b.example"], "forgotten").unwrap();
        let exists = |host| file_of(&store, host).exists();
        store.remove_unclaimed(2);
        assert!(exists("a.example") && exists("b.example"), "not more files than claimed sites");
        store.remove_unclaimed(1);
        assert!(exists("a.example") && !exists("b.example"));
    }
}
