//! Where the API key comes from: never from argv, which everybody can read.

use std::path::Path;

use super::{Error, Layer};
use crate::env::Env;
use crate::file;
use crate::secret::Secret;
use crate::text;

/// Name of the systemd credential.
const CREDENTIAL: &str = "edgecert-api-key";

/// A key longer than this is some other file.
const MAX_BYTES: u64 = 16 << 10;

/// The first that is set: `--api-key-file`, `EDGECERT_API_KEY`, `EDGECERT_API_KEY_FILE`, the configuration file's
/// `api_key_file`, the systemd credential.
pub(super) fn find(
    flags: &Layer,
    env: &Env,
    environment: &Layer,
    file: &Layer,
) -> Result<Option<Secret>, Error> {
    if let Some(path) = &flags.api_key_file {
        return from_file(path).map(Some);
    }
    if let Some(text) = env.text("EDGECERT_API_KEY")? {
        return checked(text, "EDGECERT_API_KEY").map(Some);
    }
    if let Some(path) = environment.api_key_file.as_ref().or(file.api_key_file.as_ref()) {
        return from_file(path).map(Some);
    }
    let credential = env.path("CREDENTIALS_DIRECTORY").map(|directory| directory.join(CREDENTIAL));
    match credential.filter(|path| path.exists()) {
        Some(path) => checked(&read(&path)?, &text::path(&path)).map(Some),
        None => Ok(None),
    }
}

fn from_file(path: &Path) -> Result<Secret, Error> {
    let key = read(path)?;
    if file::is_open_to_others(path) {
        return Err(Error::OpenToOthers { path: path.to_owned() });
    }
    checked(&key, &text::path(path))
}

fn read(path: &Path) -> Result<zeroize::Zeroizing<String>, Error> {
    Ok(file::read_text(path, MAX_BYTES)?)
}

/// A key goes into a header, so it is one line of visible ASCII (RFC 6750, section 2.1).
fn checked(text: &str, name: &str) -> Result<Secret, Error> {
    let text = text.trim();
    let bad = |reason: &str| Err(Error::Bad { name: name.to_owned(), reason: reason.to_owned() });
    match text {
        "" => bad("it holds no API key"),
        text if text.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(Secret::new(text.to_owned())),
        _ => bad("an API key is one line of visible ASCII characters without spaces"),
    }
}
