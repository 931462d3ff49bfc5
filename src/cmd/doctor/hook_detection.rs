//! Detects whether the ACME client of a lineage calls edgecert after a renewal, from the client's own configuration.
//!
//! Findings never quote the commands: they may contain secrets.

use std::path::{Path, PathBuf};

use super::calls::{Action, Call, CallFinder, Program};
use super::client_files::{acme_sh_value, decode_command, dehydrated_hook};
use super::hooks::ATTACH;
use super::host::{Host, ProgramStatus, file_name, read_text, usual_path};
use super::renewals::{Caller, Renewals};
use super::schedule::{Job, Units};
use crate::error::shell_word;
use crate::source::{self, AcmeClient, Named, Source};
use crate::text;

/// The hook of a lineage. `config` is the file that configures it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HookStatus {
    /// The client calls edgecert.
    Installed { config: PathBuf },
    /// The client calls edgecert without a path, and does not find it.
    NotInPath { config: PathBuf, miss: PathMiss },
    /// The client calls a file that does not exist or is not executable.
    Broken { config: PathBuf },
    /// The client calls edgecert for something other than a deployment.
    NotDeploying { config: PathBuf, remedy: String },
    /// certbot calls edgecert in a pre or post hook, which does not get the renewed lineages.
    WrongHook(WrongHook),
    /// The client does not call edgecert.
    NotInstalled { config: PathBuf, remedy: String },
    /// The client does not record its hooks.
    Unknown,
}

/// A call in a pre or post hook of certbot, which does not get the renewed lineages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrongHook {
    /// The file, with the line if it has others.
    pub(super) place: String,
    /// Whether it is a pre hook rather than a post hook.
    pub(super) is_pre: bool,
    /// Whether another hook deploys the lineage.
    pub(super) is_deployed: bool,
    pub(super) remedy: String,
}

/// A program that a hook does not find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathMiss {
    pub(super) program: String,
    /// What runs the hook; `None`: nothing that is known, so that the usual directories are searched.
    pub(super) caller: Option<Caller>,
}

/// How a command calls edgecert.
#[derive(Clone)]
pub(super) enum HookCall {
    Works,
    NotInPath(PathMiss),
    Broken,
    /// It deploys nothing, or another lineage.
    NoDeployment,
}

impl HookCall {
    /// The best has the lowest rank.
    fn rank(&self) -> u8 {
        match self {
            Self::Works => 0,
            Self::NotInPath(_) => 1,
            Self::Broken => 2,
            Self::NoDeployment => 3,
        }
    }

    /// The call in a file that is not executable.
    pub(super) fn broken(self) -> Self {
        if self.rank() < Self::Broken.rank() { Self::Broken } else { self }
    }
}

impl HookStatus {
    /// Whether the client calls edgecert.
    pub(super) fn is_installed(&self) -> bool {
        match self {
            Self::Installed { .. } | Self::NotInPath { .. } => true,
            Self::WrongHook(wrong) => wrong.is_deployed,
            _ => false,
        }
    }

    /// The best of all calls, each with the file that configures it.
    pub(super) fn from_calls(
        calls: impl Iterator<Item = (PathBuf, Option<HookCall>)>,
        client_config: PathBuf,
        remedy: String,
    ) -> Self {
        let calls = calls.filter_map(|(config, call)| Some((config, call?)));
        match calls.min_by_key(|(_, call)| call.rank()) {
            Some((config, HookCall::Works)) => Self::Installed { config },
            Some((config, HookCall::NotInPath(miss))) => Self::NotInPath { config, miss },
            Some((config, HookCall::Broken)) => Self::Broken { config },
            Some((config, HookCall::NoDeployment)) => Self::NotDeploying { config, remedy },
            None => Self::NotInstalled { config: client_config, remedy },
        }
    }
}

/// Detects the hook of a lineage.
pub(super) fn detect(source: &Source, host: &Host<'_>, renewals: &Renewals<'_>) -> HookStatus {
    // Also finds programs that the client does not find, to report them.
    let path = [usual_path(), host.own_path()].concat();
    let units = Units::of_system(host, Program::Edgecert);
    let calls_of_unit = |name: &str| units.calls(name);
    let finder =
        CallFinder { host, wanted: Program::Edgecert, path: &path, unit_calls: Some(&calls_of_unit) };
    let jobs = renewals.jobs(source).collect();
    let detector = Detector { source, finder, callers: renewals.callers(source), jobs };
    let cert = &source.files.cert;
    let acme_sh = || detector.acme_sh(source.files.key.as_deref()?);
    let status = match source.client {
        AcmeClient::AcmeSh => acme_sh(),
        AcmeClient::Certbot => detector.certbot(cert.parent()),
        AcmeClient::Lego => detector.lego(),
        AcmeClient::Dehydrated => detector.dehydrated(),
        // Files given one by one may be those of any client.
        AcmeClient::Files => detector.certbot(cert.parent()).or_else(acme_sh).or_else(|| detector.lego()),
        _ => None,
    };
    status.unwrap_or(HookStatus::Unknown)
}

/// Searches the configuration of a lineage's client.
pub(super) struct Detector<'a> {
    source: &'a Source,
    pub(super) finder: CallFinder<'a>,
    callers: Vec<Caller>,
    /// The scheduled calls of the client.
    pub(super) jobs: Vec<&'a Job>,
}

