//! Root certificates, for connections to the service and for the path of a chain to a root.

use std::collections::HashMap;
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
pub(crate) struct TrustStores(Mutex<HashMap<Roots, LoadResult>>);

type LoadResult = Result<Arc<RootCertStore>, SettingsError>;

impl TrustStores {
    /// Loads at least one root certificate until the deadline. A failure is remembered, too.
    pub(crate) fn load(&self, roots: &Roots, deadline: Deadline) -> LoadResult {
        let reason = "it does not hold CA certificates in PEM only";
        let load = || match roots {
            Roots::System { named, file } => of_system(*named, file.as_deref(), deadline),
            // In a named file, every certificate must be usable.
            Roots::File(path) => match parse(&read(path, deadline)?) {
                Some((roots, 0)) if !roots.is_empty() => Ok(roots),
                _ => Err(unusable(path, reason, "name a file with CA certificates in PEM")),
            },
        };
        let mut stores = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stores.entry(roots.clone()).or_insert_with(|| load().map(Arc::new)).clone()
    }
}

fn read(path: &Path, deadline: Deadline) -> Result<Vec<u8>, SettingsError> {
    let read = file::read(path, MAX_BYTES, deadline);
    read.map_err(|error| unusable(path, &error.reason, read_hint(error.kind)))
}

fn unusable(path: &Path, reason: &str, hint: &'static str) -> SettingsError {
    SettingsError::new(format_args!("cannot use the CA file {}: {reason}", text::path(path))).hint(hint)
}

/// Loads what `SSL_CERT_FILE` and `SSL_CERT_DIR` name, else the first bundle file that can be read and is not damaged, else
/// what rustls-native-certs finds.
fn of_system(named: bool, file: Option<&Path>, deadline: Deadline) -> Result<RootCertStore, SettingsError> {
    // rustls-native-certs would read the whole file, whatever its size.
    if let Some(path) = file.filter(|path| path.exists()) {
        read(path, deadline)?;
    }
    let mut bundles = BUNDLES.iter().filter(|_| !named);
    let bundle = bundles.find_map(|path| parse(&read(Path::new(path), deadline).ok()?));
    let (roots, _) = bundle.unwrap_or_else(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        (roots, 0)
    });
    let hint = "install the package ca-certificates, or check SSL_CERT_FILE and SSL_CERT_DIR";
    if roots.is_empty() {
        return Err(SettingsError::new("the system's trust store holds no usable certificate").hint(hint));
    }
    Ok(roots)
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

    #[test]
    fn comment_may_be_in_any_encoding() {
        let block = b"-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n";
        for comment in ["".as_bytes(), "# \u{e9}\n".as_bytes(), b"# \xe9\n"] {
            assert_eq!(parse(&[comment, block].concat()).unwrap().1, 1, "{comment:?}");
        }
    }

    /// Compares with another reader of PEM.
    #[test]
    fn bundle_of_this_host_is_read_whole() {
        for path in BUNDLES.map(Path::new).into_iter().filter(|path| path.exists()) {
            let bundle = read(path, file::default_deadline()).unwrap();
            let read: Option<Vec<_>> = pem::certificates(&bundle).collect();
            let mut read = read.unwrap();
            assert_eq!(parse(&bundle).unwrap().0.len(), read.len(), "{}", path.display());
            // The other reader sorts them.
            read.sort();
            read.dedup();
            let expected = rustls_native_certs::load_certs_from_paths(Some(path), None);
            let is_same = expected.certs.iter().map(AsRef::as_ref).eq(read.iter().map(Vec::as_slice));
            assert!(expected.errors.is_empty() && is_same, "{}", path.display());
        }
    }
}
