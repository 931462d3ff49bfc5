//! Finds the API key in a file, a variable or a systemd credential. It is never an argument: every user can read those.

use std::path::Path;

use zeroize::Zeroizing;

use super::SettingsError;
use crate::clock::Deadline;
use crate::env::Env;
use crate::file;
use crate::secret::Secret;
use crate::text;

/// Name of the systemd credential.
const CREDENTIAL: &str = "edgecert-api-key";

/// Maximum size of a key file; no API key is longer.
const MAX_BYTES: u64 = 16 << 10;

/// Reads the API key from the first source that is set: the file `named` for this run, `EDGECERT_API_KEY`, the
/// `configured` file, the systemd credential.
pub(super) fn find(
    named: Option<&impl AsRef<Path>>,
    configured: Option<&impl AsRef<Path>>,
    env: &Env,
    deadline: Deadline,
) -> Result<Option<Secret>, SettingsError> {
    if let Some(path) = named {
        return from_file(path.as_ref(), deadline).map(Some);
    }
    if let Some(text) = env.text("EDGECERT_API_KEY")? {
        return parse(text, "EDGECERT_API_KEY").map(Some);
    }
    if let Some(path) = configured {
        return from_file(path.as_ref(), deadline).map(Some);
    }
    let credential = env.path("CREDENTIALS_DIRECTORY").map(|directory| directory.join(CREDENTIAL));
    match credential.filter(|path| path.exists()) {
        Some(path) => parse(&read(&path, deadline)?, &text::path(&path)).map(Some),
        None => Ok(None),
    }
}

fn from_file(path: &Path, deadline: Deadline) -> Result<Secret, SettingsError> {
    let key = read(path, deadline)?;
    if file::is_open_to_others(path) {
        return Err(SettingsError::OpenToOthers { path: path.to_owned() });
    }
    parse(&key, &text::path(path))
}

fn read(path: &Path, deadline: Deadline) -> Result<Zeroizing<String>, SettingsError> {
    Ok(file::read_text_until(path, MAX_BYTES, deadline)?)
}

/// Parses the key. It is sent in a header, so it is one line of visible ASCII (RFC 6750, section 2.1).
fn parse(text: &str, name: &str) -> Result<Secret, SettingsError> {
    let text = text.trim();
    let invalid = |reason: &str| SettingsError::Invalid { name: name.to_owned(), reason: reason.to_owned() };
    if text.is_empty() {
        return Err(invalid("it holds no API key"));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(invalid("expected one line of visible ASCII characters without spaces"));
    }
    Ok(Secret::new(text.to_owned()))
}
