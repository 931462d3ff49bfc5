//! Checks settings, API key and state directory, without the service.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::finding::{DoctorFinding, Subject};
use crate::context::Context;
use crate::error::{ErrorKind, shell_word, write_hint};
use crate::file;
use crate::secret::Secret;
use crate::settings::{BaseUrl, Program, SettingsError, default_paths};
use crate::text;

/// Permissions that a state directory must not give: write for the group, anything for others.
const FORBIDDEN_MODE: u32 = 0o027;

/// Names the configuration file, or the places without one. Its faults are separate findings.
pub(super) fn configuration_file(context: &Context) -> Option<DoctorFinding> {
    let detail = match context.configuration_path() {
        Some(_) if context.configuration().is_err() => return None,
        Some(file) => text::path(file),
        None => {
            let places: Vec<String> = default_paths(&context.env).map(|path| text::path(&path)).collect();
            format!("no configuration file: looked for {}", text::list(&places))
        }
    };
    Some(DoctorFinding::ok(Subject::Settings, detail))
}

/// Reports what is wrong with the configuration file and the variables, with the base URL, and with the API key. A
/// setting is not missing if the file that may hold it is invalid.
pub(super) fn check_settings(
    configuration: Result<(), SettingsError>,
    unusable: impl Iterator<Item = SettingsError>,
    service: Option<(Result<BaseUrl, SettingsError>, Result<Secret, SettingsError>)>,
) -> Vec<DoctorFinding> {
    let is_file_invalid = configuration.is_err();
    let errors = configuration.err().into_iter().chain(unusable);
    let mut findings: Vec<DoctorFinding> =
        errors.map(|error| DoctorFinding::from_error(Subject::Settings, error)).collect();
    let Some((base_url, api_key)) = service else { return findings };
    match base_url {
        Err(SettingsError::NoBaseUrl) if is_file_invalid => {}
        Err(error) => findings.push(DoctorFinding::from_error(Subject::BaseUrl, error)),
        Ok(url) => findings.push(DoctorFinding::ok(Subject::BaseUrl, url.to_string())),
    }
    match api_key {
        Err(SettingsError::NoApiKey) if is_file_invalid => {}
        Err(error) => findings.push(DoctorFinding::from_error(Subject::ApiKey, error)),
        // Only the service can tell whether it is valid.
        Ok(_) => {}
    }
    findings
}

/// Reports an `on_failure` program that would not be run.
pub(super) fn check_on_failure(program: &Program) -> Option<DoctorFinding> {
    let distrust = program.trust().err()?;
    let name = text::path(&program.name);
    let finding = DoctorFinding::from_error(Subject::Settings, distrust);
    let detail = format!("{name}, named by on_failure, would not be run: {}", finding.detail);
    Some(DoctorFinding { detail, ..finding })
}

/// Reports a configuration file that contains a `heartbeat_url`, a secret, and that others can read.
pub(super) fn check_heartbeat_url(file: &Path) -> Option<DoctorFinding> {
    if !file::is_open_to_others(file) {
        return None;
    }
    let path = text::path(file);
    let remedy = format!("run `chmod o= {}`", shell_word(&path));
    let detail = format!("others can read heartbeat_url, which is a secret, in {path}");
    Some(DoctorFinding::warn(Subject::Settings, detail, remedy))
}

/// Checks whether the state directory is writable, and private.
pub(super) fn check_state(directory: Option<&Path>) -> Vec<DoctorFinding> {
    let fail = |detail: String, remedy: String| {
        DoctorFinding::fail(Subject::State, ErrorKind::Config, detail, remedy)
    };
    let Some(directory) = directory else {
        let detail =
            "no state directory is set, and there is no home directory; deployments are not recorded";
        let remedy = "set EDGECERT_STATE_DIR, or state_dir in /etc/edgecert/config.toml";
        return vec![fail(detail.into(), remedy.into())];
    };
    let path = text::path(directory);
    let mut findings = Vec::new();
    if let Err(error) = probe(directory) {
        let detail = format!("cannot write to the state directory {path}: {}", file::reason(&error));
        let elsewhere = "name another one with --state-dir";
        findings.push(fail(detail, write_hint(error.kind(), elsewhere)));
    }
    if fs::metadata(directory).is_ok_and(|found| found.permissions().mode() & FORBIDDEN_MODE != 0) {
        let remedy = format!("run `chmod 700 {}`", shell_word(&path));
        findings.push(fail(format!("others can access the state directory {path}"), remedy));
    }
    if findings.is_empty() {
        findings.push(DoctorFinding::ok(Subject::State, path));
    }
    findings
}

/// Writes a file to the directory, or to the nearest existing one above it.
fn probe(directory: &Path) -> io::Result<()> {
    let existing = directory.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(directory);
    file::probe(&existing.join(format!(".edgecert-doctor-{}", std::process::id())))
}
