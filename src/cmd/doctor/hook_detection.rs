//! Detects whether the ACME client of a lineage calls edgecert after a renewal, from the client's own configuration.
//!
//! Findings never quote the commands: they may contain secrets.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::calls::{Action, Call, CallFinder, PROGRAM};
use super::host::{Host, ProgramStatus, entries, file_name, is_executable, read_text, usual_path};
use super::timer::Units;
use crate::error::shell_word;
use crate::source::{self, AcmeClient, Named, Source};
use crate::text;

/// The hook of a lineage. `config` is the file that configures it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HookStatus {
    /// The client calls edgecert.
    Installed { config: PathBuf },
    /// The client calls edgecert without a path, and it is not in the usual directories.
    NotInPath { config: PathBuf },
    /// The client calls a file that does not exist or is not executable.
    Broken { config: PathBuf },
    /// The client calls edgecert for something other than a deployment.
    NotDeploying { config: PathBuf, remedy: String },
    /// The client does not call edgecert.
    NotInstalled { config: PathBuf, remedy: String },
    /// The client does not record its hooks.
    Unknown,
}

/// How a command calls edgecert, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum HookCall {
    Works,
    NotInPath,
    Broken,
    /// It deploys nothing, or another lineage.
    NoDeployment,
}

impl HookStatus {
    /// Whether the client calls edgecert.
    pub(super) fn is_installed(&self) -> bool {
        matches!(self, Self::Installed { .. } | Self::NotInPath { .. })
    }

    /// The best of all calls, each with the file that configures it.
    fn from_calls(
        calls: impl Iterator<Item = (PathBuf, Option<HookCall>)>,
        client_config: PathBuf,
        remedy: String,
    ) -> Self {
        let calls = calls.filter_map(|(config, call)| Some((config, call?)));
        match calls.min_by_key(|(_, call)| *call) {
            Some((config, HookCall::Works)) => Self::Installed { config },
            Some((config, HookCall::NotInPath)) => Self::NotInPath { config },
            Some((config, HookCall::Broken)) => Self::Broken { config },
            Some((config, HookCall::NoDeployment)) => Self::NotDeploying { config, remedy },
            None => Self::NotInstalled { config: client_config, remedy },
        }
    }
}

/// Detects the hook of a lineage.
pub(super) fn detect(source: &Source, host: &Host<'_>) -> HookStatus {
    let (path, units) = (usual_path(), Units::of_system(host));
    let calls_of_unit = |name: &str| units.calls(name);
    let finder = CallFinder { host, path: &path, unit_calls: Some(&calls_of_unit) };
    let detector = Detector { source, finder };
    let cert = &source.files.cert;
    let acme_sh = || detector.acme_sh(source.files.key.as_deref()?);
    let status = match source.client {
        AcmeClient::AcmeSh => acme_sh(),
        AcmeClient::Certbot => detector.certbot(cert.parent()),
        // Files given one by one may be certbot's or acme.sh's.
        AcmeClient::Files => detector.certbot(cert.parent()).or_else(acme_sh),
        AcmeClient::Lego | AcmeClient::Dehydrated | AcmeClient::Kubernetes => None,
    };
    status.unwrap_or(HookStatus::Unknown)
}

struct Detector<'a> {
    source: &'a Source,
    finder: CallFinder<'a>,
}

