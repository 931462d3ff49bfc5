//! Reads the files of a lineage, and retries while a client may be replacing them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use zeroize::Zeroizing;

use super::files::{Files, MAX_BYTES};
use super::parse::Bundle;
use crate::cert;
use crate::clock::Deadline;
use crate::file::{self, ReadError};
use crate::leaf::Leaf;
use crate::runtime::offload;
use crate::{pem, text};

/// How long files that are missing, incomplete or mismatched are read again, because a client may be replacing them.
/// Clients take far less between two files of one renewal.
const MAX_WAIT: Duration = Duration::from_secs(2);

const PAUSE: Duration = Duration::from_millis(100);

/// Reads the files once, within the deadline.
pub(crate) fn load(files: &Files, deadline: Deadline) -> Result<Bundle, ReadError> {
    let read = |path: &Path| file::read(path, MAX_BYTES, deadline).map(Zeroizing::new);
    let cert = read(&files.cert)?;
    let issuers = match files.issuers.as_deref().map(read).transpose() {
        Err(error) if error.is_missing() => None,
        issuers => issuers?,
    };
    let key = files.key.as_deref().map(read).transpose()?;
    let [issuers, key] = [&issuers, &key].map(|part| part.as_ref().map(|bytes| bytes.as_slice()));
    Ok(Bundle::from_bytes(files, &cert, issuers, key))
}

/// Reads the files within the deadline, and again while a client may be replacing them. With `in_pool`, other threads
/// read and parse them, so that many lineages do not hold up each other's requests.
pub(crate) async fn load_settled(
    files: Files,
    deadline: Deadline,
    in_pool: bool,
) -> Result<Bundle, ReadError> {
    let last = deadline.or_sooner(Deadline::after(MAX_WAIT));
    loop {
        let read = {
            let files = files.clone();
            move || load(&files, deadline)
        };
        // A pipe may take seconds.
        let loaded = if in_pool || !files.are_regular() { offload(read).await } else { read() };
        let may_be_changing = match &loaded {
            Ok(bundle) => bundle.may_be_changing() && files.are_regular(),
            Err(error) => error.is_missing() && parent(&error.path).exists(),
        };
        if !may_be_changing || last.left() <= PAUSE {
            return loaded;
        }
        log::debug!(
            "{} and its key are incomplete or do not match; reading them again",
            text::path(&files.cert)
        );
        tokio::time::sleep(PAUSE).await;
    }
}

/// Reads the chain once, without the key.
pub(crate) fn load_chain(files: &Files) -> Result<Bundle, ReadError> {
    load(&Files { key: None, ..files.clone() }, file::default_deadline())
}

/// The leaf on disk, which nearly always is `known`; `None` if it cannot be deployed, and the checks say why. The key is
/// not read.
pub(crate) fn leaf(files: &Files, known: Option<&Leaf>) -> Result<Option<Leaf>, ReadError> {
    if let Some(known) = known {
        let bytes = Zeroizing::new(file::read(&files.cert, MAX_BYTES, file::default_deadline())?);
        // If it is the first certificate, the rest need not be parsed.
        if let Some(Some(der)) = pem::certificates(&bytes).next()
            && cert::fingerprint(&der) == known.fingerprint
        {
            return Ok(Some(known.clone()));
        }
    }
    Ok(load_chain(files)?.chain.ok().map(|chain| chain.leaf.to_leaf()))
}

impl Files {
    /// Whether the files can be read again; what was read from a pipe cannot, and files in memory do not change.
    fn are_regular(&self) -> bool {
        let files = [Some(&self.cert), self.issuers.as_ref(), self.key.as_ref()];
        let is_regular = |path: &PathBuf| std::fs::metadata(path).map_or(true, |file| file.is_file());
        !file::is_in_memory(&self.cert) && files.into_iter().flatten().all(is_regular)
    }
}

/// The directory of a file; of a bare name the current directory.
fn parent(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
