//! Finds the API key in a file, a variable or a systemd credential. It is never an argument: every user can read those.

use std::io::ErrorKind as Io;
use std::path::PathBuf;

use super::SettingsError;
use crate::clock::Deadline;
use crate::env::Env;
use crate::file::{self, ReadError};
use crate::secret::Secret;
use crate::text;

/// Name of the systemd credential.
const CREDENTIAL: &str = "edgecert-api-key";

/// Maximum size of a key file; no API key is longer.
const MAX_BYTES: u64 = 16 << 10;

/// The variable that holds the key itself.
pub(super) const VARIABLE: &str = "EDGECERT_API_KEY";

/// Where the API key is.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum KeyLocation {
    File(PathBuf),
    Variable,
    Credential(PathBuf),
}

impl KeyLocation {
    /// The first that is set: the file `named` for this run, the variable, the `configured` file, the systemd
    /// credential.
    pub(super) fn find(named: Option<&PathBuf>, configured: Option<&PathBuf>, env: &Env) -> Option<Self> {
        let file = |path: &PathBuf| Self::File(path.clone());
        let credential = || Some(env.path("CREDENTIALS_DIRECTORY")?.join(CREDENTIAL));
        let credential = || credential().filter(|path| path.exists()).map(Self::Credential);
        let named = named.map(file).or_else(|| env.raw(VARIABLE).map(|_| Self::Variable));
        named.or_else(|| configured.map(file)).or_else(credential)
    }

    /// Reads the key.
    pub(super) fn read(&self, env: &Env, deadline: Deadline) -> Result<Secret, SettingsError> {
        let path = match self {
            Self::Variable => {
                let key = env.text(VARIABLE).map_err(SettingsError::new)?;
                return parse(key.unwrap_or_default(), VARIABLE);
            }
            Self::File(path) | Self::Credential(path) => path,
        };
        let key = file::read_text(path, MAX_BYTES, deadline);
        let is_no_file =
            |error: &ReadError| matches!(error.kind, Io::NotFound | Io::NotADirectory | Io::InvalidFilename);
        if path.is_relative() && key.as_ref().is_err_and(is_no_file) {
            let message =
                "the API key file does not exist; its name is not shown, because it may be the key itself";
            let hint = "write the key to a file and give its absolute path";
            return Err(SettingsError::new(message).hint(hint));
        }
        let (key, name) = (key?, text::path(path));
        if matches!(self, Self::File(_)) && file::is_open_to_others(path) {
            let error = SettingsError::new(format_args!("others can read the API key file {name}"));
            return Err(if file::is_mounted_secret(path) {
                error.hint("set defaultMode: 0440 where the secret is mounted")
            } else {
                error.hint(format!("run `chmod o= {}`", text::shell_word(&path.to_string_lossy())))
            });
        }
        parse(&key, &name)
    }
}

/// Parses the key. It is sent in a header, so it is one line of visible ASCII (RFC 6750, section 2.1).
fn parse(text: &str, name: &str) -> Result<Secret, SettingsError> {
    let text = text.trim();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let expected = "expected an API key: one line of visible ASCII characters without spaces";
        return Err(SettingsError::new(format_args!("{name}: {expected}")));
    }
    Ok(Secret::new(text.to_owned()))
}
