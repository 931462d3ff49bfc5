//! The timers and crontabs that run ACME clients: whether anything renews the lineages of this host, and which programs
//! their hooks find.

use std::io;
use std::path::{Path, PathBuf};

use super::calls::{Program, SNAP_APP};
use super::certbot_files::CertbotFiles;
use super::client_files::acme_sh_path;
use super::finding::{DoctorFinding, Subject};
use super::host::{Host, file_name};
use super::schedule::{self, Job, Obstacle, SPOOLS, Schedule, Scheduler, Units};
use crate::error::{ErrorKind, shell_word};
use crate::source::{AcmeClient, Source};
use crate::text;

const CLIENTS: [Program; 4] = [Program::Certbot, Program::AcmeSh, Program::Lego, Program::Dehydrated];

/// What runs the ACME clients of a host.
pub(super) struct Renewals<'a> {
    host: &'a Host<'a>,
    schedules: Vec<(Program, Schedule)>,
}

/// A scheduled command that renews a lineage and runs its hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    /// The crontab, or the link that enables the timer.
    pub(super) place: PathBuf,
    pub(super) scheduler: Scheduler,
    /// The directories that the hook's shell searches.
    pub(super) path: Vec<String>,
}

impl Caller {
    /// Its name in messages: the service, or the crontab.
    pub(super) fn name(&self) -> String {
        match &self.scheduler {
            Scheduler::Systemd { service } => text::sanitize(service),
            Scheduler::Cron => text::path(&self.place),
        }
    }
}

impl<'a> Renewals<'a> {
    pub(super) fn find(host: &'a Host<'a>) -> Self {
        let schedule = |client: Program| {
            let mut schedule = schedule::find(host, client);
            schedule.jobs.retain(|job| renews(client, job));
            (client, schedule)
        };
        Self { host, schedules: CLIENTS.map(schedule).into() }
    }

    /// The jobs that run the client of a lineage, whether they work or not.
    pub(super) fn jobs<'s>(&'s self, source: &Source) -> impl Iterator<Item = &'s Job> {
        let client = client(source);
        let schedule = self.schedules.iter().find(|(known, _)| Some(*known) == client);
        let jobs = schedule.into_iter().flat_map(|(_, schedule)| &schedule.jobs);
        let lineage = Lineage::of(source);
        jobs.filter(move |job| lineage.is_renewed_by(job))
    }

    /// What runs the hook of a lineage.
    pub(super) fn callers(&self, source: &Source) -> Vec<Caller> {
        let saved = match client(source) {
            Some(Program::AcmeSh) => {
                Lineage::of(source).home.map(|home| acme_sh_path(&home)).unwrap_or_default()
            }
            _ => Vec::new(),
        };
        let working = self.jobs(source).filter(|job| job.obstacle(self.host).is_none());
        let caller = |job: &Job| Caller {
            place: job.place.clone(),
            scheduler: job.scheduler.clone(),
            path: saved.iter().cloned().chain(job.call.search_path(&job.path, self.host)).collect(),
        };
        working.map(caller).collect()
    }

    /// Checks for each client whether something renews its lineages.
    pub(super) fn check(&self, lineages: &[&Source]) -> Vec<DoctorFinding> {
        let finding = |(program, schedule): &(Program, Schedule)| {
            let own = lineages.iter().filter(|source| client(source) == Some(*program));
            let is_idle = |source: &&&Source| self.callers(source).is_empty();
            match own.clone().find(is_idle) {
                Some(idle) => self.idle(*program, schedule, idle),
                None => self.working(*program, own.copied().next()?),
            }
        };
        let excluded = lineages.iter().filter_map(|source| excluded(source));
        self.schedules.iter().filter_map(finding).chain(excluded).collect()
    }

    fn working(&self, program: Program, source: &Source) -> Option<DoctorFinding> {
        let caller = self.callers(source).into_iter().next()?;
        let detail = format!("{} runs {}", text::path(&caller.place), program.name());
        Some(DoctorFinding::ok(Subject::Renewal, detail))
    }

    /// Reports that nothing renews a lineage.
    fn idle(&self, program: Program, schedule: &Schedule, source: &Source) -> Option<DoctorFinding> {
        let name = program.name();
        let jobs = self.jobs(source).filter_map(|job| Some((&job.place, job.obstacle(self.host)?)));
        let broken = schedule.broken.iter().map(|(place, obstacle)| (place, obstacle.clone()));
        let obstacles: Vec<(&PathBuf, Obstacle)> = jobs.chain(broken).collect();
        let title = text::path(source.directory.as_ref().unwrap_or(&source.files.cert));
        if obstacles.is_empty() {
            if has_unreadable_spool(self.host) {
                return None;
            }
            let detail = format!("no timer or crontab runs {name}, so nothing renews {title}");
            return Some(DoctorFinding::warn(Subject::Renewal, detail, self.set_up(program)));
        }
        let reasons: Vec<String> = obstacles
            .iter()
            .map(|(place, obstacle)| format!("{} {}", text::path(place), obstacle.reason()))
            .collect();
        let detail = format!("nothing renews {title} with {name}: {}", reasons.join("; "));
        // Repairing an installed timer comes before installing another one.
        let repaired = obstacles.iter().find(|(_, obstacle)| *obstacle != Obstacle::NoSystemd);
        let remedy =
            repaired.map_or_else(|| self.set_up(program), |(_, obstacle)| obstacle.remedy(self.host));
        Some(DoctorFinding::fail(Subject::Renewal, ErrorKind::Config, detail, remedy))
    }

    /// How to run a client regularly.
    fn set_up(&self, program: Program) -> String {
        const TIMERS: [&str; 3] = ["certbot.timer", "certbot-renew.timer", "snap.certbot.renew.timer"];
        let units = Units::of_system(self.host, program);
        let timer = TIMERS.iter().find(|timer| self.host.has_systemd() && units.has(timer));
        let crontab = |command: &str| {
            let install = if self.host.has_cron() { "" } else { "install cron (`apt install cron`), " };
            format!("{install}run `crontab -e` and add the line: 43 3,15 * * * {command}")
        };
        match (program, timer) {
            (Program::Certbot, Some(timer)) => format!("run `systemctl enable --now {timer}`"),
            (Program::Certbot, None) => crontab("/usr/bin/certbot -q renew"),
            (Program::AcmeSh, _) => "run `acme.sh --install-cronjob`".into(),
            (Program::Dehydrated, _) => crontab("/usr/bin/dehydrated --cron"),
            (Program::Lego | Program::Edgecert, _) => {
                let hook = shell_word(&text::path(&self.host.own_program()));
                crontab(&format!("lego renew --renew-hook {hook}, with the options of `lego run`"))
            }
        }
    }
}

