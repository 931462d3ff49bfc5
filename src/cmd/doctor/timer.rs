//! Checks from the files of systemd and cron whether they run `edgecert sync` regularly.

use std::io;
use std::path::{Path, PathBuf};

use super::finding::{DoctorFinding, Subject};
use super::hook_detection::PROGRAM;
use super::host::{Host, entries, file_name, is_executable, read_text};
use crate::error::ErrorKind;
use crate::text;

const UNIT: &str = "edgecert-sync.timer";

/// Directories of system units, and of the units of all users.
const UNIT_DIRECTORIES: [&str; 4] =
    ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system", "/etc/systemd/user"];

/// System crontabs, and a directory of them.
const CRONTABS: [&str; 3] = ["/etc/crontab", "/etc/anacrontab", "/etc/cron.d"];

/// Directories of users' crontabs, on Debian and elsewhere.
const SPOOLS: [&str; 2] = ["/var/spool/cron/crontabs", "/var/spool/cron"];

/// Directories of scripts that cron runs.
const SCRIPT_DIRECTORIES: [&str; 2] = ["/etc/cron.hourly", "/etc/cron.daily"];

/// Looks for a timer.
pub(super) fn check(host: &Host<'_>) -> DoctorFinding {
    if let Some(path) = systemd(host).or_else(|| crontab(host)).or_else(|| script(host)) {
        return DoctorFinding::ok(Subject::Timer, format!("{} runs edgecert sync", text::path(&path)));
    }
    let is_denied = |path: &PathBuf| {
        std::fs::read_dir(path).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    let unreadable = match SPOOLS.iter().map(|spool| host.at(spool)).find(is_denied) {
        Some(spool) => format!("; {} cannot be read", text::path(&spool)),
        None => String::new(),
    };
    DoctorFinding::fail(
        Subject::Timer,
        ErrorKind::Config,
        format!("no timer runs edgecert sync, so failed deployments are not retried{unreadable}"),
        format!(
            "run `systemctl enable --now {UNIT}`, or add a crontab entry: 17 * * * * root edgecert sync --splay 600"
        ),
    )
}

/// The link that `systemctl enable` makes, unless the unit is masked or gone.
fn systemd(host: &Host<'_>) -> Option<PathBuf> {
    let own = host.env.path("XDG_CONFIG_HOME");
    let own = own.or_else(|| Some(host.env.path("HOME")?.join(".config")));
    let own = own.map(|config| config.join("systemd/user"));
    let directories = UNIT_DIRECTORIES.iter().map(|path| host.at(path)).chain(own);
    directories
        .filter(|directory| std::fs::read_link(directory.join(UNIT)).ok() != Some("/dev/null".into()))
        .map(|directory| directory.join("timers.target.wants").join(UNIT))
        .find(|link| has_target(link, host))
}

/// Whether the target of a link exists. An absolute one is below the root of the host.
fn has_target(link: &Path, host: &Host<'_>) -> bool {
    match std::fs::read_link(link) {
        Ok(target) if target.is_absolute() => target != Path::new("/dev/null") && host.at(target).exists(),
        _ => link.exists(),
    }
}

/// Whether cron reads a file: it skips names with a dot (`cron(8)` of Debian).
fn is_read_by_cron(path: &Path) -> bool {
    !file_name(path).is_empty() && !file_name(path).contains('.') && !file_name(path).ends_with('~')
}

fn crontab(host: &Host<'_>) -> Option<PathBuf> {
    let files = CRONTABS.iter().chain(&SPOOLS).flat_map(|path| {
        let path = host.at(path);
        if path.is_dir() {
            entries(&path).into_iter().filter(|path| is_read_by_cron(path)).collect()
        } else {
            vec![path]
        }
    });
    // A user may be able to read their own crontab in a directory that cannot be listed.
    let user = host.env.path("LOGNAME").or_else(|| host.env.path("USER"));
    let own = user.iter().flat_map(|user| SPOOLS.map(|spool| host.at(spool).join(user)));
    let mut files = files.chain(own);
    files.find(|file| read_text(file).is_some_and(|text| calls_sync(&text)))
}

fn script(host: &Host<'_>) -> Option<PathBuf> {
    let mut scripts = SCRIPT_DIRECTORIES.iter().flat_map(|path| entries(&host.at(path)));
    scripts.find(|path| {
        is_read_by_cron(path) && is_executable(path) && read_text(path).is_some_and(|text| calls_sync(&text))
    })
}

/// Whether a line that is not a comment calls `edgecert … sync`.
fn calls_sync(text: &str) -> bool {
    text.lines().filter(|line| !line.trim_start().starts_with('#')).any(|line| {
        let mut words = line.split(|c: char| c.is_whitespace() || ";|&()'\"".contains(c));
        words.any(|word| file_name(Path::new(word)) == PROGRAM) && words.any(|word| word == "sync")
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::check::Status;
    use crate::env::Env;

    /// Whether a timer is found on a host with this file; `-> TARGET` makes it a link.
    fn is_found(path: &str, text: &str, mode: u32) -> bool {
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
        check(&Host { root: root.path().to_owned(), env: &env }).status == Status::Ok
    }

    #[test]
    fn timers_of_systemd_and_cron_are_found() {
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
            assert_eq!(is_found(path, text, 0o644), wanted, "{path}: {text}");
        }
        let script = "#!/bin/sh\nedgecert sync\n";
        assert!(is_found("etc/cron.hourly/edgecert", script, 0o755));
        assert!(!is_found("etc/cron.hourly/edgecert", script, 0o644), "run-parts skips it");
        assert!(!is_found("etc/cron.hourly/edgecert.sh", script, 0o755), "run-parts skips names with a dot");
    }
}
