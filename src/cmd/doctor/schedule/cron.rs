//! The jobs of cron: crontabs of the system and of users, and directories of scripts.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::job::{Job, JobUser, Scheduler};
use super::runs::{Field, Notation, Runs};
use crate::cmd::doctor::calls::{Call, CallFinder, Program, UnitCalls};
use crate::cmd::doctor::host::{Host, entries, file_name, is_executable, read_text, usual_path};

/// System crontabs, and a directory of them. Their lines name a user.
const SYSTEM_CRONTABS: [&str; 2] = ["/etc/crontab", "/etc/cron.d"];

/// Directories of users' crontabs, each named after its user.
pub(in crate::cmd::doctor) const SPOOLS: [&str; 3] =
    ["/var/spool/cron/crontabs", "/var/spool/cron", "/etc/crontabs"];

/// Directories of scripts that cron runs as root, and how many times a day.
const SCRIPT_DIRECTORIES: [(&str, u32); 5] = [
    ("/etc/cron.hourly", 24),
    ("/etc/periodic/15min", 96),
    ("/etc/periodic/hourly", 24),
    ("/etc/cron.daily", 1),
    ("/etc/periodic/daily", 1),
];

/// The search path of cron itself, which crontabs may replace. It lacks /usr/local/bin.
const PATH: &str = "/usr/bin:/bin";

const FIELDS: [Notation; 5] = [
    field(0, 59, &[]),
    field(0, 23, &[]),
    field(1, 31, &[]),
    field(1, 12, &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]),
    field(0, 7, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

const fn field(min: u32, max: u32, names: &'static [&'static str]) -> Notation {
    Notation { min, max, names, ranges: &["-"], repeats_values: false }
}

/// All jobs that call a program.
pub(super) fn jobs(host: &Host<'_>, wanted: Program, calls_of_unit: UnitCalls<'_>) -> Vec<Job> {
    let files =
        |paths: &[&str]| -> Vec<PathBuf> { paths.iter().flat_map(|path| crontabs(&host.at(path))).collect() };
    // A user may be able to read their own crontab in a directory that cannot be listed.
    let user = host.env.path("LOGNAME").or_else(|| host.env.path("USER"));
    let own = user.iter().flat_map(|user| SPOOLS.map(|spool| host.at(spool).join(user)));
    let mut users = files(&SPOOLS);
    users.extend(own);
    users.sort();
    users.dedup();
    let system = files(&SYSTEM_CRONTABS).into_iter().map(|file| (file, true));
    let tables = system.chain(users.into_iter().map(|file| (file, false)));
    let mut jobs: Vec<Job> = tables
        .flat_map(|(file, is_system)| Crontab { file, is_system, host, wanted, calls_of_unit }.jobs())
        .collect();
    jobs.extend(
        SCRIPT_DIRECTORIES.iter().flat_map(|(directory, runs)| scripts(host, wanted, directory, *runs)),
    );
    jobs
}

/// A crontab, or those in a directory.
fn crontabs(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        entries(path).into_iter().filter(|path| has_cron_name(path)).collect()
    } else {
        vec![path.to_owned()]
    }
}

/// Whether cron reads a file of this name: it skips those with a dot (`cron(8)` of Debian).
fn has_cron_name(path: &Path) -> bool {
    !file_name(path).is_empty() && !file_name(path).contains('.') && !file_name(path).ends_with('~')
}

fn scripts(host: &Host<'_>, wanted: Program, directory: &str, runs: u32) -> Vec<Job> {
    let scripts = entries(&host.at(directory)).into_iter();
    let scripts = scripts.filter(|path| has_cron_name(path) && is_executable(path));
    let path = usual_path();
    let finder = CallFinder { host, wanted, path: &path, unit_calls: None };
    scripts
        .flat_map(|script| {
            let inside = Path::new("/").join(script.strip_prefix(&host.root).unwrap_or(&script));
            let job = |call: Call| Job {
                place: script.clone(),
                scheduler: Scheduler::Cron,
                runs: Runs::daily(runs),
                path: path.clone(),
                user: JobUser::Named("root".into()),
                prepared_state_dir: None,
                is_ignored: false,
                call,
            };
            finder.in_entry(&inside).into_iter().map(job).collect::<Vec<_>>()
        })
        .collect()
}