impl Detector<'_> {
    /// `live/NAME` has its configuration in `renewal/NAME.conf`; hooks of all lineages are in `cli.ini` and in
    /// `renewal-hooks/deploy`.
    fn certbot(&self, lineage: Option<&Path>) -> Option<HookStatus> {
        let lineage = lineage?;
        let certbot = lineage.parent()?.parent()?;
        let renewal = certbot.join("renewal").join(format!("{}.conf", file_name(lineage)));
        let renewal_text = read_text(&renewal)?;
        let cli = certbot.join("cli.ini");
        let cli_text = read_text(&cli).unwrap_or_default();
        let own = certbot_hooks(&renewal_text).map(|command| (renewal.clone(), self.command(command)));
        let global = certbot_hooks(&cli_text).map(|command| (cli.clone(), self.command(command)));
        let directory = entries(&certbot.join("renewal-hooks/deploy")).into_iter();
        let directory = directory.map(|entry| {
            let call = self.directory_entry(&entry);
            (entry, call)
        });
        let name = shell_word(&text::sanitize(file_name(lineage)));
        let has_hook = certbot_hooks(&renewal_text).next().is_some();
        let remedy = install(&format!("certbot reconfigure --cert-name {name} --deploy-hook"), has_hook);
        Some(HookStatus::from_calls(own.chain(global).chain(directory), renewal.clone(), remedy))
    }

    /// An entry of `renewal-hooks/deploy`; certbot skips names that end in `~`.
    fn directory_entry(&self, entry: &Path) -> Option<HookCall> {
        if file_name(entry).ends_with('~') {
            return None;
        }
        if is_executable(entry) {
            return self.best(&self.finder.in_entry(entry));
        }
        let calls = match read_text(entry) {
            Some(text) => self.finder.in_text(&text),
            None => self.finder.in_entry(entry),
        };
        self.best(&calls).map(|call| call.max(HookCall::Broken))
    }

    /// acme.sh has `DOMAIN.conf` beside the key: shell assignments, with commands in base64.
    fn acme_sh(&self, key: &Path) -> Option<HookStatus> {
        let conf = key.with_extension("conf");
        let conf_text = read_text(&conf)?;
        let value = |name: &str| {
            let line = conf_text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.map(|value| value.trim().trim_matches('\''))
        };
        let domain = value("Le_Domain")?;
        let commands = ["Le_ReloadCmd", "Le_RenewHook"].into_iter().filter_map(value).map(decode);
        let commands = commands.map(|command| self.command(&command));
        let home = key.parent()?.parent()?;
        let hooks = value("Le_DeployHook").unwrap_or_default().split(',');
        let hooks = hooks.map(|hook| self.deploy_hook(hook.trim(), home));
        let ecc = if file_name(key.parent()?).ends_with("_ecc") { " --ecc" } else { "" };
        let domain = shell_word(&text::sanitize(domain));
        let has_hook = value("Le_ReloadCmd").is_some_and(|command| !command.is_empty());
        let remedy = install(&format!("acme.sh --install-cert -d {domain}{ecc} --reloadcmd"), has_hook);
        let calls = commands.chain(hooks).map(|call| (conf.clone(), call));
        Some(HookStatus::from_calls(calls, conf.clone(), remedy))
    }

    /// A hook of acme.sh is a function in `deploy/NAME.sh`, there or in another directory.
    fn deploy_hook(&self, hook: &str, home: &Path) -> Option<HookCall> {
        match read_text(&home.join("deploy").join(format!("{hook}.sh"))) {
            Some(script) => self.best(&self.finder.in_text(&script)),
            None => (hook == PROGRAM).then_some(HookCall::Works),
        }
    }

    /// How a shell command calls edgecert, directly or through a script; `None` if it does not.
    fn command(&self, command: &str) -> Option<HookCall> {
        self.best(&self.finder.in_text(command))
    }

    fn best(&self, calls: &[Call]) -> Option<HookCall> {
        calls.iter().map(|call| self.judge(call)).min()
    }

    fn judge(&self, call: &Call) -> HookCall {
        let deploys = match call.action() {
            Action::Deploy { cert, lineage } => !self.is_other(cert, lineage),
            Action::Sync { .. } => true,
            Action::Other => false,
        };
        match self.finder.status(call) {
            _ if !deploys => HookCall::NoDeployment,
            ProgramStatus::Found | ProgramStatus::Unknown => HookCall::Works,
            ProgramStatus::NotInPath => HookCall::NotInPath,
            ProgramStatus::Missing => HookCall::Broken,
        }
    }

    /// Whether the files or the directory that a call names are those of another lineage. A variable may name any.
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

/// How to install the hook with a command that replaces the present one.
fn install(command: &str, has_hook: bool) -> String {
    if has_hook {
        format!("run `{command} 'HOOK; edgecert'`, with the present hook instead of HOOK")
    } else {
        format!("run `{command} edgecert`")
    }
}

/// The deploy hooks of a file in `ConfigObj` syntax.
fn certbot_hooks(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        let key = key.trim().replace('-', "_");
        let value = unquote(value.trim());
        (["renew_hook", "deploy_hook"].contains(&key.as_str()) && !value.is_empty()).then_some(value)
    })
}

/// A value without the quotes around it, and without a comment after them.
fn unquote(value: &str) -> &str {
    let Some(quote) = value.chars().next().filter(|first| "'\"".contains(*first)) else { return value };
    let inner = value.trim_start_matches(quote);
    inner.split(quote).next().unwrap_or_default()
}

/// Decodes a command of acme.sh.
fn decode(value: &str) -> String {
    let inner =
        value.strip_prefix("__ACME_BASE64__START_").and_then(|rest| rest.strip_suffix("__ACME_BASE64__END_"));
    let bytes = inner.and_then(|inner| STANDARD.decode(inner).ok());
    bytes.map_or_else(|| value.to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}
