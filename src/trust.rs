//! Root certificates, for connections to the service and for the path of a chain to a root.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base64_simd::STANDARD;
use memchr::memmem::Finder;
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
    let (mut roots, mut count, mut unusable) = (RootCertStore::empty(), 0, 0);
    let whole = for_each_certificate(&text, |certificate| {
        count += 1;
        unusable += usize::from(roots.add(certificate).is_err());
    });
    match whole {
        None => Err(bad("it contains invalid PEM")),
        Some(()) if count == 0 => Err(bad("it holds no certificate in PEM")),
        Some(()) if unusable > 0 => Err(bad("it holds a certificate that cannot be a trust anchor")),
        Some(()) => Ok(roots),
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
    for_each_certificate(&file::read(path, MAX_BYTES, file::default_deadline()).ok()?, |certificate| {
        let _ = roots.add(certificate);
    })?;
    Some(roots)
}

const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
const END: &[u8] = b"-----END CERTIFICATE-----";

/// Decodes the certificates of a bundle, one after another in the same memory; `None` if a block is damaged.
///
/// They are not secret, so decoding need not take constant time.
fn for_each_certificate(bundle: &[u8], mut take: impl FnMut(CertificateDer<'_>)) -> Option<()> {
    let (begin, end) = (Finder::new(BEGIN), Finder::new(END));
    let (mut rest, mut buffer) = (bundle, Vec::new());
    while let Some(block) = begin.find(rest).and_then(|at| rest.get(at + BEGIN.len()..)) {
        let (body, after) = block.split_at_checked(end.find(block)?)?;
        let length = decode_strict(body, &mut buffer).or_else(|| decode_lax(body, &mut buffer))?;
        take(CertificateDer::from(buffer.get(..length)?));
        rest = after;
    }
    Some(())
}

/// Decodes a body whose lines have 64 characters (RFC 7468, section 3), and returns its length. All common bundles are
/// written like this; without a search for line ends, decoding takes half the time. `None`: the lines may have another
/// length.
fn decode_strict(body: &[u8], buffer: &mut Vec<u8>) -> Option<usize> {
    const LINE: usize = 64;
    buffer.clear();
    let mut rest = body.strip_prefix(b"\n")?;
    while let Some((line, more)) = rest.split_at_checked(LINE + 1)
        && let Some(full) = line.strip_suffix(b"\n")
    {
        buffer.extend_from_slice(full);
        rest = more;
    }
    buffer.extend_from_slice(rest.trim_ascii_end());
    decode(buffer)
}

/// Decodes a body with lines of any length, and returns its length; `None` if it is damaged.
fn decode_lax(body: &[u8], buffer: &mut Vec<u8>) -> Option<usize> {
    buffer.clear();
    for line in body.split(|byte| *byte == b'\n') {
        buffer.extend_from_slice(line.trim_ascii());
    }
    decode(buffer)
}

fn decode(base64: &mut [u8]) -> Option<usize> {
    STANDARD.decode_inplace(base64).ok().map(|der| der.len())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";

    fn certificates(bundle: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
        let mut certificates = Vec::new();
        for_each_certificate(bundle, |certificate| certificates.push(certificate.into_owned()))?;
        Some(certificates)
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
