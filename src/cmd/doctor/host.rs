//! The host to examine: files below a root, which tests replace, and the environment.

use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use zeroize::Zeroizing;

use crate::env::Env;
use crate::error::shell_word;
use crate::{file, text};

/// A host.
pub(super) struct Host<'a> {
    /// The directory that replaces `/`.
    root: PathBuf,
    pub(super) env: &'a Env,
    /// The user that runs `doctor`.
    pub(super) uid: u32,
}

/// Maximum size of a file of an ACME client. A hook may be a link to the program itself.
const MAX_BYTES: u64 = 256 << 10;

/// Search path of systemd's services.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Search path of cron.
pub(super) const CRON_PATH: &str = "/usr/bin:/bin";

impl<'a> Host<'a> {
    /// This host, or another one below a directory.
    pub(super) fn new(root: PathBuf, env: &'a Env) -> Self {
        Self { root, env, uid: geteuid().as_raw() }
    }

    /// Places a path below the root.
    pub(super) fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Whether systemd runs this host (`sd_booted(3)`).
    pub(super) fn has_systemd(&self) -> bool {
        self.at("/run/systemd/system").is_dir()
    }

    /// The directories where whatever runs the ACME clients finds programs.
    pub(super) fn callers_path(&self) -> &'static str {
        if self.has_systemd() { USUAL_PATH } else { CRON_PATH }
    }

    /// Finds a program in the directories of a search path.
    pub(super) fn find(&self, program: &str, path: &str) -> Option<PathBuf> {
        let mut files = path.split(':').map(|directory| Path::new(directory).join(program));
        files.find(|file| self.is_executable(&self.at(file)))
    }

    /// The full path of edgecert, as a word for a shell: in a usual directory, or else of the program that runs `doctor`.
    pub(super) fn program(&self) -> String {
        let own = || std::env::current_exe().unwrap_or_else(|_| "edgecert".into());
        shell_word(&text::path(&self.find("edgecert", USUAL_PATH).unwrap_or_else(own)))
    }

    /// The target of a link, or the file itself.
    pub(super) fn target(&self, file: &Path) -> PathBuf {
        let target = fs::read_link(file).ok().filter(|target| target.is_absolute());
        target.map_or_else(|| file.to_owned(), |target| self.at(target))
    }

    /// Whether a file, or the target of a link, is executable by someone.
    pub(super) fn is_executable(&self, file: &Path) -> bool {
        let is_program = |file: Metadata| file.is_file() && file.permissions().mode() & 0o111 != 0;
        fs::metadata(self.target(file)).is_ok_and(is_program)
    }
}

/// Reads a file as text; `None` if it cannot be read.
pub(super) fn read_text(path: &Path) -> Option<Zeroizing<String>> {
    file::read_text(path, MAX_BYTES, file::default_deadline()).ok()
}

/// Lists a directory in order; empty if it cannot be listed.
pub(super) fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

/// The file name; empty if there is none or it is not UTF-8.
pub(super) fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
