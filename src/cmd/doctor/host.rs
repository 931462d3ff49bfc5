//! The host to examine: files below a root, which tests replace, and the environment.

use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::env::Env;
use crate::file;

/// A host.
pub(super) struct Host<'a> {
    /// The directory that replaces `/`.
    pub(super) root: PathBuf,
    pub(super) env: &'a Env,
    /// The user that runs `doctor`.
    pub(super) uid: u32,
    /// The program that runs `doctor`.
    pub(super) program: PathBuf,
}

/// Whether a command word names a program that can be run; the best status first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ProgramStatus {
    Found,
    /// It depends on a variable.
    Unknown,
    /// It has no path, and is in none of the directories that are searched.
    NotInPath,
    /// There is no executable file at this path.
    Missing,
}

/// Maximum size of a file of an ACME client or of cron.
const MAX_BYTES: u64 = 256 << 10;

const CRON_DAEMONS: [&str; 6] = ["cron", "crond", "fcron", "bcron-start", "bcron-sched", "supercronic"];

/// Search path of systemd's services, and of most programs that call hooks.
pub(super) const USUAL_PATH: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// `USUAL_PATH` as directories to search.
pub(super) fn usual_path() -> Vec<String> {
    USUAL_PATH.map(str::to_owned).to_vec()
}

impl<'a> Host<'a> {
    /// This host, or another one below a directory.
    pub(super) fn new(root: PathBuf, env: &'a Env) -> Self {
        // The program's file may be gone if it was replaced while running.
        let program = std::env::current_exe().ok().filter(|path| path.exists());
        let program = program.unwrap_or_else(|| "edgecert".into());
        Self { root, env, uid: geteuid().as_raw(), program }
    }

    /// Places a path below the root.
    pub(super) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The file that a command word names; `None` if there is none, or if that depends on a variable.
    pub(super) fn find_program(&self, word: &str, path: &[String]) -> Option<PathBuf> {
        if word.starts_with('/') {
            return Some(self.at(word)).filter(|file| file.exists());
        }
        let is_bare = !word.contains(['/', '$', '~']) && !word.is_empty();
        let mut files = path.iter().filter(|_| is_bare).map(|directory| self.at(directory).join(word));
        files.find(|file| is_executable(file))
    }

    /// Replaces the home directory at the beginning of a word, as a shell does.
    pub(super) fn expand_home(&self, word: &str) -> String {
        let rest = ["~/", "$HOME/", "${HOME}/"].into_iter().find_map(|prefix| word.strip_prefix(prefix));
        let home = self.env.path("HOME").and_then(|home| home.into_os_string().into_string().ok());
        rest.zip(home).map_or_else(|| word.to_owned(), |(rest, home)| format!("{home}/{rest}"))
    }

    /// The directories that the shell of the user that runs `doctor` searches.
    pub(super) fn own_path(&self) -> Vec<String> {
        let path = self.env.raw("PATH").and_then(|path| path.to_str()).unwrap_or_default();
        path.split(':').filter(|directory| directory.starts_with('/')).map(str::to_owned).collect()
    }

    /// Where the user that runs `doctor` has a program.
    pub(super) fn locate(&self, name: &str) -> Option<PathBuf> {
        let path = [self.own_path(), usual_path()].concat();
        let mut found = path.iter().map(|directory| Path::new(directory).join(name));
        found.find(|path| is_executable(&self.at(path)))
    }

    /// Where edgecert is: in a directory that is searched, or the program that runs `doctor`.
    pub(super) fn own_program(&self) -> PathBuf {
        self.locate("edgecert").unwrap_or_else(|| self.program.clone())
    }

    /// Whether systemd runs this host (`sd_booted(3)`).
    pub(super) fn has_systemd(&self) -> bool {
        self.at("/run/systemd/system").is_dir()
    }

    /// Whether a cron daemon is installed.
    pub(super) fn has_cron(&self) -> bool {
        let is_installed = |name: &str| self.find_program(name, &usual_path()).is_some();
        // systemd-cron makes timers of crontabs.
        let generator = "systemd/system-generators/systemd-crontab-generator";
        let mut generators = ["/usr/lib", "/lib"].iter().map(|lib| self.at(lib).join(generator));
        CRON_DAEMONS.iter().any(|name| is_installed(name))
            || generators.any(|file| file.exists()) && self.has_systemd()
    }

    /// Whether a command word names an executable.
    pub(super) fn program_status(&self, word: &str, path: &[String]) -> ProgramStatus {
        let is_bare = !word.contains('/');
        match self.find_program(word, path) {
            Some(file) if is_executable(&file) => ProgramStatus::Found,
            // Only a shell expands `~/bin/edgecert` and `$HOME/bin/edgecert`.
            _ if word.contains(['$', '~']) || !is_bare && !word.starts_with('/') => ProgramStatus::Unknown,
            _ if is_bare && path.iter().any(|directory| directory.contains('$')) => ProgramStatus::Unknown,
            _ if is_bare => ProgramStatus::NotInPath,
            _ => ProgramStatus::Missing,
        }
    }
}

/// Reads a file as text; `None` if it cannot be read.
pub(super) fn read_text(path: &Path) -> Option<zeroize::Zeroizing<String>> {
    file::read_text(path, MAX_BYTES).ok()
}

/// Lists a directory in order; empty if it cannot be listed.
pub(super) fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

/// Whether a file is executable by someone.
pub(super) fn is_executable(path: &Path) -> bool {
    let is_program = |file: Metadata| file.is_file() && file.permissions().mode() & 0o111 != 0;
    fs::metadata(path).is_ok_and(is_program)
}

/// The file name; empty if there is none or it is not UTF-8.
pub(super) fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
