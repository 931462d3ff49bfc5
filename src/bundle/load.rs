//! Reads the files of a lineage, again where a client may be switching them at this moment.

use std::path::Path;
use std::time::Duration;

use zeroize::Zeroizing;

use super::{Bundle, Files, MAX_BYTES};
use crate::cert::{self, Certificate};
use crate::file::{self, ReadError};
use crate::{pem, text};

/// How long a pair that does not fit is read again, because a client may be switching it at this moment.
const SWITCHING: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);

/// Reads the files; a pair that is incomplete or does not fit is read again for up to two seconds.
pub(crate) fn load(files: &Files) -> Result<Bundle, ReadError> {
    let mut waited = Duration::ZERO;
    let mut before: Option<(Contents, Bundle)> = None;
    loop {
        let read = Contents::read(files).map(|contents| match before.take() {
            Some((same, bundle)) if same == contents => (same, bundle),
            _ => {
                let bundle = contents.understood(files);
                (contents, bundle)
            }
        });
        let may_be_switching = match &read {
            Ok((_, bundle)) => !bundle.fits() && files.can_be_read_again(),
            Err(unreadable) => unreadable.is_missing() && directory_of(&unreadable.path).exists(),
        };
        if !may_be_switching || waited >= SWITCHING {
            return read.map(|(_, bundle)| bundle);
        }
        log::debug!("{} and its key do not fit yet; reading them again", text::path(&files.cert));
        before = read.ok();
        std::thread::sleep(PAUSE);
        waited += PAUSE;
    }
}

/// Reads the certificates once, for who wants to know of them only: no key is opened, and nothing is waited for.
pub(crate) fn look(files: &Files) -> Result<Bundle, ReadError> {
    let files = Files { key: None, ..files.clone() };
    Ok(Contents::read(&files)?.understood(&files))
}

impl Files {
    /// What came out of a pipe is gone.
    fn can_be_read_again(&self) -> bool {
        let files = [Some(&self.cert), self.issuers.as_ref(), self.key.as_ref()];
        files.into_iter().flatten().all(|path| std::fs::metadata(path).map_or(true, |file| file.is_file()))
    }
}

/// What is in the files.
#[derive(PartialEq)]
struct Contents {
    cert: Zeroizing<Vec<u8>>,
    issuers: Option<Zeroizing<Vec<u8>>>,
    key: Option<Zeroizing<Vec<u8>>>,
}

impl Contents {
    fn read(files: &Files) -> Result<Self, ReadError> {
        let read = |path: &Path| file::read_secret(path, MAX_BYTES);
        let cert = read(&files.cert)?;
        let issuers = match files.issuers.as_deref().map(read) {
            Some(Err(unreadable)) if !unreadable.is_missing() => return Err(unreadable),
            Some(Ok(issuers)) => Some(issuers),
            Some(Err(_)) | None => None,
        };
        let key = files.key.as_deref().map(read).transpose()?;
        Ok(Self { cert, issuers, key })
    }

    fn understood(&self, files: &Files) -> Bundle {
        let [issuers, key] =
            [&self.issuers, &self.key].map(|part| part.as_ref().map(|bytes| bytes.as_slice()));
        Bundle::from_bytes(files, &self.cert, issuers, key)
    }
}

/// The directory that a file would be in; of a bare name the current one.
fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What a look at a certificate file tells.
pub(crate) enum LeafPeek {
    /// It begins with the leaf that is known already.
    Known,
    Leaf(Box<Certificate>),
    /// Nothing that could be deployed; why is for the checks to say.
    Unclear,
}

/// Looks whether a lineage has another leaf than the one with this fingerprint; the key is not read.
pub(crate) fn peek_leaf(files: &Files, known: Option<&str>) -> Result<LeafPeek, ReadError> {
    let bytes = file::read_secret(&files.cert, MAX_BYTES)?;
    let first = pem::parse(&bytes).blocks.into_iter().find_map(|block| match block {
        pem::Block::Certificate(der) => Some(der),
        _ => None,
    });
    let is_known = |der: &Vec<u8>| known == Some(cert::fingerprint(der).as_str());
    if first.as_ref().is_some_and(is_known) {
        return Ok(LeafPeek::Known);
    }
    Ok(match look(files)?.chain {
        Ok(chain) if known == Some(chain.leaf.fingerprint().as_str()) => LeafPeek::Known,
        Ok(chain) => LeafPeek::Leaf(Box::new(chain.leaf)),
        Err(_) => LeafPeek::Unclear,
    })
}
