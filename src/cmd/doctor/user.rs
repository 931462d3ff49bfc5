//! The users of the host, and whether one of them can run `sync`: with the state of the hooks, and with the API key.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::host::{Host, read_text};
use crate::text;

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) uid: u32,
    groups: Vec<u32>,
    home: PathBuf,
}

/// What `sync` needs: the state that the hooks write, and the API key.
#[derive(Clone, Debug, Default)]
pub(super) struct SyncFiles {
    /// The state directory; `None` if there is none.
    pub(super) state_dir: Option<PathBuf>,
    /// Whether no flag, variable or file sets it, so that each user has a different one.
    pub(super) is_default: bool,
    pub(super) api_key_file: Option<PathBuf>,
}

/// The state directory of root, unless the settings name one.
const SYSTEM_STATE_DIR: &str = "/var/lib/edgecert";

const READ: u32 = 0o4;
const WRITE: u32 = 0o7;

impl User {
    /// Finds a user by name or number.
    pub(super) fn find(host: &Host<'_>, wanted: &str) -> Option<Self> {
        let passwd = read_text(&host.at("/etc/passwd"))?;
        let mut users = passwd.lines().filter_map(Self::parse);
        let user = users.find(|user| user.name == wanted || wanted.parse() == Ok(user.uid))?;
        let group_file = read_text(&host.at("/etc/group"));
        let lines = group_file.iter().flat_map(|text| text.lines());
        let groups = user.groups.iter().copied().chain(lines.filter_map(|line| group_with(line, &user.name)));
        Some(Self { groups: groups.collect(), ..user })
    }

    /// The user that runs `doctor`.
    pub(super) fn own(host: &Host<'_>) -> Self {
        Self::find(host, &host.uid.to_string()).unwrap_or_else(|| Self {
            name: host.uid.to_string(),
            uid: host.uid,
            groups: Vec::new(),
            home: host.env.path("HOME").unwrap_or_default(),
        })
    }

    /// Parses a line of `/etc/passwd`.
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(':');
        let (name, uid, gid) = (fields.next()?, fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        let home = fields.nth(1).unwrap_or_default().into();
        Some(Self { name: name.to_owned(), uid, groups: vec![gid], home })
    }

    /// The state directory that this user has without settings.
    fn default_state_dir(&self) -> PathBuf {
        if self.uid == 0 { SYSTEM_STATE_DIR.into() } else { self.home.join(".local/state/edgecert") }
    }

    /// Why this user cannot run `sync` for the lineages of the user that runs `doctor`. `named` is the state directory
    /// that the call names, `prepared` the one that systemd creates for it.
    pub(super) fn check(
        &self,
        files: &SyncFiles,
        host: &Host<'_>,
        named: Option<PathBuf>,
        prepared: Option<PathBuf>,
    ) -> Result<(), String> {
        let Some(wanted) = &files.state_dir else { return Ok(()) };
        let other = || if self.uid == host.uid { wanted.clone() } else { self.default_state_dir() };
        let default = || if files.is_default { prepared.unwrap_or_else(other) } else { wanted.clone() };
        let used = named.unwrap_or_else(default);
        if !is_same(&used, wanted) {
            let [used, wanted] = [&used, wanted].map(|path| text::path(path));
            return Err(format!("has the state directory {used} instead of {wanted}"));
        }
        if !self.can_access(nearest(wanted), WRITE) {
            return Err(format!("cannot write to the state directory {}", text::path(wanted)));
        }
        match files.api_key_file.as_ref().filter(|file| !self.can_access(file, READ)) {
            Some(file) => Err(format!("cannot read the API key file {}", text::path(file))),
            None => Ok(()),
        }
    }

    /// Whether the mode of a file gives this user all of these permissions.
    fn can_access(&self, path: &Path, wanted: u32) -> bool {
        let Ok(file) = path.metadata() else { return self.uid == 0 };
        let shift = if file.uid() == self.uid {
            6
        } else if self.groups.contains(&file.gid()) {
            3
        } else {
            0
        };
        self.uid == 0 || (file.mode() >> shift) & wanted == wanted
    }
}

/// The number of the group in a line of `/etc/group`, if the user is a member.
fn group_with(line: &str, user: &str) -> Option<u32> {
    let mut fields = line.split(':').skip(2);
    let (gid, members) = (fields.next()?.parse().ok()?, fields.next()?);
    members.split(',').any(|member| member == user).then_some(gid)
}

/// A path, or the nearest existing one above it.
fn nearest(path: &Path) -> &Path {
    path.ancestors().find(|path| path.exists()).unwrap_or(path)
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(one) == real(other)
}
