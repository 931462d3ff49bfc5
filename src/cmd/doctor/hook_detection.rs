//! Detects whether the ACME client of a lineage calls edgecert after a renewal, from the client's own configuration.
//!
//! Findings never quote the commands: they may contain secrets.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::host::{Host, entries, file_name, is_executable, read_text};
use crate::error::shell_word;
use crate::source::{AcmeClient, Source};
use crate::text;

/// Part of every command or script that calls edgecert.
pub(super) const PROGRAM: &str = "edgecert";

/// The hook of a lineage. `config` is the file that configures it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HookStatus {
    /// The client calls edgecert.
    Installed { config: PathBuf },
    /// The client calls edgecert without a path, and it is not in the usual directories.
    NotInPath { config: PathBuf },
    /// The client calls a file that does not exist or is not executable.
    Broken { config: PathBuf },
    /// The client does not call edgecert; `command` installs the hook.
    NotInstalled { config: PathBuf, command: String },
    /// The client does not record its hooks.
    Unknown,
}

/// How a command calls edgecert, the best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum HookCall {
    Works,
    NotInPath,
    Broken,
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
        command: String,
    ) -> Self {
        let calls = calls.filter_map(|(config, call)| Some((config, call?)));
        match calls.min_by_key(|(_, call)| *call) {
            Some((config, HookCall::Works)) => Self::Installed { config },
            Some((config, HookCall::NotInPath)) => Self::NotInPath { config },
            Some((config, HookCall::Broken)) => Self::Broken { config },
            None => Self::NotInstalled { config: client_config, command },
        }
    }
}

/// Detects the hook of a lineage.
pub(super) fn detect(source: &Source, host: &Host<'_>) -> HookStatus {
    let acme_sh = || acme_sh(source.files.key.as_deref()?, host);
    let status = match source.client {
        AcmeClient::AcmeSh => acme_sh(),
        AcmeClient::Certbot => certbot(source.files.cert.parent(), host),
        // Files given one by one may be certbot's or acme.sh's.
        AcmeClient::Files => certbot(source.files.cert.parent(), host).or_else(acme_sh),
        AcmeClient::Lego | AcmeClient::Dehydrated | AcmeClient::Kubernetes => None,
    };
    status.unwrap_or(HookStatus::Unknown)
}

/// `live/NAME` has its configuration in `renewal/NAME.conf`; hooks of all lineages are in `cli.ini` and in
/// `renewal-hooks/deploy`.
fn certbot(lineage: Option<&Path>, host: &Host<'_>) -> Option<HookStatus> {
    let lineage = lineage?;
    let certbot = lineage.parent()?.parent()?;
    let renewal = certbot.join("renewal").join(format!("{}.conf", file_name(lineage)));
    let renewal_text = read_text(&renewal)?;
    let cli = certbot.join("cli.ini");
    let cli_text = read_text(&cli).unwrap_or_default();
    let own = certbot_hooks(&renewal_text).map(|command| (renewal.clone(), call(command, host)));
    let global = certbot_hooks(&cli_text).map(|command| (cli.clone(), call(command, host)));
    let directory = entries(&certbot.join("renewal-hooks/deploy")).into_iter();
    let directory = directory.map(|entry| {
        let call = entry_call(&entry);
        (entry, call)
    });
    let name = shell_word(&text::sanitize(file_name(lineage)));
    let command = format!("certbot reconfigure --cert-name {name} --deploy-hook edgecert");
    Some(HookStatus::from_calls(own.chain(global).chain(directory), renewal.clone(), command))
}

/// The deploy hooks of a file in `ConfigObj` syntax.
fn certbot_hooks(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        let key = key.trim().replace('-', "_");
        let value = value.trim().trim_matches(['"', '\'']);
        (["renew_hook", "deploy_hook"].contains(&key.as_str()) && !value.is_empty()).then_some(value)
    })
}

/// An entry of `renewal-hooks/deploy`; certbot skips names that end in `~`.
fn entry_call(entry: &Path) -> Option<HookCall> {
    let target = std::fs::read_link(entry).unwrap_or_else(|_| entry.to_owned());
    let is_edgecert = [entry, &target].iter().any(|path| file_name(path).contains(PROGRAM));
    if file_name(entry).ends_with('~') || !(is_edgecert || read_text(entry)?.contains(PROGRAM)) {
        return None;
    }
    Some(if is_executable(entry) { HookCall::Works } else { HookCall::Broken })
}

/// acme.sh has `DOMAIN.conf` beside the key: shell assignments, with commands in base64.
fn acme_sh(key: &Path, host: &Host<'_>) -> Option<HookStatus> {
    let conf = key.with_extension("conf");
    let conf_text = read_text(&conf)?;
    let value = |name: &str| {
        let line = conf_text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.map(|value| value.trim().trim_matches('\''))
    };
    let domain = value("Le_Domain")?;
    let commands = ["Le_ReloadCmd", "Le_RenewHook"].into_iter().filter_map(value).map(decode);
    let commands = commands.map(|command| call(&command, host));
    let home = key.parent()?.parent()?;
    let hooks = value("Le_DeployHook").unwrap_or_default().split(',');
    let hooks = hooks.map(|hook| deploy_hook(hook.trim(), home));
    let ecc = if file_name(key.parent()?).ends_with("_ecc") { " --ecc" } else { "" };
    let domain = shell_word(&text::sanitize(domain));
    let command = format!("acme.sh --install-cert -d {domain}{ecc} --reloadcmd edgecert");
    let calls = commands.chain(hooks).map(|call| (conf.clone(), call));
    Some(HookStatus::from_calls(calls, conf.clone(), command))
}

/// A hook of acme.sh is a function in `deploy/NAME.sh`.
fn deploy_hook(hook: &str, home: &Path) -> Option<HookCall> {
    let script = home.join("deploy").join(format!("{hook}.sh"));
    let is_edgecert = hook == PROGRAM || read_text(&script).is_some_and(|script| script.contains(PROGRAM));
    is_edgecert.then_some(HookCall::Works)
}

/// Decodes a command of acme.sh.
fn decode(value: &str) -> String {
    let inner =
        value.strip_prefix("__ACME_BASE64__START_").and_then(|rest| rest.strip_suffix("__ACME_BASE64__END_"));
    let bytes = inner.and_then(|inner| STANDARD.decode(inner).ok());
    bytes.map_or_else(|| value.to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// How a shell command calls edgecert, itself or by a script; `None`: it does not.
fn call(command: &str, host: &Host<'_>) -> Option<HookCall> {
    let is_edgecert = |word: &&str| file_name(Path::new(word)).contains(PROGRAM);
    let separators = |c: char| c.is_whitespace() || ";|&()'\"=".contains(c);
    let direct = command.split(separators).find(is_edgecert);
    let script = || {
        let first = command.split_whitespace().next().filter(|first| first.starts_with('/'))?;
        read_text(&host.at(first))?.contains(PROGRAM).then_some(first)
    };
    let program = direct.or_else(script)?;
    let is_bare = !program.contains('/');
    // `~/bin/edgecert` and `$HOME/bin/edgecert` are for the shell to expand.
    let is_checkable = is_bare || program.starts_with('/');
    Some(match host.has_program(program) {
        false if is_bare => HookCall::NotInPath,
        false if is_checkable => HookCall::Broken,
        _ => HookCall::Works,
    })
}