/// What distinguishes a lineage from others of its client.
struct Lineage {
    name: String,
    /// The client's own directory.
    home: Option<PathBuf>,
}

impl Lineage {
    fn of(source: &Source) -> Self {
        let directory = source.files.cert.parent().unwrap_or(Path::new("/"));
        let home = match client(source) {
            Some(Program::Certbot) => directory.parent().and_then(Path::parent),
            _ => directory.parent(),
        };
        Self { name: file_name(directory).to_owned(), home: home.map(Path::to_owned) }
    }

    /// Whether a call of the client covers it. Without options, the client's configuration decides,
    /// and the call is assumed to cover it.
    fn is_renewed_by(&self, job: &Job) -> bool {
        let directory = job.call.option(&["--config-dir", "--config-home"]);
        let directory = directory.or_else(|| job.call.option(&["--home", "--path"]));
        let is_elsewhere = |named: &str| {
            let home = self.home.as_deref().map(real_path);
            named.starts_with('/') && home != Some(real_path(Path::new(named)))
        };
        let is_other = |named: &str| !named.split(',').any(|name| name == self.name);
        !directory.is_some_and(is_elsewhere) && !job.call.option(&["--cert-name"]).is_some_and(is_other)
    }
}

fn real_path(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The client that renews a lineage; `None`: unknown, or it runs elsewhere.
fn client(source: &Source) -> Option<Program> {
    let cert = &source.files.cert;
    let directory = cert.parent()?;
    let is_certbot = || {
        let home = directory.parent().and_then(Path::parent);
        home.is_some_and(|home| home.join("renewal").join(format!("{}.conf", file_name(directory))).exists())
    };
    match source.client {
        AcmeClient::AcmeSh => Some(Program::AcmeSh),
        AcmeClient::Lego => Some(Program::Lego),
        AcmeClient::Dehydrated => Some(Program::Dehydrated),
        AcmeClient::Certbot | AcmeClient::Files if is_certbot() => Some(Program::Certbot),
        AcmeClient::Files if cert.extension().is_some_and(|extension| extension == "crt") => {
            (file_name(directory) == "certificates").then_some(Program::Lego)
        }
        _ => None,
    }
}

/// Reports a lineage that certbot does not renew because its renewal file says so.
fn excluded(source: &Source) -> Option<DoctorFinding> {
    let is_certbot = client(source) == Some(Program::Certbot);
    let files = source.files.cert.parent().filter(|_| is_certbot).and_then(CertbotFiles::of)?;
    let (file, line) = (text::path(&files.renewal), files.not_renewed()?);
    let detail = format!("{file}:{line} excludes {} from renewal", text::sanitize(&files.name));
    Some(DoctorFinding::warn(Subject::Renewal, detail, "set `autorenew = True` there"))
}

/// Whether a job renews certificates, rather than listing or revoking them.
fn renews(client: Program, job: &Job) -> bool {
    let call = &job.call;
    match client {
        Program::Certbot => {
            let is_renewal = call.has_argument(&["renew", "certonly", "run"]);
            (is_renewal || call.program == SNAP_APP) && !call.has_argument(&["--dry-run"])
        }
        Program::AcmeSh => {
            call.has_argument(&["--cron", "--renew-all", "--renewAll", "--renew", "-r", "--issue"])
        }
        Program::Lego => call.has_argument(&["renew", "run"]),
        Program::Dehydrated => call.has_argument(&["--cron", "-c"]),
        Program::Edgecert => false,
    }
}

/// Whether crontabs exist that this user cannot read.
fn has_unreadable_spool(host: &Host<'_>) -> bool {
    let is_denied = |path: &str| {
        std::fs::read_dir(host.at(path)).is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    SPOOLS.iter().any(|spool| is_denied(spool))
}
