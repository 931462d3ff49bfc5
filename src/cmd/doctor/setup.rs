//! Checks settings, API key and state directory, without the service.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::accounts;
use super::finding::{DoctorFinding, Subject};
use super::host::Host;
use crate::error::{Diagnostic as _, shell_word, write_hint};
use crate::file;
use crate::settings::{EffectiveSetting, Layers, Program, SettingsError, default_paths};
use crate::text;

/// Permissions that a state directory must not give: write for the group, anything for others.
const FORBIDDEN_MODE: u32 = 0o027;

/// Checks the settings of the run, and whether runs can be recorded.
pub(super) fn check(layers: &Layers<'_>, host: &Host<'_>) -> Vec<DoctorFinding> {
    let (file, settings) = (layers.file, layers.effective());
    let mut findings = Vec::new();
    let is_missing = |key: &str| {
        let is_missing = |error: &SettingsError| error.is_missing;
        settings.iter().any(|setting| setting.key == key && setting.error.as_ref().is_some_and(is_missing))
    };
    let is_unset = is_missing("base_url") && is_missing("api_key");
    for EffectiveSetting { key, value, error, .. } in &settings {
        let subject = match key.as_str() {
            "base_url" => Subject::BaseUrl,
            "api_key" => Subject::ApiKey,
            _ => Subject::Settings,
        };
        match (key.as_str(), value, error) {
            (_, _, Some(error)) if error.is_missing && is_unset => {}
            (_, _, Some(error)) => findings.push(subject.failed(error)),
            // Only the service can tell whether a key is valid.
            ("config" | "base_url", Some(value), None) => findings.push(subject.ok(value)),
            ("config", None, None) => {
                let places: Vec<String> = default_paths(layers.env).map(|path| text::path(&path)).collect();
                findings
                    .push(subject.ok(format!("no configuration file: looked for {}", text::list(&places))));
            }
            _ => {}
        }
    }
    if is_unset && !accounts::covers_all(file) {
        let path = if host.uid == 0 { "/etc/edgecert/config.toml" } else { "~/.config/edgecert/config.toml" };
        let remedy = format!("write {path} with base_url and api_key_file");
        findings.push(Subject::BaseUrl.fail("neither a base URL nor an API key is set", remedy));
    }
    findings.extend(accounts::overridden(layers));
    findings.extend(accounts::keys_of_other_services(file));
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
