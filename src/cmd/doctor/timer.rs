//! Whether something calls `edgecert sync` from time to time: systemd or cron, as their files tell. No other program is
//! asked.

use std::io;
use std::path::{Path, PathBuf};

use super::finding::{Finding, Subject};
use super::hook_detection::PROGRAM;
use super::host::{Host, entries, is_executable, name, text};
use crate::error::ErrorKind;

const UNIT: &str = "edgecert-sync.timer";

/// Where units of the system are enabled, and those of every user.
const UNITS: [&str; 4] =
    ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system", "/etc/systemd/user"];

/// Crontabs with a line for each job; a directory stands for all files in it.
const CRONTABS: [&str; 3] = ["/etc/crontab", "/etc/anacrontab", "/etc/cron.d"];

/// Crontabs of users, by the name of the user; Debian's and others'.
const SPOOLS: [&str; 2] = ["/var/spool/cron/crontabs", "/var/spool/cron"];

/// Directories of scripts.
const SCRIPTS: [&str; 2] = ["/etc/cron.hourly", "/etc/cron.daily"];

/// Looks at all of them.
pub(super) fn look(host: &Host<'_>) -> Finding {
    let found = systemd(host).or_else(|| crontab(host)).or_else(|| script(host));
    if let Some(place) = found {
        return Finding::ok(Subject::Timer, format!("{} runs edgecert sync", crate::text::path(&place)));
    }
    let spools = SPOOLS.iter().map(|spool| host.at(spool));
    let denied = |path: &PathBuf| {
        std::fs::read_dir(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    let unseen = match spools.into_iter().find(denied) {
        Some(spool) => format!("; {} cannot be looked at", crate::text::path(&spool)),
        None => String::new(),
    };
    Finding::fail(
        Subject::Timer,
        ErrorKind::Config,
        format!("no timer runs edgecert sync, so what fails once is never tried again{unseen}"),
        format!(
            "systemctl enable --now {UNIT}, or a line for cron: 17 * * * * root edgecert sync --splay 600"
        ),
    )
}

/// The link that `systemctl enable` makes, unless what it leads to is gone or masked.
fn systemd(host: &Host<'_>) -> Option<PathBuf> {
    let own = host.env.path("XDG_CONFIG_HOME");
    let own = own.or_else(|| Some(host.env.path("HOME")?.join(".config")));
    let own = own.map(|config| config.join("systemd/user"));
    let directories = UNITS.iter().map(|path| host.at(path)).chain(own);
    directories
        .filter(|directory| std::fs::read_link(directory.join(UNIT)).ok() != Some("/dev/null".into()))
        .map(|directory| directory.join("timers.target.wants").join(UNIT))
        .find(|link| leads_somewhere(link, host))
}

/// An absolute link is one below the root that is looked at.
fn leads_somewhere(link: &Path, host: &Host<'_>) -> bool {
    match std::fs::read_link(link) {
        Ok(target) if target.is_absolute() => target != Path::new("/dev/null") && host.at(target).exists(),
        _ => link.exists(),
    }
}

/// Cron leaves out files with a dot in their name (Debian's `cron(8)`).
fn is_seen_by_cron(path: &Path) -> bool {
    !name(path).is_empty() && !name(path).contains('.') && !name(path).ends_with('~')
}

fn crontab(host: &Host<'_>) -> Option<PathBuf> {
    let files = CRONTABS.iter().chain(&SPOOLS).flat_map(|path| {
        let path = host.at(path);
        if path.is_dir() {
            entries(&path).into_iter().filter(|path| is_seen_by_cron(path)).collect()
        } else {
            vec![path]
        }
    });
    // A directory cannot be listed by those who may read their own file in it.
    let user = host.env.path("LOGNAME").or_else(|| host.env.path("USER"));
    let own = user.iter().flat_map(|user| SPOOLS.map(|spool| host.at(spool).join(user)));
    let mut files = files.chain(own);
    files.find(|file| text(file).is_some_and(|text| calls_sync(&text)))
}

fn script(host: &Host<'_>) -> Option<PathBuf> {
    let mut scripts = SCRIPTS.iter().flat_map(|path| entries(&host.at(path)));
    scripts.find(|path| {
        is_seen_by_cron(path) && is_executable(path) && text(path).is_some_and(|text| calls_sync(&text))
    })
}

/// Whether a line that is no comment calls `edgecert … sync`.
fn calls_sync(text: &str) -> bool {
    text.lines().filter(|line| !line.trim_start().starts_with('#')).any(|line| {
        let mut words = line.split(|c: char| c.is_whitespace() || ";|&()'\"".contains(c));
        words.any(|word| name(Path::new(word)) == PROGRAM) && words.any(|word| word == "sync")
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::check::Status;
    use crate::env::Env;

    /// Whether a timer is found on a host with this one file.
    fn found(path: &str, text: &str, mode: u32) -> bool {
        let root = tempfile::TempDir::new().unwrap();
        let file = root.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        match text.strip_prefix("-> ") {
            Some(target) => symlink(target, &file).unwrap(),
            None => fs::write(&file, text).unwrap(),
        }
        if !text.starts_with("->") {
            fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
        }
        let unit = root.path().join("lib/systemd/system").join(UNIT);
        fs::create_dir_all(unit.parent().unwrap()).unwrap();
        fs::write(unit, "").unwrap();
        let env: Env = [("LOGNAME", "web")].into_iter().collect();
        look(&Host { root: root.path().to_owned(), env: &env }).status == Status::Ok
    }

    #[test]
    fn what_runs_sync_is_found_in_the_files_of_systemd_and_cron() {
        let rows = [
            (
                "etc/systemd/system/timers.target.wants/edgecert-sync.timer",
                "-> /lib/systemd/system/edgecert-sync.timer",
                true,
            ),
            (
                "etc/systemd/system/timers.target.wants/edgecert-sync.timer",
                "-> ../../../../lib/systemd/system/edgecert-sync.timer",
                true,
            ),
            (
                "etc/systemd/system/timers.target.wants/edgecert-sync.timer",
                "-> /lib/systemd/system/gone.timer",
                false,
            ),
            ("etc/systemd/system/timers.target.wants/edgecert-sync.timer", "-> /dev/null", false),
            (
                "etc/systemd/system/timers.target.wants/certbot.timer",
                "-> /lib/systemd/system/edgecert-sync.timer",
                false,
            ),
            ("etc/systemd/system/edgecert-sync.timer", "enabled nowhere", false),
            ("etc/crontab", "17 * * * * root /usr/local/bin/edgecert sync --splay 600\n", true),
            ("etc/crontab", "# 17 * * * * root edgecert sync\n", false),
            ("etc/crontab", "17 * * * * root edgecert status\n", false),
            ("etc/crontab", "17 * * * * root edgecert-old sync\n", false),
            ("etc/cron.d/edgecert", "17 * * * * root edgecert --config /c sync\n", true),
            ("etc/cron.d/edgecert.cron", "17 * * * * root edgecert sync\n", false),
            ("var/spool/cron/crontabs/web", "17 * * * * edgecert sync\n", true),
            ("var/spool/cron/web", "17 * * * * edgecert sync\n", true),
        ];
        for (path, text, wanted) in rows {
            assert_eq!(found(path, text, 0o644), wanted, "{path}: {text}");
        }
        let script = "#!/bin/sh\nedgecert sync\n";
        assert!(found("etc/cron.hourly/edgecert", script, 0o755));
        assert!(!found("etc/cron.hourly/edgecert", script, 0o644), "run-parts leaves it out");
        assert!(!found("etc/cron.hourly/edgecert.sh", script, 0o755), "and this one, too");
    }
}
