//! Reads the files of a lineage, and retries while a client may be replacing them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use zeroize::Zeroizing;

use super::{Bundle, Files, MAX_BYTES};
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
    let key = match files.key.as_deref() {
        // Both may come through one pipe.
        Some(path) if path == files.cert => Some(cert.clone()),
        path => path.map(read).transpose()?,
    };
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
    let mut waited = Duration::ZERO;
    loop {
        let own = files.clone();
        let read = move || load(&own, deadline);
        // A pipe may take seconds.
        let loaded = if in_pool || !files.are_regular() { offload(read).await } else { read() };
        let may_be_changing = match &loaded {
            Ok(bundle) => bundle.may_be_changing() && files.are_regular(),
            Err(error) => error.is_missing() && parent(&error.path).exists(),
        };
        if !may_be_changing || waited >= MAX_WAIT || deadline.left() <= PAUSE {
            return loaded;
        }
        let file = text::path(&files.cert);
        log::debug!("{file} and its key are incomplete or do not match; reading them again");
        tokio::time::sleep(PAUSE).await;
        waited += PAUSE;
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

#[cfg(test)]
mod tests {
    use std::fs;

    use edgecert_workload::Authority;
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn leaf_on_disk_is_compared_with_the_known_one() {
        let directory = TempDir::new().unwrap();
        let chain = Authority::new("Test").unwrap().issue(&["a.example".into()]).unwrap().fullchain();
        let files = Files { cert: directory.path().join("cert.pem"), issuers: None, key: None };
        let read = |known: Option<&Leaf>| leaf(&files, known);
        assert!(read(None).is_err_and(|error| error.is_missing()));
        for text in [chain.clone(), chain.replace('\n', "\r\n")] {
            fs::write(&files.cert, text).unwrap();
            let own = read(None).unwrap().unwrap();
            let other = Leaf { fingerprint: "aa".into(), ..own.clone() };
            assert_eq!(read(Some(&other)).unwrap().as_ref(), Some(&own));
            // The known leaf is returned as it is; the file is not parsed.
            let known = Leaf { names: Vec::new(), ..own };
            assert_eq!(read(Some(&known)).unwrap(), Some(known));
        }
        fs::write(&files.cert, "hello").unwrap();
        assert_eq!(read(None).unwrap(), None);
    }

    #[test]
    fn longest_name_is_complete() {
        let directory = TempDir::new().unwrap();
        let name = format!("{}.", "a".repeat(60)).repeat(4) + "example";
        let chain = Authority::new("Test").unwrap().issue(&[name.as_str().into()]).unwrap().fullchain();
        let files = Files { cert: directory.path().join("cert.pem"), issuers: None, key: None };
        fs::write(&files.cert, chain).unwrap();
        assert_eq!(leaf(&files, None).unwrap().unwrap().names, [name]);
    }

    #[test]
    fn parent_of_a_bare_name_is_the_current_directory() {
        assert_eq!([Path::new("x"), Path::new("/a/b")].map(parent), [Path::new("."), Path::new("/a")]);
    }

    #[test]
    fn files_may_be_in_the_middle_of_a_renewal() {
        let authority = Authority::new("Test").unwrap();
        let [one, other] = [(); 2].map(|()| authority.issue(&["a.example".into()]).unwrap());
        let (chain, key) = (one.fullchain(), one.key.as_str());
        let encrypted = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let files = Files { cert: "/dev/shm".into(), issuers: None, key: Some("/dev/null".into()) };
        for (cert, key, expected) in [
            (chain.as_str(), Some(key), false),
            (&chain, None, false),
            (&chain, Some(other.key.as_str()), true),
            (&chain, Some(&key[..key.len() / 2]), true),
            (&chain, Some(encrypted), false),
            // In the first block.
            (&chain[..chain.len() / 3], Some(key), true),
        ] {
            let bundle = Bundle::from_bytes(&files, cert.as_bytes(), None, key.map(str::as_bytes));
            assert_eq!(bundle.may_be_changing(), expected, "{key:?}");
        }
        let are_regular = |cert: &str, key: &str| {
            Files { cert: cert.into(), issuers: None, key: Some(key.into()) }.are_regular()
        };
        assert!(are_regular("/etc/passwd", "/no/such/file"));
        assert!(!are_regular("/dev/null", "/etc/passwd") && !are_regular("/etc/passwd", "/dev/null"));
    }
}
