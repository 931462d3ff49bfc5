//! Checks settings, API key and state directory, without the service.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::accounts;
use super::finding::{DoctorFinding, Subject};
use super::host::Host;
use crate::context::Context;
use crate::error::{ErrorKind, shell_word, write_hint};
use crate::file;
use crate::settings::{Configuration, Layer, Layers, Program, default_paths};
use crate::text;

/// Permissions that a state directory must not give: write for the group, anything for others.
const FORBIDDEN_MODE: u32 = 0o027;

/// Checks the settings of the run, and whether runs can be recorded.
pub(super) fn check(
    context: &Context,
    configuration: &Configuration,
    layers: &Layers<'_>,
) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    match (context.configuration_path(), context.configuration()) {
        (_, Err(error)) => findings.push(DoctorFinding::from_error(Subject::Settings, error)),
        (Some(file), Ok(_)) => findings.push(DoctorFinding::ok(Subject::Settings, text::path(file))),
        (None, Ok(_)) => {
            let places: Vec<String> = default_paths(&context.env).map(|path| text::path(&path)).collect();
            let detail = format!("no configuration file: looked for {}", text::list(&places));
            findings.push(DoctorFinding::ok(Subject::Settings, detail));
        }
    }
    let unusable = layers.unusable().filter(|(key, _)| *key != "base_url");
    findings.extend(unusable.map(|(_, error)| DoctorFinding::from_error(Subject::Settings, error)));
    let base_url = layers.base_url();
    if let (Ok(_), Err(error)) = (&base_url, layers.incomplete(&Layer::default(), None)) {
        findings.push(DoctorFinding::from_error(Subject::Settings, error));
    }
    // With accounts of their own, the entries need no other. An invalid file may hold it.
    let is_expected =
        context.configuration().is_ok() && !(is_unset(layers) && accounts::covers_all(configuration));
    match base_url {
        Ok(url) => findings.push(DoctorFinding::ok(Subject::BaseUrl, url.to_string())),
        Err(error) if error.is_missing && !is_expected => {}
        Err(error) => findings.push(DoctorFinding::from_error(Subject::BaseUrl, error)),
    }
    match layers.api_key() {
        // Only the service can tell whether it is valid.
        Ok(_) => {}
        Err(error) if error.is_missing && !is_expected => {}
        Err(error) => findings.push(DoctorFinding::from_error(Subject::ApiKey, error)),
    }
    findings.extend(accounts::overridden(configuration, layers));
    findings.extend(accounts::keys_of_other_services(configuration));
    findings.extend(context.on_failure().and_then(check_on_failure));
    if let (Some(_), Some(file)) = (context.heartbeat_url(), context.configuration_path()) {
        findings.extend(check_heartbeat_url(file));
    }
    findings.extend(check_state(layers.state_dir().as_deref()));
    findings
}

/// What to do on a host where nothing is set up.
pub(super) fn first_step(
    context: &Context,
    configuration: &Configuration,
    layers: &Layers<'_>,
    host: &Host<'_>,
) -> Option<String> {
    let is_fresh = context.configuration().is_ok() && is_unset(layers);
    let file = if host.uid == 0 { "/etc/edgecert/config.toml" } else { "~/.config/edgecert/config.toml" };
    (is_fresh && !accounts::covers_all(configuration))
        .then(|| format!("write {file} with base_url and api_key_file"))
}

/// Whether nothing names a service or an API key.
fn is_unset(layers: &Layers<'_>) -> bool {
    layers.base_url().is_err_and(|error| error.is_missing)
        && layers.api_key().is_err_and(|error| error.is_missing)
}

/// Reports an `on_failure` program that would not be run.
fn check_on_failure(program: &Program) -> Option<DoctorFinding> {
    let distrust = program.trust().err()?;
    let name = text::path(&program.name);
    let finding = DoctorFinding::from_error(Subject::Settings, distrust);
    let detail = format!("{name}, named by on_failure, would not be run: {}", finding.detail);
    Some(DoctorFinding { detail, ..finding })
}

/// Reports a configuration file that contains a `heartbeat_url`, a secret, and that others can read.
fn check_heartbeat_url(file: &Path) -> Option<DoctorFinding> {
    if !file::is_open_to_others(file) {
        return None;
    }
    let path = text::path(file);
    let remedy = format!("run `chmod o= {}`", shell_word(&path));
    let detail = format!("others can read heartbeat_url, which is a secret, in {path}");
    Some(DoctorFinding::warn(Subject::Settings, detail, remedy))
}

/// Checks whether the state directory is writable, and private.
fn check_state(directory: Option<&Path>) -> Vec<DoctorFinding> {
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
