//! Root certificates, for connections to the service and for the path of a chain to a root.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base64_simd::STANDARD;
use memchr::memchr_iter;
use memchr::memmem::{Finder, find_iter};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

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
    let text = file::read(path, MAX_BYTES, deadline).map_err(TrustStoreError::Unreadable)?;
    let (mut roots, mut are_usable) = (RootCertStore::empty(), true);
    for certificate in certificates(&text) {
        let certificate = certificate.ok_or_else(|| bad("it contains invalid PEM"))?;
        are_usable &= roots.add(certificate).is_ok();
    }
    match (are_usable, roots.is_empty()) {
        (false, _) => Err(bad("it holds a certificate that cannot be a trust anchor")),
        (true, true) => Err(bad("it holds no certificate in PEM")),
        (true, false) => Ok(roots),
    }
}

/// Loads what `SSL_CERT_FILE` and `SSL_CERT_DIR` name, else the first bundle file, else what rustls-native-certs finds.
fn of_system(named: bool, file: Option<&Path>, deadline: Deadline) -> Result<RootCertStore, TrustStoreError> {
    // rustls-native-certs would read the whole file, whatever its size.
    if let Some(path) = file
        && let Err(error) = file::read(path, MAX_BYTES, deadline)
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
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&file::read(path, MAX_BYTES, file::default_deadline()).ok()?) {
        let _ = roots.add(certificate?);
    }
    Some(roots)
}

/// Decodes the certificates of a bundle, one after another: together they would take more memory than all else. `None`
/// stands for a damaged block.
fn certificates(bundle: &[u8]) -> impl Iterator<Item = Option<CertificateDer<'static>>> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let end = Finder::new(END);
    find_iter(bundle, BEGIN).map(move |at| {
        let block = bundle.get(at + BEGIN.len()..)?;
        decode(block.get(..end.find(block)?)?)
    })
}

/// Decodes the body of a block. It is not secret, so this need not take constant time.
fn decode(body: &[u8]) -> Option<CertificateDer<'static>> {
    let mut base64 = Vec::with_capacity(body.len());
    let mut start = 0;
    for end in memchr_iter(b'\n', body).chain([body.len()]) {
        base64.extend_from_slice(body.get(start..end)?.trim_ascii());
        start = end + 1;
    }
    let length = STANDARD.decode_inplace(&mut base64).ok()?.len();
    base64.truncate(length);
    Some(base64.into())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";

    fn certificates(bundle: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
        super::certificates(bundle).collect()
    }

    /// Compares with another reader of PEM.
    #[test]
    fn bundle_of_this_host_is_read_whole() {
        for path in BUNDLES.map(Path::new).into_iter().filter(|path| path.exists()) {
            let mut read = certificates(&std::fs::read(path).unwrap()).unwrap();
            assert_eq!(bundle(path).unwrap().len(), read.len(), "{}", path.display());
            // The other reader sorts them.
            read.sort_by(|one, other| one.as_ref().cmp(other.as_ref()));
            read.dedup();
            let expected = rustls_native_certs::load_certs_from_paths(Some(path), None);
            assert!(expected.errors.is_empty() && read == expected.certs, "{}", path.display());
        }
    }

    #[test]
    fn damaged_bundle_is_rejected_whole() {
        let block = "-----BEGIN CERTIFICATE-----\nAQ\r\nID\n-----END CERTIFICATE-----\n";
        assert_eq!(certificates(format!("# one\n{block}# two\n{block}").as_bytes()).unwrap().len(), 2);
        assert_eq!(certificates(b"").unwrap().len(), 0);
        for damaged in [
            "-----BEGIN CERTIFICATE-----\nAQID",
            "-----BEGIN CERTIFICATE-----\nA?ID\n-----END CERTIFICATE-----",
            "-----BEGIN CERTIFICATE-----\nAQID\n-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----",
        ] {
            assert!(certificates(damaged.as_bytes()).is_none(), "{damaged}");
        }
    }

    /// Covers common lengths of certificates and lines.
    #[test]
    fn certificate_is_decoded_however_wrapped() {
        for length in [1, 47, 48, 49, 95, 96, 97, 500] {
            let der: Vec<u8> = (0..length).map(|byte: u32| byte.to_le_bytes()[0]).collect();
            let base64 = STANDARD.encode(&der);
            let in_lines = |width: usize, end: &str| {
                let lines = base64.as_bytes().chunks(width);
                lines.flat_map(|line| [std::str::from_utf8(line).unwrap(), end]).collect::<String>()
            };
            let bodies = [
                format!("\n{}", in_lines(64, "\n")),
                format!("\n{}", in_lines(64, "\n").trim_end()),
                format!("\n{}\n", in_lines(64, "\n")),
                format!("\r\n{}", in_lines(64, "\r\n")),
                format!("\n{}", in_lines(64, " \n")),
                format!("\n{}", in_lines(64, "\n  ")),
                format!("\n{}", in_lines(76, "\n")),
                format!("\n{}", in_lines(60, "\n")),
                base64.clone(),
            ];
            for body in &bodies {
                // The text after the block may look like a line of the body.
                for after in ["", "\n", "\n# a\n", &format!("\n{}\n", "#".repeat(41)), "\nCA \u{e9}\n"] {
                    let bundle = format!("{BEGIN}{body}{END}{after}").repeat(3);
                    let read = certificates(bundle.as_bytes()).unwrap();
                    assert!(read.len() == 3 && read.iter().all(|read| **read == *der), "{bundle}");
                    let damaged = bundle.replacen(body, &body.replacen(&base64[..1], "?", 1), 1);
                    assert!(certificates(damaged.as_bytes()).is_none(), "{damaged}");
                }
            }
        }
    }
}
