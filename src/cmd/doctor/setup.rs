//! Settings, API key, state directory: what can be said of them without the service.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use super::finding::{Finding, Subject};
use crate::error::{ErrorKind, shell_word};
use crate::file::reason;
use crate::secret::Secret;
use crate::settings::{BaseUrl, Error};
use crate::text;

/// What is wrong with the configuration file and the variables, with the base URL, and with the API key. What is missing may
/// stand in a file that was not `understood`.
pub(super) fn settings(
    understood: Result<(), Error>,
    unusable: Vec<Error>,
    base_url: Result<BaseUrl, Error>,
    api_key: Result<Secret, Error>,
) -> Vec<Finding> {
    let unread = understood.is_err();
    let errors = understood.err().into_iter().chain(unusable);
    let mut findings: Vec<Finding> =
        errors.map(|error| Finding::from_error(Subject::Settings, error)).collect();
    match base_url {
        Err(Error::NoBaseUrl) if unread => {}
        Err(error) => findings.push(Finding::from_error(Subject::BaseUrl, error)),
        Ok(url) => findings.push(Finding::ok(Subject::BaseUrl, url.to_string())),
    }
    match api_key {
        Err(Error::NoApiKey) if unread => {}
        Err(error) => findings.push(Finding::from_error(Subject::ApiKey, error)),
        // Whether it is the right one, the service tells.
        Ok(_) => {}
    }
    findings
}

/// Whether what is done can be remembered, and is nobody else's to read.
pub(super) fn state(directory: Option<&Path>) -> Vec<Finding> {
    let fail =
        |detail: String, remedy: String| Finding::fail(Subject::State, ErrorKind::Config, detail, remedy);
    let Some(directory) = directory else {
        let detail = "no state directory is set, and there is no home directory; nothing is remembered";
        return vec![fail(
            detail.into(),
            "set EDGECERT_STATE_DIR, or state_dir in /etc/edgecert/config.toml".into(),
        )];
    };
    let shown = text::path(directory);
    let mut findings = Vec::new();
    if let Err(error) = probe(directory) {
        let detail = format!("cannot write into the state directory {shown}: {}", reason(&error));
        findings.push(fail(detail, "name one that is writable with --state-dir, or mend this one".into()));
    }
    if fs::metadata(directory).is_ok_and(|found| found.permissions().mode() & OPEN != 0) {
        let remedy = format!("chmod 700 {}", shell_word(&shown));
        findings.push(fail(format!("the state directory {shown} is open to others"), remedy));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(Subject::State, shown));
    }
    findings
}

/// Others can look into it, or write into it.
const OPEN: u32 = 0o027;

/// Writes a file where the state would be and takes it away again: what the mode says is not all, a file system may be
/// full or read-only. A directory that is not there yet would be made in the nearest one that is.
fn probe(directory: &Path) -> io::Result<()> {
    let there = directory.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(directory);
    let path = there.join(format!(".edgecert-doctor-{}", std::process::id()));
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let written = written.and_then(|mut file| io::Write::write_all(&mut file, b"\n"));
    let removed = fs::remove_file(&path);
    written.and(removed)
}
