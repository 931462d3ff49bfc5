//! Reads the files of a lineage, and retries while a client may be replacing them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::files::{Files, MAX_BYTES};
use super::parse::Bundle;
use crate::cert::{self, Certificate};
use crate::clock::Deadline;
use crate::file::{self, ReadError};
use crate::leaf::Leaf;
use crate::runtime::offload;
use crate::text;

/// How long files that are missing, incomplete or mismatched are read again, because a client may be replacing them.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) limit: Duration,
    pub(crate) pause: Duration,
}

impl Wait {
    /// Wait of a deployment. Clients take far less between two files of one renewal.
    pub(crate) const FOR_CLIENT: Self =
        Self { limit: Duration::from_secs(2), pause: Duration::from_millis(100) };
}

/// The leaf of a lineage compared with the known one.
pub(crate) enum LeafPeek {
    /// It is the known leaf.
    Known,
    Other(Box<Certificate>),
    /// There is no leaf that could be deployed; the checks say why.
    Unusable,
}

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
    wait: Wait,
    in_pool: bool,
) -> Result<Bundle, ReadError> {
    let mut waited = Duration::ZERO;
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
        if !may_be_changing || waited >= wait.limit || deadline.left() <= wait.pause {
            return loaded;
        }
        log::debug!(
            "{} and its key are incomplete or do not match; reading them again",
            text::path(&files.cert)
        );
        tokio::time::sleep(wait.pause).await;
        waited += wait.pause;
    }
}

/// Reads the chain once, without the key.
pub(crate) fn load_chain(files: &Files) -> Result<Bundle, ReadError> {
    load(&Files { key: None, ..files.clone() }, file::default_deadline())
}

/// Compares the leaf on disk with the known fingerprint. The key is not read.
pub(crate) fn peek_leaf(files: &Files, known: Option<&str>) -> Result<LeafPeek, ReadError> {
    let bytes = Zeroizing::new(file::read(&files.cert, MAX_BYTES, file::default_deadline())?);
    // Nearly always the file begins with the known leaf, and the rest need not be parsed.
    if known.is_some() && first_certificate(&bytes).map(|der| cert::fingerprint(&der)).as_deref() == known {
        return Ok(LeafPeek::Known);
    }
    Ok(match load_chain(files)?.chain {
        Ok(chain) if known == Some(chain.leaf.fingerprint().as_str()) => LeafPeek::Known,
        Ok(chain) => LeafPeek::Other(Box::new(chain.leaf)),
        Err(_) => LeafPeek::Unusable,
    })
}

/// The leaf on disk; `None` if it cannot be read.
pub(crate) fn leaf(files: &Files) -> Option<Leaf> {
    match peek_leaf(files, None) {
        Ok(LeafPeek::Other(leaf)) => Some(leaf.to_leaf()),
        _ => None,
    }
}

/// Decodes the certificate that begins a PEM file; `None` if the file has to be parsed in full.
fn first_certificate(bytes: &[u8]) -> Option<Vec<u8>> {
    let rest = bytes.strip_prefix(b"-----BEGIN CERTIFICATE-----\n")?;
    let (body, end) = rest.split_at_checked(rest.iter().position(|byte| *byte == b'-')?)?;
    let body: Vec<u8> = body.iter().copied().filter(|byte| *byte != b'\n').collect();
    STANDARD.decode(body).ok().filter(|_| end.starts_with(b"-----END CERTIFICATE-----\n"))
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
