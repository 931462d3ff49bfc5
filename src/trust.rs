//! Root certificates, for connections to the service and for the path of a chain to a root.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::RootCertStore;

use crate::clock::Deadline;
use crate::file;
use crate::hint::read_hint;
use crate::settings::{Roots, SettingsError};
use crate::{pem, text};

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

type LoadResult = Result<Arc<RootCertStore>, SettingsError>;

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
fn load(roots: &Roots, deadline: Deadline) -> Result<RootCertStore, SettingsError> {
    match roots {
        Roots::File(path) => of_file(path, deadline),
        Roots::System { named, file } => of_system(*named, file.as_deref(), deadline),
    }
}

/// Loads a named file, in which every certificate must be usable.
fn of_file(path: &Path, deadline: Deadline) -> Result<RootCertStore, SettingsError> {
    match parse(&read(path, deadline)?) {
        Some((roots, 0)) if !roots.is_empty() => Ok(roots),
        _ => Err(unusable(
            path,
            "it does not hold CA certificates in PEM only",
            "name a file with CA certificates in PEM",
        )),
    }
}

fn read(path: &Path, deadline: Deadline) -> Result<Vec<u8>, SettingsError> {
    let read = file::read(path, MAX_BYTES, deadline);
    read.map_err(|error| unusable(path, &error.reason, read_hint(error.kind)))
}

fn unusable(path: &Path, reason: &str, hint: &'static str) -> SettingsError {
    SettingsError::new(format_args!("cannot use the CA file {}: {reason}", text::path(path))).hint(hint)
}

/// Loads what `SSL_CERT_FILE` and `SSL_CERT_DIR` name, else the first bundle file, else what rustls-native-certs finds.
fn of_system(named: bool, file: Option<&Path>, deadline: Deadline) -> Result<RootCertStore, SettingsError> {
    // rustls-native-certs would read the whole file, whatever its size.
    if let Some(path) = file.filter(|path| path.exists()) {
        read(path, deadline)?;
    }
    let mut bundles = BUNDLES.iter().filter(|_| !named);
    let roots = bundles.find_map(|path| bundle(Path::new(path))).unwrap_or_else(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        roots
    });
    if roots.is_empty() {
        let error = SettingsError::new("the system's trust store holds no usable certificate");
        return Err(
            error.hint("install the package ca-certificates, or check SSL_CERT_FILE and SSL_CERT_DIR")
        );
    }
    Ok(roots)
}

/// The usable certificates of a bundle file; `None` if it cannot be read or is damaged.
fn bundle(path: &Path) -> Option<RootCertStore> {
    Some(parse(&file::read(path, MAX_BYTES, file::default_deadline()).ok()?)?.0)
}

/// The usable certificates of a bundle and the number of the others; `None` if it is damaged.
fn parse(bundle: &[u8]) -> Option<(RootCertStore, usize)> {
    let (mut roots, mut others) = (RootCertStore::empty(), 0);
    for certificate in pem::certificates(bundle) {
        others += usize::from(roots.add(certificate?.into()).is_err());
    }
    Some((roots, others))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with another reader of PEM.
    #[test]
    fn bundle_of_this_host_is_read_whole() {
        for path in BUNDLES.map(Path::new).into_iter().filter(|path| path.exists()) {
            let read: Option<Vec<_>> = pem::certificates(&std::fs::read(path).unwrap()).collect();
            let mut read = read.unwrap();
            assert_eq!(bundle(path).unwrap().len(), read.len(), "{}", path.display());
            // The other reader sorts them.
            read.sort();
            read.dedup();
            let expected = rustls_native_certs::load_certs_from_paths(Some(path), None);
            let is_same = expected.certs.iter().map(AsRef::as_ref).eq(read.iter().map(Vec::as_slice));
            assert!(expected.errors.is_empty() && is_same, "{}", path.display());
        }
    }
}
