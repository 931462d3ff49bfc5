//! Checks settings, API key and state directory, without the service.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::finding::{DoctorFinding, Subject};
use super::host::Host;
use crate::context::Context;
use crate::error::{Diagnostic as _, shell_word, write_hint};
use crate::file;
use crate::settings::{Connection, Layer, Layers, LineageEntry, SettingsError, default_paths};
use crate::text;

/// Permissions that a state directory must not give: write for the group, anything for others.
const FORBIDDEN_MODE: u32 = 0o027;

/// Checks the settings of the run, and whether runs can be recorded.
pub(super) fn check(context: &Context, layers: &Layers<'_>, host: &Host<'_>) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    let file = context.configuration();
    findings.push(match (&file.path, file.require_valid()) {
        (_, Err(error)) => Subject::Settings.failed(error),
        (Some(path), Ok(_)) => Subject::Settings.ok(text::path(path)),
        (None, Ok(_)) => {
            let places = text::list(default_paths(&context.env).map(|path| text::path(&path)));
            Subject::Settings.ok(format!("no configuration file: looked for {places}"))
        }
    });
    let unusable = layers.unusable().filter(|(key, _)| *key != "base_url");
    findings.extend(unusable.map(|(_, error)| Subject::Settings.failed(error.diagnose())));
    let (base_url, api_key) = (layers.base_url(), layers.api_key());
    if let (Ok(_), Err(error)) = (&base_url, layers.incomplete(&Layer::default(), None)) {
        findings.push(Subject::Settings.failed(error));
    }
    let is_reported = |error: &SettingsError| !file.may_hold(error);
    match (base_url, api_key) {
        (Err(url), Err(key)) if url.is_missing && key.is_missing => {
            // Entries have accounts of their own.
            if is_reported(&url) && layers.file.lineages.is_empty() {
                let home = if host.uid == 0 { "/etc" } else { "~/.config" };
                let remedy = format!("write {home}/edgecert/config.toml with base_url and api_key_file");
                findings.push(Subject::BaseUrl.fail("neither a base URL nor an API key is set", remedy));
            }
        }
        (base_url, api_key) => {
            match base_url {
                Ok(url) => findings.push(Subject::BaseUrl.ok(url.to_string())),
                Err(error) => findings.extend(is_reported(&error).then(|| Subject::BaseUrl.failed(error))),
            }
            // Only the service can tell whether a key is valid.
            let unusable = api_key.err().filter(is_reported);
            findings.extend(unusable.map(|error| Subject::ApiKey.failed(error)));
        }
    }
    let top = &layers.file.layer.connection;
    findings.extend(layers.file.lineages.iter().filter_map(|entry| check_entry(entry, top)));
    if let Some(program) = &file.on_failure
        && let Err(distrust) = program.trust()
    {
        let prefix = format!("{}, named by on_failure, would not be run: ", text::path(&program.name));
        findings.push(Subject::Settings.failed(distrust.diagnose().prefixed(prefix)));
    }
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

/// Reports an entry that sends the key of the top of the file to another service, probably by oversight.
fn check_entry(entry: &LineageEntry, top: &Connection) -> Option<DoctorFinding> {
    let Connection { base_url, api_key_file: None, .. } = &entry.layer.connection else { return None };
    let (url, key) = (base_url.as_ref()?, text::path(top.api_key_file.as_ref()?));
    let path = text::path(entry.path());
    let detail = format!("the [[lineage]] entry of {path} sends the API key in {key} to {url}");
    let remedy = "if the key is not for that service, set `api_key_file` in the entry";
    (url != top.base_url.as_ref()?).then(|| Subject::Settings.warn(detail, remedy))
}

/// Checks whether the state directory is writable, and private.
fn check_state(directory: Option<&Path>) -> Vec<DoctorFinding> {
    let Some(directory) = directory else {
        let error = SettingsError::no_state_dir().diagnose();
        return vec![Subject::State.failed(error.with_consequence("deployments are not recorded"))];
    };
    let path = text::path(directory);
    let mut findings = Vec::new();
    // Without it, the nearest one above it.
    let existing = directory.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(directory);
    let probe = existing.join(format!(".edgecert-doctor-{}", std::process::id()));
    if let Err(error) = file::probe(&probe) {
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
