//! Hints: what the user can do about a failure. If that depends on the command that failed, the hint holds data, and
//! its text is written once the command is known.

use std::borrow::Cow;
use std::fmt;
use std::io::ErrorKind as Io;

use crate::text::shell_word;

/// What the user can do, in the imperative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// A text that is the same for every command.
    Text(Cow<'static, str>),
    /// A later run may succeed. Holds a clause that is appended as it is, such as `; contact the service`.
    Retry(&'static str),
    /// Deploy with one of these flags.
    Override {
        /// What to do in place of that.
        instead: &'static str,
        /// The flags to choose from; may be empty.
        flags: Vec<Override>,
    },
    /// Deploy without a site.
    OmitDomain {
        /// What to do in place of that.
        instead: String,
        /// The site's domain.
        domain: String,
    },
    /// The account has no site for the certificate.
    NoSite,
}

/// A flag of `edgecert deploy` that overrides a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Override {
    /// The flag, with its dashes.
    pub flag: &'static str,
    /// Its purpose as an infinitive, such as "to replace it".
    pub purpose: &'static str,
}

/// The context of a failure, as far as hints depend on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) command: Command,
    /// Whether `sync` retries the deployment.
    pub(crate) is_recorded: bool,
    /// The flags that name the lineage, such as `--lineage /certs/a`; `None`: none is known.
    pub(crate) lineage: Option<String>,
    /// The hosts given with `--domain`, now or by the recorded run.
    pub(crate) domains: Vec<String>,
}

/// The command that failed, as far as hints depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Command {
    /// `deploy` by hand.
    Deploy,
    /// `deploy` in an ACME client's hook, whose command line the user cannot change for one run.
    Hook,
    /// `plan` or `check`, which send nothing.
    Preview,
    Sync,
    /// A command that does not deploy.
    #[default]
    Other,
}

impl Command {
    /// The command with this name in reports.
    pub(crate) fn of_report(name: &str) -> Self {
        match name {
            "deploy" => Self::Deploy,
            "sync" => Self::Sync,
            _ => Self::Other,
        }
    }

    /// Whether it can send something, so that "nothing was sent" is worth saying.
    pub(crate) fn sends(self) -> bool {
        matches!(self, Self::Deploy | Self::Hook | Self::Sync)
    }
}

impl Place {
    /// The command that deploys the lineage by hand.
    fn deploy(&self) -> String {
        format!("edgecert deploy {}", self.lineage.as_deref().unwrap_or("--lineage DIR"))
    }

    /// How to override a refusal. Other sites than those given were left out on purpose.
    fn pass(&self, Override { flag, purpose }: &Override) -> String {
        if matches!(self.command, Command::Deploy | Command::Preview) {
            return format!("pass {flag} {purpose}");
        }
        let domains = self.domains.iter().flat_map(|host| [" --domain ".to_owned(), shell_word(host)]);
        format!("run `{}{} {flag}` {purpose}", self.deploy(), domains.collect::<String>())
    }

    /// How to leave a site out.
    fn omit(&self, domain: &str) -> String {
        match self.command {
            Command::Sync | Command::Other => {
                format!("remove it from the hook and from `domains`, then run `{}`", self.deploy())
            }
            _ if self.domains.is_empty() => "remove it from `domains` in the configuration file".into(),
            Command::Hook => format!("omit --domain {domain} in the hook"),
            Command::Deploy | Command::Preview => format!("omit --domain {domain}"),
        }
    }
}

impl Hint {
    /// A later run may succeed.
    pub(crate) const RETRY: Self = Self::Retry("");

    /// Formats the hint for a place.
    pub(crate) fn at(&self, place: &Place) -> String {
        match self {
            Self::Text(text) => text.clone().into_owned(),
            Self::Retry(clause) => {
                let retry = if place.is_recorded { SYNC_RETRIES } else { "run the same command again later" };
                format!("{retry}{clause}")
            }
            Self::Override { instead, flags } => {
                flags.iter().fold((*instead).into(), |hint, flag| format!("{hint}, or {}", place.pass(flag)))
            }
            Self::OmitDomain { instead, domain } => format!("{instead}, or {}", place.omit(domain)),
            Self::NoSite => {
                let skip = match place.command {
                    Command::Sync | Command::Other => "set `skip_unmatched = true` in the configuration file",
                    _ => "pass --skip-unmatched in a hook that runs for every lineage",
                };
                format!("create the site, check that the API key is for the right account, or {skip}")
            }
        }
    }
}

impl fmt::Display for Hint {
    /// Writes the text for a command that does not deploy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.at(&Place::default()))
    }
}

impl<T: Into<Cow<'static, str>>> From<T> for Hint {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

