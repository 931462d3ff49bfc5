//! The timers of systemd that are enabled, and the services that they start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Schedule;
use super::calendar;
use super::job::{Job, JobUser, Scheduler};
use super::obstacle::Obstacle;
use super::runs::Runs;
use crate::cmd::doctor::calls::{Call, CallFinder, Program, words};
use crate::cmd::doctor::host::{Host, entries, file_name, read_text, usual_path};

/// Directories of units; earlier ones override later ones.
const SYSTEM: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
const USER: [&str; 4] =
    ["/etc/systemd/user", "/run/systemd/user", "/usr/local/lib/systemd/user", "/usr/lib/systemd/user"];

const SECONDS_PER_DAY: f64 = 86_400.0;

/// The units of the system, or of the user that runs `doctor`.
pub(in crate::cmd::doctor) struct Units<'a> {
    host: &'a Host<'a>,
    /// The program whose calls are searched for.
    wanted: Program,
    directories: Vec<PathBuf>,
    is_system: bool,
}

/// A unit with its drop-ins.
struct Unit {
    /// Section, key and value of each line, in order.
    lines: Vec<(String, String, String)>,
}

impl<'a> Units<'a> {
    pub(in crate::cmd::doctor) fn of_system(host: &'a Host<'a>, wanted: Program) -> Self {
        let directories = SYSTEM.iter().map(|path| host.at(path)).collect();
        Self { host, wanted, directories, is_system: true }
    }

