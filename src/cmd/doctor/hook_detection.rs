//! Whether the ACME client calls edgecert when it has renewed a lineage, as its own records tell.
//!
//! Commands are looked at and never shown: a secret may stand in one.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::host::{Host, entries, is_executable, name, text};
use crate::source::{Client, Source};

/// What a client does with a lineage that it has renewed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attachment {
    /// It calls edgecert; `place` says so.
    Calls { place: PathBuf },
    /// It calls edgecert by a name that it may not find.
    CallsByName { place: PathBuf },
    /// It calls something that is not there, or cannot be started.
    CallsNothing { place: PathBuf },
    /// It does not call edgecert; its record is `place`, and `hook_detection` mends that.
    Missing { place: PathBuf, hook_detection: String },
    /// Nothing tells.
    Unseen,
}

/// How one command calls edgecert.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Works,
    ByName,
    Broken,
}

/// Looks into the records of the client that keeps a lineage.
pub(super) fn look(source: &Source, host: &Host<'_>) -> Attachment {
    let acme_sh = || acme_sh(source.files.key.as_deref()?, host);
    let found = match source.client {
        Client::AcmeSh => acme_sh(),
        Client::Certbot => certbot(source.files.cert.parent(), host),
        // The files of either may have been named one by one.
        Client::Files => certbot(source.files.cert.parent(), host).or_else(acme_sh),
        Client::Lego | Client::Dehydrated | Client::Kubernetes => None,
    };
    found.unwrap_or(Attachment::Unseen)
}

/// `live/NAME` has its record in `renewal/NAME.conf`; there are hooks for all lineages, too.
fn certbot(lineage: Option<&Path>, host: &Host<'_>) -> Option<Attachment> {
    let lineage = lineage?;
    let config = lineage.parent()?.parent()?;
    let record = config.join("renewal").join(format!("{}.conf", name(lineage)));
    let own = text(&record)?;
    let cli = config.join("cli.ini");
    let global = text(&cli).unwrap_or_default();
    let commands = certbot_hooks(&own).map(|command| (record.clone(), call(command, host)));
    let all = certbot_hooks(&global).map(|command| (cli.clone(), call(command, host)));
    let directory = entries(&config.join("renewal-hooks/deploy"));
    let directory = directory.into_iter().map(|entry| {
        let found = entry_call(&entry);
        (entry, found)
    });
    let word = crate::error::shell_word(&crate::text::sanitize(name(lineage)));
    let hook_detection = format!("certbot reconfigure --cert-name {word} --deploy-hook edgecert");
    Some(best(commands.chain(all).chain(directory), record.clone(), hook_detection))
}

/// The commands of a renewal file or of `cli.ini`, in the syntax of `ConfigObj`.
fn certbot_hooks(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        let key = key.trim().replace('-', "_");
        let value = value.trim().trim_matches(['"', '\'']);
        (["renew_hook", "deploy_hook"].contains(&key.as_str()) && !value.is_empty()).then_some(value)
    })
}

/// An entry of `renewal-hooks/deploy`; certbot leaves out those that end in `~`.
fn entry_call(entry: &Path) -> Option<Call> {
    let target = std::fs::read_link(entry).unwrap_or_else(|_| entry.to_owned());
    let is_edgecert = [entry, &target].iter().any(|path| name(path).contains(PROGRAM));
    if name(entry).ends_with('~') || !(is_edgecert || text(entry)?.contains(PROGRAM)) {
        return None;
    }
    Some(if is_executable(entry) { Call::Works } else { Call::Broken })
}

/// acme.sh keeps `DOMAIN.conf` beside the key: assignments of the shell, commands in base64.
fn acme_sh(key: &Path, host: &Host<'_>) -> Option<Attachment> {
    let record = key.with_extension("conf");
    let conf = text(&record)?;
    let value = |name: &str| {
        let line = conf.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.map(|value| value.trim().trim_matches('\''))
    };
    let domain = value("Le_Domain")?;
    let commands = ["Le_ReloadCmd", "Le_RenewHook"].into_iter().filter_map(value).map(decoded);
    let commands = commands.map(|command| call(&command, host));
    let home = key.parent()?.parent()?;
    let hooks = value("Le_DeployHook").unwrap_or_default().split(',');
    let hooks = hooks.map(|hook| deploy_hook(hook.trim(), home));
    let ecc = if name(key.parent()?).ends_with("_ecc") { " --ecc" } else { "" };
    let word = crate::error::shell_word(&crate::text::sanitize(domain));
    let hook_detection = format!("acme.sh --install-cert -d {word}{ecc} --reloadcmd edgecert");
    Some(best(commands.chain(hooks).map(|call| (record.clone(), call)), record.clone(), hook_detection))
}

/// `NAME` is a function in `deploy/NAME.sh`.
fn deploy_hook(hook: &str, home: &Path) -> Option<Call> {
    let script = home.join("deploy").join(format!("{hook}.sh"));
    let is_edgecert = hook == PROGRAM || text(&script).is_some_and(|script| script.contains(PROGRAM));
    is_edgecert.then_some(Call::Works)
}

/// A command as it was given to acme.sh.
fn decoded(value: &str) -> String {
    let inner =
        value.strip_prefix("__ACME_BASE64__START_").and_then(|rest| rest.strip_suffix("__ACME_BASE64__END_"));
    let bytes = inner.and_then(|inner| STANDARD.decode(inner).ok());
    bytes.map_or_else(|| value.to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// What a command or a script that calls edgecert has in it.
pub(super) const PROGRAM: &str = "edgecert";

/// How a command of the shell calls edgecert, itself or by a script; `None`: it does not.
fn call(command: &str, host: &Host<'_>) -> Option<Call> {
    let word = |word: &&str| name(Path::new(word)).contains(PROGRAM);
    let separators = |c: char| c.is_whitespace() || ";|&()'\"=".contains(c);
    let direct = command.split(separators).find(word);
    let script = || {
        let first = command.split_whitespace().next().filter(|first| first.starts_with('/'))?;
        text(&host.at(first))?.contains(PROGRAM).then_some(first)
    };
    let program = direct.or_else(script)?;
    let by_name = !program.contains('/');
    // `~/bin/edgecert` and `$HOME/bin/edgecert` are for the shell.
    let is_clear = by_name || program.starts_with('/');
    Some(match host.has_program(program) {
        false if by_name => Call::ByName,
        false if is_clear => Call::Broken,
        _ => Call::Works,
    })
}

/// The best of all calls; where there is none, the hook is missing.
fn best(
    calls: impl Iterator<Item = (PathBuf, Option<Call>)>,
    record: PathBuf,
    hook_detection: String,
) -> Attachment {
    let calls: Vec<(PathBuf, Call)> = calls.filter_map(|(place, call)| Some((place, call?))).collect();
    let of = |wanted: Call| calls.iter().find(|(_, call)| *call == wanted).map(|(place, _)| place.clone());
    let works = of(Call::Works).map(|place| Attachment::Calls { place });
    works
        .or_else(|| of(Call::ByName).map(|place| Attachment::CallsByName { place }))
        .or_else(|| of(Call::Broken).map(|place| Attachment::CallsNothing { place }))
        .unwrap_or(Attachment::Missing { place: record, hook_detection })
}