const SYNC_RETRIES: &str = "run `edgecert sync` to retry, or enable its timer";

/// How to use another state directory.
pub(crate) const OTHER_STATE_DIR: &str = "name another directory with --state-dir";

/// What to do about a file that cannot be read.
pub(crate) fn read_hint(kind: Io) -> &'static str {
    match kind {
        Io::PermissionDenied => "run edgecert as a user that may read it",
        Io::FileTooLarge => "check the path; the file is too large for what it should hold",
        Io::TimedOut => "check the program that writes to the pipe",
        _ => "check the path",
    }
}

/// What to do about a state directory, or a file in it, that cannot be read. Such a file is kept.
pub(crate) fn state_hint(kind: Io) -> String {
    match kind {
        Io::NotFound | Io::NotADirectory => OTHER_STATE_DIR.to_owned(),
        Io::PermissionDenied => format!("run edgecert as the user that owns it, or {OTHER_STATE_DIR}"),
        _ => format!("examine it and move it away, or {OTHER_STATE_DIR}"),
    }
}

/// What to do about a file or directory that cannot be written; `elsewhere` says how to name another one.
pub(crate) fn write_hint(kind: Io, elsewhere: &str) -> String {
    match kind {
        Io::StorageFull | Io::QuotaExceeded => format!("free some space, or {elsewhere}"),
        Io::PermissionDenied | Io::ReadOnlyFilesystem => {
            format!("make the directory writable for this user, or {elsewhere}")
        }
        _ => elsewhere.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_follow_the_place() {
        let place = |command, is_recorded| Place {
            command,
            is_recorded,
            lineage: Some("--lineage /certs/a".into()),
            domains: vec!["a.example".into(), "*.example".into()],
        };
        let flags = vec![
            Override { flag: "--allow-older", purpose: "to go back to it" },
            Override { flag: "--rebind", purpose: "to keep both" },
        ];
        let older = Hint::Override { instead: "renew it", flags };
        let omit = Hint::OmitDomain { instead: "renew it".into(), domain: "a.example".into() };
        let rows = [
            (&Hint::RETRY, Command::Deploy, true, "run `edgecert sync` to retry, or enable its timer"),
            (&Hint::RETRY, Command::Deploy, false, "run the same command again later"),
            (&Hint::RETRY, Command::Other, false, "run the same command again later"),
            (&Hint::RETRY, Command::Sync, true, "run `edgecert sync` to retry, or enable its timer"),
            (
                &older,
                Command::Preview,
                false,
                "renew it, or pass --allow-older to go back to it, or pass --rebind to keep both",
            ),
            (
                &older,
                Command::Hook,
                true,
                "renew it, or run `edgecert deploy --lineage /certs/a --domain a.example --domain '*.example' --allow-older` to go back to it, or run `edgecert deploy --lineage /certs/a --domain a.example --domain '*.example' --rebind` to keep both",
            ),
            (&omit, Command::Preview, false, "renew it, or omit --domain a.example"),
            (
                &omit,
                Command::Sync,
                true,
                "renew it, or remove it from the hook and from `domains`, then run `edgecert deploy --lineage /certs/a`",
            ),
        ];
        for (hint, command, is_recorded, expected) in rows {
            assert_eq!(hint.at(&place(command, is_recorded)), expected, "{command:?}");
        }
        assert!(older.to_string().contains("`edgecert deploy --lineage DIR --allow-older`"));
    }

    #[test]
    fn only_denied_permission_suggests_another_user() {
        let kinds = [
            Io::NotFound,
            Io::NotADirectory,
            Io::InvalidFilename,
            Io::IsADirectory,
            Io::FileTooLarge,
            Io::InvalidData,
            Io::TimedOut,
            Io::Other,
            Io::PermissionDenied,
        ];
        for kind in kinds {
            let is_denied = kind == Io::PermissionDenied;
            for hint in [read_hint(kind), &state_hint(kind)] {
                assert_eq!(hint.contains("user"), is_denied, "{kind}: {hint}");
            }
        }
    }

    #[test]
    fn only_a_full_disk_suggests_making_room() {
        let rows = [
            (Io::StorageFull, "free some space, or X"),
            (Io::QuotaExceeded, "free some space, or X"),
            (Io::PermissionDenied, "make the directory writable for this user, or X"),
            (Io::ReadOnlyFilesystem, "make the directory writable for this user, or X"),
            (Io::NotFound, "X"),
            (Io::NotADirectory, "X"),
            (Io::Other, "X"),
        ];
        for (kind, expected) in rows {
            assert_eq!(write_hint(kind, "X"), expected, "{kind}");
        }
    }
}