    pub(super) fn of_user(host: &'a Host<'a>, wanted: Program) -> Self {
        let home = host.env.path("HOME");
        let config = host.env.path("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
        let own = config.map(|config| config.join("systemd/user"));
        let directories = own.into_iter().chain(USER.iter().map(|path| host.at(path)));
        Self { host, wanted, directories: directories.collect(), is_system: false }
    }

    /// Adds the enabled timers whose services call the program, and those of its name that cannot call anything.
    pub(super) fn add_timers(&self, schedule: &mut Schedule) {
        for (name, link) in self.enabled_timers() {
            match self.timer_jobs(&name, &link) {
                Ok(jobs) => schedule.jobs.extend(jobs),
                Err(obstacle) if name.contains(self.wanted.name()) => schedule.broken.push((link, obstacle)),
                Err(_) => {}
            }
        }
    }

    /// Whether a unit of this name is installed.
    pub(in crate::cmd::doctor) fn has(&self, name: &str) -> bool {
        self.load(name).is_some()
    }

    /// The calls of a service, or of the service with this name.
    pub(in crate::cmd::doctor) fn calls(&self, name: &str) -> Vec<Call> {
        let name = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
        let service = self.load(&name);
        let Some(service) = service else { return Vec::new() };
        let path = self.path_of(&service);
        self.service_calls(&service).into_iter().map(|call| call.with_path(&path)).collect()
    }

    /// The names of timers that a target pulls in, with the links that enable them.
    fn enabled_timers(&self) -> BTreeMap<String, PathBuf> {
        let is_wants = |path: &PathBuf| has_extension(path, "wants");
        let wants = self.directories.iter().flat_map(|path| entries(path)).filter(is_wants);
        let links = wants.flat_map(|path| entries(&path));
        let timers = links.filter(|link| has_extension(link, "timer"));
        timers.map(|link| (file_name(&link).to_owned(), link)).collect()
    }

    fn timer_jobs(&self, name: &str, link: &Path) -> Result<Vec<Job>, Obstacle> {
        let timer = self.load(name).ok_or_else(|| Obstacle::NoUnit(name.to_owned()))?;
        let default = format!("{}.service", name.trim_end_matches(".timer"));
        let service_name = timer.last("Timer", "Unit").unwrap_or(&default);
        let service = self.load(service_name).ok_or_else(|| Obstacle::NoUnit(service_name.to_owned()))?;
        let job = |call: Call| Job {
            place: link.to_owned(),
            scheduler: Scheduler::Systemd { service: service_name.to_owned() },
            runs: timer.runs(),
            path: self.path_of(&service),
            user: self.user_of(&service),
            prepared_state_dir: self.state_directory(&service),
            is_ignored: false,
            call,
        };
        Ok(self.service_calls(&service).into_iter().map(job).collect())
    }

    fn service_calls(&self, service: &Unit) -> Vec<Call> {
        let (path, environment) = (self.path_of(service), self.environment(service));
        let finder = CallFinder { host: self.host, wanted: self.wanted, path: &path, unit_calls: None };
        let commands = service.list("Service", "ExecStart").into_iter();
        let calls = commands.flat_map(|command| finder.in_words(&exec_words(command)));
        calls.map(|call| call.with_environment(&environment)).collect()
    }

    /// The variables of a service. Those of a file override those of the unit.
    fn environment(&self, service: &Unit) -> Vec<(String, String)> {
        let mut assignments = self.default_environment();
        // `ExecSearchPath=` replaces the PATH of the manager, but not that of the unit (systemd.exec(5)).
        let search_path = service.list("Service", "ExecSearchPath").join(":");
        assignments.extend((!search_path.is_empty()).then(|| format!("PATH={search_path}")));
        assignments.extend(service.list("Service", "Environment").into_iter().flat_map(words));
        for file in service.list("Service", "EnvironmentFile") {
            let text = read_text(&self.host.at(file.trim_start_matches('-'))).unwrap_or_default();
            let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
            assignments.extend(lines.flat_map(words));
        }
        let pair =
            |word: &String| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        assignments.iter().filter_map(pair).collect()
    }

    /// The variables that the configuration of the service manager gives every service.
    fn default_environment(&self) -> Vec<String> {
        let name = if self.is_system { "system.conf" } else { "user.conf" };
        let file = self.host.at("/etc/systemd").join(name);
        let drop_ins = entries(&file.with_file_name(format!("{name}.d")));
        let files =
            std::iter::once(file).chain(drop_ins.into_iter().filter(|file| has_extension(file, "conf")));
        let lines = files.filter_map(|file| read_text(&file)).flat_map(|text| parse(&text)).collect();
        let manager = Unit { lines };
        manager.list("Manager", "DefaultEnvironment").into_iter().flat_map(words).collect()
    }

    /// The search path of a service.
    fn path_of(&self, service: &Unit) -> Vec<String> {
        let environment = self.environment(service);
        let path = environment.iter().rev().find(|(name, _)| name == "PATH");
        path.map_or_else(usual_path, |(_, path)| path.split(':').map(str::to_owned).collect())
    }

    fn user_of(&self, service: &Unit) -> JobUser {
        let is_privileged = |command: &&str| command.starts_with(['+', '!']);
        if !self.is_system {
            return JobUser::Own;
        }
        if service.list("Service", "ExecStart").iter().any(is_privileged) {
            return JobUser::Named("root".into());
        }
        match service.last("Service", "User") {
            _ if service.last("Service", "DynamicUser").is_some_and(is_true) => JobUser::Dynamic,
            Some(user) => JobUser::Named(user.to_owned()),
            None => JobUser::Named("root".into()),
        }
    }

    fn state_directory(&self, service: &Unit) -> Option<PathBuf> {
        let name = service.list("Service", "StateDirectory").into_iter().flat_map(words).next()?;
        self.is_system.then(|| self.host.at("/var/lib").join(name.split(':').next().unwrap_or_default()))
    }

    /// Loads a unit; `None` if there is none, or it is masked.
    fn load(&self, name: &str) -> Option<Unit> {
        let template = name.split_once('@').map(|(prefix, rest)| {
            format!("{prefix}@.{}", rest.rsplit_once('.').map(|(_, kind)| kind).unwrap_or_default())
        });
        let names = [Some(name.to_owned()), template];
        let mut files =
            names.iter().flatten().flat_map(|name| self.directories.iter().map(move |path| path.join(name)));
        let file = files.find(|file| file.symlink_metadata().is_ok())?;
        // An empty file masks a unit, too.
        let text = read_text(&file).filter(|text| !text.is_empty())?;
        let mut lines = parse(&text);
        for drop_in in self.drop_ins(name) {
            lines.extend(read_text(&drop_in).iter().flat_map(|text| parse(text)));
        }
        Some(Unit { lines })
    }

    /// The drop-ins of a unit in order; one in an earlier directory replaces that of the same name.
    fn drop_ins(&self, name: &str) -> Vec<PathBuf> {
        let mut found = BTreeMap::new();
        for directory in self.directories.iter().rev() {
            let files = entries(&directory.join(format!("{name}.d"))).into_iter();
            for file in files.filter(|file| has_extension(file, "conf")) {
                found.insert(file_name(&file).to_owned(), file);
            }
        }
        found.into_values().collect()
    }
}

impl Unit {
    /// The last value of a key.
    fn last(&self, section: &str, key: &str) -> Option<&str> {
        self.list(section, key).last().copied()
    }