impl Detector<'_> {
    /// The hooks that scheduled calls of the client name on their command lines.
    pub(super) fn scheduled_hooks(&self, options: &[&str]) -> Vec<(PathBuf, Option<HookCall>)> {
        let hooks = self.jobs.iter().filter_map(|job| Some((job.place.clone(), job.call.option(options)?)));
        hooks.map(|(place, hook)| (place, self.command(hook))).collect()
    }

    /// lego does not record its hooks.
    fn lego(&self) -> Option<HookStatus> {
        let hooks = self.scheduled_hooks(&["--deploy-hook", "--renew-hook"]).into_iter();
        only_known(hooks)
    }

    fn dehydrated(&self) -> Option<HookStatus> {
        let configured = dehydrated_hook(self.finder.host);
        let configured = configured.map(|(file, hook)| (file, self.command(&hook)));
        only_known(self.scheduled_hooks(&["--hook", "-k"]).into_iter().chain(configured))
    }

    /// How to install the hook with a command that replaces the present one.
    pub(super) fn install(&self, command: &str, has_hook: bool) -> String {
        let host = self.finder.host;
        let is_found =
            self.callers.iter().all(|caller| host.find_program("edgecert", &caller.path).is_some())
                && host.find_program("edgecert", &usual_path()).is_some();
        let program = if is_found { "edgecert".to_owned() } else { text::path(&host.own_program()) };
        let program = shell_word(&program);
        if has_hook {
            format!("run `{command} 'HOOK; {program}'`, with the current hook in place of HOOK")
        } else {
            format!("run `{command} {program}`")
        }
    }

    /// acme.sh has `DOMAIN.conf` beside the key: shell assignments, with commands in base64.
    fn acme_sh(&self, key: &Path) -> Option<HookStatus> {
        let conf = key.with_extension("conf");
        let conf_text = read_text(&conf)?;
        let value = |name: &str| acme_sh_value(&conf_text, name);
        let domain = value("Le_Domain")?;
        let commands = ["Le_ReloadCmd", "Le_RenewHook"].into_iter().filter_map(value).map(decode_command);
        let commands = commands.map(|command| self.command(&command));
        let home = key.parent()?.parent()?;
        let hooks = value("Le_DeployHook").unwrap_or_default().split(',');
        let hooks = hooks.map(|hook| self.deploy_hook(hook.trim(), home));
        let ecc = if file_name(key.parent()?).ends_with("_ecc") { " --ecc" } else { "" };
        let domain = shell_word(&text::sanitize(domain));
        let has_hook = value("Le_ReloadCmd").is_some_and(|command| !command.is_empty());
        let remedy = self.install(&format!("acme.sh --install-cert -d {domain}{ecc} --reloadcmd"), has_hook);
        let calls = commands.chain(hooks).map(|call| (conf.clone(), call));
        Some(HookStatus::from_calls(calls, conf.clone(), remedy))
    }

    /// A hook of acme.sh is a function in `deploy/NAME.sh`, there or in another directory.
    fn deploy_hook(&self, hook: &str, home: &Path) -> Option<HookCall> {
        match read_text(&home.join("deploy").join(format!("{hook}.sh"))) {
            Some(script) => self.best(&self.finder.in_text(&script)),
            None => (hook == Program::Edgecert.name()).then_some(HookCall::Works),
        }
    }

    /// How a shell command calls edgecert, directly or through a script; `None` if it does not.
    pub(super) fn command(&self, command: &str) -> Option<HookCall> {
        self.best(&self.finder.in_text(command))
    }

    pub(super) fn best(&self, calls: &[Call]) -> Option<HookCall> {
        calls.iter().map(|call| self.judge(call)).min_by_key(HookCall::rank)
    }

    fn judge(&self, call: &Call) -> HookCall {
        let deploys = match call.action() {
            Action::Deploy { cert, lineage } => !self.is_other(cert, lineage),
            Action::Sync { .. } => true,
            Action::Other => false,
        };
        if !deploys {
            return HookCall::NoDeployment;
        }
        let usual = usual_path();
        let callers = self.callers.iter().map(|caller| (caller.path.as_slice(), Some(caller)));
        let callers = callers.chain(self.callers.is_empty().then_some((usual.as_slice(), None)));
        let judged = callers.map(|(path, caller)| {
            let finder = CallFinder { path, ..self.finder };
            match finder.status(call) {
                ProgramStatus::Found | ProgramStatus::Unknown => HookCall::Works,
                ProgramStatus::NotInPath => {
                    let program = finder.not_found(call).unwrap_or_default().to_owned();
                    HookCall::NotInPath(PathMiss { program, caller: caller.cloned() })
                }
                ProgramStatus::Missing => HookCall::Broken,
            }
        });
        // Whatever runs the hook next has to find it.
        judged.max_by_key(HookCall::rank).unwrap_or(HookCall::Works)
    }

    /// Whether the files or the directory that a call names are those of another lineage. A path with a variable may be
    /// that of any.
    fn is_other(&self, cert: Option<PathBuf>, lineage: Option<PathBuf>) -> bool {
        let is_variable = |path: &PathBuf| path.as_os_str().as_encoded_bytes().contains(&b'$');
        let named = Named { cert, lineage, key: None };
        let Some(path) = named.cert.as_ref().or(named.lineage.as_ref()).filter(|path| !is_variable(path))
        else {
            return false;
        };
        // A relative path depends on the client's working directory.
        let found = source::find(&named, self.finder.host.env);
        path.is_absolute() && !found.is_ok_and(|found| found.real_path() == self.source.real_path())
    }
}

/// The status of the hooks that are known; `None` if none of them calls edgecert, because there may be others.
fn only_known(hooks: impl Iterator<Item = (PathBuf, Option<HookCall>)>) -> Option<HookStatus> {
    let mut hooks = hooks.filter(|(_, call)| call.is_some()).peekable();
    hooks.peek().is_some().then(|| HookStatus::from_calls(hooks, PathBuf::new(), ATTACH.to_owned()))
}
