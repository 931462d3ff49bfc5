//! Root certificates, for connections to the service and for the path of a chain to a root.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::clock::Deadline;
use crate::file::{self, ReadError};
use crate::settings::Roots;

/// A trust store that cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum TrustStoreError {
    #[error("cannot use the CA file {}: {}", crate::text::path(&.0.path), .0.reason)]
    Unreadable(ReadError),
    #[error("cannot use the CA file {}: {reason}", crate::text::path(path))]
    CaFile { path: PathBuf, reason: &'static str },
    /// `named` is whether the environment names the trust store.
    #[error("the system's trust store holds no usable certificate")]
    NoRoots { named: bool },
}

/// Maximum size of a bundle file; common ones have a quarter of a megabyte.
const MAX_BYTES: u64 = 4 << 20;

/// Bundle files of common systems. Reading one takes a third of the time of reading the hashed directory next to it.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The trust stores of a run, each loaded at most once: connections and path checks share them.
#[derive(Default)]
pub(crate) struct TrustStores(Mutex<Vec<(Roots, LoadResult)>>);

type LoadResult = Result<Arc<RootCertStore>, TrustStoreError>;

impl TrustStores {
    /// Loads at least one root certificate until the deadline. A failure is remembered, too.
    pub(crate) fn load(&self, roots: &Roots, deadline: Deadline) -> LoadResult {
        let mut stores = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = stores.iter().find(|(known, _)| known == roots) {
            return known.clone();
        }
        let result = load(roots, deadline).map(Arc::new);
        stores.push((roots.clone(), result.clone()));
        result
    }
}

/// Loads at least one root certificate.
fn load(roots: &Roots, deadline: Deadline) -> Result<RootCertStore, TrustStoreError> {
    match roots {
        Roots::File(path) => from_file(path, deadline),
        Roots::System { named, file } => of_system(*named, file.as_deref(), deadline),
    }
}

/// Loads a named file, in which every certificate must be usable.
fn from_file(path: &Path, deadline: Deadline) -> Result<RootCertStore, TrustStoreError> {
    let bad = |reason| TrustStoreError::CaFile { path: path.to_owned(), reason };
    let text = file::read_until(path, MAX_BYTES, deadline).map_err(TrustStoreError::Unreadable)?;
    let certificates = certificates(&text).ok_or(bad("it contains invalid PEM"))?;
    let count = certificates.len();
    let mut roots = RootCertStore::empty();
    match roots.add_parsable_certificates(certificates) {
        _ if count == 0 => Err(bad("it holds no certificate in PEM")),
        (usable, _) if usable < count => Err(bad("it holds a certificate that cannot be a trust anchor")),
        _ => Ok(roots),
    }
}

/// Loads what `SSL_CERT_FILE` and `SSL_CERT_DIR` name, else the first bundle file, else what rustls-native-certs finds.
fn of_system(named: bool, file: Option<&Path>, deadline: Deadline) -> Result<RootCertStore, TrustStoreError> {
    // rustls-native-certs would read the whole file, whatever its size.
    if let Some(path) = file
        && let Err(error) = file::read_until(path, MAX_BYTES, deadline)
        && !error.is_missing()
    {
        return Err(TrustStoreError::Unreadable(error));
    }
    let mut bundles = BUNDLES.iter().filter(|_| !named);
    let roots = bundles.find_map(|path| bundle(Path::new(path))).unwrap_or_else(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    });
    if roots.is_empty() { Err(TrustStoreError::NoRoots { named }) } else { Ok(roots) }
}

/// The usable certificates of a bundle file; `None` if it cannot be read or is damaged.
fn bundle(path: &Path) -> Option<RootCertStore> {
    let text = file::read(path, MAX_BYTES).ok()?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(&text)?);
    Some(roots)
}

/// The certificates of a PEM file; `None` if a block is damaged.
fn certificates(text: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(text).collect::<Result<_, _>>().ok()?;
    // The reader passes over a block that ends where another one begins.
    let blocks = text.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"-----BEGIN CERTIFICATE"));
    (blocks.count() == certificates.len()).then_some(certificates)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with another reader of PEM.
    #[test]
    fn bundle_of_this_host_is_read_whole() {
        for path in BUNDLES.map(Path::new).into_iter().filter(|path| path.exists()) {
            let expected = rustls_native_certs::load_certs_from_paths(Some(path), None);
            assert!(expected.errors.is_empty(), "{}", path.display());
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(expected.certs);
            // The other reader drops duplicates.
            assert!(bundle(path).unwrap().len() >= roots.len(), "{}", path.display());
        }
    }

    #[test]
    fn damaged_bundle_is_rejected_whole() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            bundle(file.path()).map(|roots| roots.len())
        };
        let block = "-----BEGIN CERTIFICATE-----\nAQ\r\nID\n-----END CERTIFICATE-----\n";
        assert_eq!(read(&format!("# one\n{block}# two\n{block}")), Some(0), "neither is a certificate");
        assert_eq!(read(""), Some(0));
        for damaged in [
            "-----BEGIN CERTIFICATE-----\nAQID",
            "-----BEGIN CERTIFICATE-----\nA?ID\n-----END CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\nAQID\n-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----",
        ] {
            assert_eq!(read(damaged), None, "{damaged}");
        }
    }
}