    /// The values of a key; an empty one removes those before it.
    fn list(&self, section: &str, key: &str) -> Vec<&str> {
        let mut values = Vec::new();
        for (_, _, value) in self.lines.iter().filter(|line| line.0 == section && line.1 == key) {
            if value.is_empty() {
                values.clear();
            } else {
                values.push(value.as_str());
            }
        }
        values
    }

    /// How often a timer fires.
    fn runs(&self) -> Runs {
        let (mut runs, mut has_start, mut repeated) = (Runs::default(), false, None);
        for (_, key, value) in self.lines.iter().filter(|line| line.0 == "Timer") {
            match key.as_str() {
                // An empty value removes all triggers.
                "OnCalendar" | "OnActiveSec" | "OnBootSec" | "OnStartupSec" | "OnUnitActiveSec"
                | "OnUnitInactiveSec"
                    if value.is_empty() =>
                {
                    (runs, has_start, repeated) = (Runs::default(), false, None);
                }
                "OnCalendar" => (runs, has_start) = (runs.and(calendar::runs(value)), true),
                "OnActiveSec" | "OnBootSec" | "OnStartupSec" => has_start = true,
                "OnUnitActiveSec" | "OnUnitInactiveSec" => repeated = calendar::span(value).or(repeated),
                _ => {}
            }
        }
        let is_repeated = repeated.is_some_and(|seconds| seconds < SECONDS_PER_DAY);
        // Relative to an earlier run, so there has to be a first one.
        if is_repeated && has_start { runs.and(Runs::daily(2)) } else { runs }
    }
}

/// The sections and keys of a unit file.
fn parse(text: &str) -> Vec<(String, String, String)> {
    let joined = text.replace("\\\n", " ");
    let (mut section, mut lines) = (String::new(), Vec::new());
    for line in joined.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            name.clone_into(&mut section);
        } else if let Some((key, value)) = line.split_once('=') {
            lines.push((section.clone(), key.trim().to_owned(), value.trim().to_owned()));
        }
    }
    lines
}

/// The words of an `ExecStart=`, without the prefixes of the program.
fn exec_words(command: &str) -> Vec<String> {
    const PREFIXES: [char; 6] = ['@', '-', ':', '+', '!', '|'];
    let mut words = words(command.trim_start_matches(PREFIXES));
    let has_name = command.chars().take_while(|c| PREFIXES.contains(c)).any(|c| c == '@');
    // With `@`, the second word is the program's `argv[0]`.
    if has_name && words.len() > 1 {
        words.remove(1);
    }
    words
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.extension().is_some_and(|extension| extension == wanted)
}

fn is_true(value: &str) -> bool {
    ["yes", "true", "on", "1"].contains(&value.to_ascii_lowercase().as_str())
}
