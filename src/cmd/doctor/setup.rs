//! Checks settings, API key and state directory, without the service.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::finding::{DoctorFinding, Subject};
use super::host::Host;
use crate::context::Context;
use crate::error::{Diagnostic as _, shell_word, write_hint};
use crate::file;
use crate::settings::{Connection, Layer, Layers, LineageEntry, Program, SettingsError, default_paths};
use crate::text;

/// Permissions that a state directory must not give: write for the group, anything for others.
const FORBIDDEN_MODE: u32 = 0o027;

/// Checks the settings of the run, and whether runs can be recorded.
pub(super) fn check(context: &Context, layers: &Layers<'_>, host: &Host<'_>) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let file = context.configuration();
    match (&file.path, file.require_valid()) {
        (_, Err(error)) => findings.push(Subject::Settings.failed(error)),
        (Some(path), Ok(_)) => findings.push(Subject::Settings.ok(text::path(path))),
        (None, Ok(_)) => {
            let places = text::list(default_paths(&context.env).map(|path| text::path(&path)));
            let detail = format!("no configuration file: looked for {places}");
            findings.push(Subject::Settings.ok(detail));
        }
    }
    let unusable = layers.unusable().filter(|(key, _)| *key != "base_url");
    findings.extend(unusable.map(|(_, error)| Subject::Settings.failed(error)));
    let (base_url, api_key) = (layers.base_url(), layers.api_key());
    if let (Ok(_), Err(error)) = (&base_url, layers.incomplete(&Layer::default(), None)) {
        findings.push(Subject::Settings.failed(error));
    }
    let is_unset = matches!((&base_url, &api_key), (Err(url), Err(key)) if url.is_missing && key.is_missing);
    // An invalid file may hold them.
    let is_certain = file.require_valid().is_ok();
    let names_all = |own: &Connection| own.base_url.is_some() && own.api_key_file.is_some();
    let are_accounts_known =
        !layers.file.lineages.is_empty() && connections(layers).all(|(_, own)| names_all(own));
    if is_certain && is_unset && !are_accounts_known {
        let path = if host.uid == 0 { "/etc/edgecert/config.toml" } else { "~/.config/edgecert/config.toml" };
        let remedy = format!("write {path} with base_url and api_key_file");
        findings.push(Subject::BaseUrl.fail("neither a base URL nor an API key is set", remedy));
    }
    let is_reported = |error: &SettingsError| !error.is_missing || (is_certain && !is_unset);
    match base_url {
        Ok(url) => findings.push(Subject::BaseUrl.ok(url.to_string())),
        Err(error) => findings.extend(is_reported(&error).then(|| Subject::BaseUrl.failed(error))),
    }
    // Only the service can tell whether a key is valid.
    let unusable = api_key.err().filter(is_reported);
    findings.extend(unusable.map(|error| Subject::ApiKey.failed(error)));
    findings.extend(check_entries(layers));
    findings.extend(file.on_failure.as_ref().and_then(check_on_failure));
    if let (Some(_), Some(path)) = (&file.heartbeat_url, &file.path)
        && file::is_open_to_others(path)
    {
        let path = text::path(path);
        let detail = format!("others can read heartbeat_url, which is a secret, in {path}");
        findings.push(Subject::Settings.warn(detail, format!("run `chmod o= {}`", shell_word(&path))));
    }
    findings.extend(check_state(layers.state_dir().as_deref()));
    findings
}

fn connections<'a>(layers: &'a Layers<'_>) -> impl Iterator<Item = (&'a LineageEntry, &'a Connection)> {
    layers.file.lineages.iter().map(|entry| (entry, &entry.layer.connection))
}

/// Reports a flag or a variable that comes before the services of entries, and entries that send the key of the top of the
/// file to another service, probably by oversight.
fn check_entries(layers: &Layers<'_>) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    if let Some(url) = &layers.given.connection.base_url {
        let is_hidden = |own: &Connection| own.base_url.as_ref().is_some_and(|own| own != url);
        let hidden = connections(layers).filter(|(_, own)| is_hidden(own)).count();
        let detail = format!(
            "{url}, from a flag or a variable, overrides the base_url in {hidden} of the [[lineage]] entries"
        );
        let remedy = "set it as base_url in the configuration file instead";
        findings.extend((hidden > 0).then(|| Subject::Settings.warn(detail, remedy)));
    }
    let Connection { base_url: Some(global), api_key_file: Some(key), .. } = &layers.file.layer.connection
    else {
        return findings;
    };
    for (entry, own) in connections(layers).filter(|(_, own)| own.api_key_file.is_none()) {
        if let Some(url) = own.base_url.as_ref().filter(|url| *url != global) {
            let (path, key) = (text::path(entry.path()), text::path(key));
            let detail = format!("the [[lineage]] entry of {path} sends the API key in {key} to {url}");
            let remedy = "if the key is not for that service, set `api_key_file` in the entry";
            findings.push(Subject::Settings.warn(detail, remedy));
        }
    }
    findings
}

/// Reports an `on_failure` program that would not be run.
fn check_on_failure(program: &Program) -> Option<DoctorFinding> {
    let distrust = program.trust().err()?.diagnose();
    let name = text::path(&program.name);
    let prefix = format_args!("{name}, named by on_failure, would not be run: ");
    Some(Subject::Settings.failed(distrust.prefixed(prefix)))
}

/// Checks whether the state directory is writable, and private.
fn check_state(directory: Option<&Path>) -> Vec<DoctorFinding> {
    let Some(directory) = directory else {
        let detail =
            "no state directory is set, and there is no home directory; deployments are not recorded";
        let remedy = "set EDGECERT_STATE_DIR, or state_dir in /etc/edgecert/config.toml";
        return vec![Subject::State.fail(detail, remedy)];
    };
    let path = text::path(directory);
    let mut findings = Vec::new();
    if let Err(error) = probe(directory) {
        let detail = format!("cannot write to the state directory {path}: {}", file::reason(&error));
        let remedy = write_hint(error.kind(), "name another one with --state-dir");
        findings.push(Subject::State.fail(detail, remedy));
    }
    if fs::metadata(directory).is_ok_and(|found| found.permissions().mode() & FORBIDDEN_MODE != 0) {
        let detail = format!("others can access the state directory {path}");
        findings.push(Subject::State.fail(detail, format!("run `chmod 700 {}`", shell_word(&path))));
    }
    if findings.is_empty() {
        findings.push(Subject::State.ok(path));
    }
    findings
}

/// Writes a file to the directory, or to the nearest existing one above it.
fn probe(directory: &Path) -> io::Result<()> {
    let existing = directory.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(directory);
    file::probe(&existing.join(format!(".edgecert-doctor-{}", std::process::id())))
}