struct Crontab<'a> {
    file: PathBuf,
    /// Whether its lines name a user.
    is_system: bool,
    host: &'a Host<'a>,
    wanted: Program,
    calls_of_unit: UnitCalls<'a>,
}

impl Crontab<'_> {
    fn jobs(&self) -> Vec<Job> {
        let Some(text) = read_text(&self.file).filter(|_| self.is_accepted()) else { return Vec::new() };
        let mut variables: Vec<(String, String)> = Vec::new();
        let mut jobs: Vec<Job> = Vec::new();
        let is_ignored = self.is_ignored(&text);
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            match variable(line) {
                Some(variable) => variables.push(variable),
                None => jobs.extend(self.line_jobs(line, &variables)),
            }
        }
        for job in &mut jobs {
            job.is_ignored = is_ignored;
        }
        jobs
    }

    /// Whether cron uses a system crontab: it refuses one that others can write.
    fn is_accepted(&self) -> bool {
        let mode = self.file.metadata().map(|file| file.permissions().mode());
        !self.is_system || mode.is_ok_and(|mode| mode & 0o022 == 0)
    }

    /// Whether cron ignores a crontab because its last line has no line feed: Debian's ignores all of it, cronie that
    /// line. busybox, whose crontabs are in /etc/crontabs, accepts it.
    fn is_ignored(&self, text: &str) -> bool {
        let last = text.lines().next_back().unwrap_or_default().trim();
        let is_entry = !last.is_empty() && !last.starts_with('#');
        is_entry && !text.ends_with('\n') && !self.host.at("/etc/crontabs").is_dir()
    }

    fn line_jobs(&self, line: &str, variables: &[(String, String)]) -> Vec<Job> {
        let Some((runs, rest)) = schedule(line) else { return Vec::new() };
        let (user, command) = if self.is_system {
            let (user, command) = rest.split_once(char::is_whitespace).unwrap_or_default();
            // FreeBSD allows a group.
            (user.split(':').next().unwrap_or_default(), command)
        } else {
            (file_name(&self.file), rest)
        };
        let path = variables.iter().rev().find(|(name, _)| name == "PATH");
        let path = path.map_or(PATH, |(_, value)| value);
        let path: Vec<String> = path.split(':').map(str::to_owned).collect();
        let finder = CallFinder {
            host: self.host,
            wanted: self.wanted,
            path: &path,
            unit_calls: Some(self.calls_of_unit),
        };
        let job = |call: Call| Job {
            place: self.file.clone(),
            scheduler: Scheduler::Cron,
            runs,
            path: path.clone(),
            user: JobUser::Named(user.to_owned()),
            prepared_state_dir: None,
            is_ignored: false,
            call: call.with_environment(variables),
        };
        if is_for_other_init(command, self.host.has_systemd()) {
            return Vec::new();
        }
        finder.in_text(&before_percent(command)).into_iter().map(job).collect()
    }
}

/// A line that sets a variable, as its name and value.
fn variable(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| (name.to_owned(), value.trim_matches(['"', '\'']).to_owned()))
}

/// Whether a command does nothing under the present init system. Debian's packages leave the work to their timers where
/// systemd runs: `test -x /usr/bin/certbot -a \! -d /run/systemd/system && …`.
fn is_for_other_init(command: &str, has_systemd: bool) -> bool {
    let Some((before, after)) = command.split_once("-d /run/systemd/system") else { return false };
    let is_negated = before.trim_end().ends_with('!');
    let after = after.trim_start_matches([' ', ']']);
    let needs_systemd = match () {
        () if after.starts_with("&&") => !is_negated,
        () if after.starts_with("||") => is_negated,
        () => return false,
    };
    needs_systemd != has_systemd
}

