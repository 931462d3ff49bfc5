//! Finds the API key in a file, a variable or a systemd credential. It is never an argument: every user can read those.

use std::path::{Path, PathBuf};

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

/// The variable that holds the key itself.
pub(super) const VARIABLE: &str = "EDGECERT_API_KEY";

/// Where the API key is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyLocation {
    File(PathBuf),
    Variable,
    Credential(PathBuf),
}

impl KeyLocation {
    /// The first that is set: the file `named` for this run, the variable, the `configured` file, the systemd
    /// credential.
    pub(super) fn find(
        named: Option<&impl AsRef<Path>>,
        configured: Option<&impl AsRef<Path>>,
        env: &Env,
    ) -> Option<Self> {
        let file = |path: &Path| Self::File(path.to_owned());
        let named = named.map(|path| file(path.as_ref()));
        let variable = || env.raw(VARIABLE).map(|_| Self::Variable);
        let configured = || configured.map(|path| file(path.as_ref()));
        let credential = || Some(env.path("CREDENTIALS_DIRECTORY")?.join(CREDENTIAL));
        let credential = || credential().filter(|path| path.exists()).map(Self::Credential);
        named.or_else(variable).or_else(configured).or_else(credential)
    }

    /// Reads the key.
    pub(super) fn read(&self, env: &Env, deadline: Deadline) -> Result<Secret, SettingsError> {
        match self {
            Self::File(path) => from_file(path, deadline),
            Self::Variable => parse(env.text(VARIABLE)?.unwrap_or_default(), VARIABLE),
            Self::Credential(path) => parse(&read(path, deadline)?, &text::path(path)),
        }
    }
}

fn from_file(path: &Path, deadline: Deadline) -> Result<Secret, SettingsError> {
    let key = read(path, deadline)?;
    if file::is_open_to_others(path) {
        let error = SettingsError::new(format_args!("others can read the API key file {}", text::path(path)));
        return Err(match file::is_mounted_secret(path) {
            true => error.hint("set defaultMode: 0440 where the secret is mounted"),
            false => error.hint(format!("run `chmod o= {}`", text::shell_word(&path.to_string_lossy()))),
        });
    }
    parse(&key, &text::path(path))
}

fn read(path: &Path, deadline: Deadline) -> Result<Zeroizing<String>, SettingsError> {
    Ok(file::read_text(path, MAX_BYTES, deadline)?)
}

/// Parses the key. It is sent in a header, so it is one line of visible ASCII (RFC 6750, section 2.1).
fn parse(text: &str, name: &str) -> Result<Secret, SettingsError> {
    let text = text.trim();
    let invalid = |reason: &str| SettingsError::invalid(name, reason);
    if text.is_empty() {
        return Err(invalid("it holds no API key"));
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(invalid("expected one line of visible ASCII characters without spaces"));
    }
    Ok(Secret::new(text.to_owned()))
}