/// The command of a line: what follows an unescaped `%` is its input.
fn before_percent(command: &str) -> String {
    let mut text = String::new();
    for part in command.split_inclusive('%') {
        let Some(escaped) = part.strip_suffix("\\%") else {
            text.push_str(part.strip_suffix('%').unwrap_or(part));
            break;
        };
        text.extend([escaped, "%"]);
    }
    text
}

/// The runs of a line, and the rest of it; `None` if it has no valid schedule.
pub(super) fn schedule(line: &str) -> Option<(Runs, &str)> {
    // SUSE's cron does not log lines that begin with a minus.
    let mut rest = line.strip_prefix('-').unwrap_or(line);
    if let Some(name) = rest.strip_prefix('@') {
        let (name, rest) = name.split_once(char::is_whitespace)?;
        let runs = match name {
            "hourly" => Runs::daily(24),
            "daily" | "midnight" => Runs::daily(1),
            _ => Runs::default(),
        };
        return Some((runs, rest.trim_start()));
    }
    let mut fields = Vec::with_capacity(FIELDS.len());
    for notation in &FIELDS {
        let (word, after) = rest.split_once(char::is_whitespace)?;
        // `0~59` is a random minute.
        let word = word.split('~').next().unwrap_or_default();
        fields.push(Field::parse(word, notation)?);
        rest = after.trim_start();
    }
    let [minutes, hours, days, months, weekdays] = fields.as_slice() else { return None };
    let runs = minutes.len() * hours.len();
    let is_on = |day| weekdays.contains(day) || day == 0 && weekdays.contains(7);
    // With both a day and a weekday, either is enough; which days of the month are which weekdays varies.
    let may_skip = !months.is_full() || !days.is_full() && (0..7).all(is_on);
    Some((if may_skip { Runs::default() } else { Runs::on_days(runs, is_on) }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_schedules_are_recognised() {
        for (line, expected) in [
            ("17 * * * * x", true),
            ("*/15 * * * * x", true),
            ("0 */6 * * * x", true),
            ("0 3,15 * * * x", true),
            ("0 8-18 * * * x", true),
            ("0,30 3 * * * x", true),
            ("0 */2 * * 0-7 x", true),
            ("0 * * jan-dec sun-sat x", true),
            ("-17 * * * * x", true),
            ("0~59 * * * * x", true),
            ("@hourly x", true),
            ("0 3 * * * x", false),
            ("0 */23 * * * x", true),
            ("0 */24 * * * x", false),
            ("0 * * * 1-5 x", false),
            ("0 * 1 * * x", false),
            ("0 * * 1 * x", false),
            ("0 * 1 * 1 x", false),
            ("@daily x", false),
            ("@midnight x", false),
            ("@weekly x", false),
            ("@reboot x", false),
        ] {
            let (runs, rest) = schedule(line).unwrap();
            assert_eq!((runs.is_frequent(), rest), (expected, "x"), "{line}");
        }
        for line in ["", "17 * * * *", "61 * * * * x", "* * * x", "a b c d e f", "*/0 * * * * x", "@hourly"] {
            assert_eq!(schedule(line), None, "{line}");
        }
        let weekdays = schedule("0 * * * 1-5 x").unwrap().0;
        assert!(weekdays.and(schedule("0 * * * 6,0 x").unwrap().0).is_frequent());
    }

    #[test]
    fn percent_ends_the_command() {
        for (command, expected) in
            [("edgecert sync", "edgecert sync"), ("a%edgecert sync", "a"), (r"date +\%F; b%c", "date +%F; b")]
        {
            assert_eq!(before_percent(command), expected);
        }
    }
}
