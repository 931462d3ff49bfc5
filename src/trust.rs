//! Root certificates, for connections to the service and for the path of a chain to a root.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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
    let text = file::read_until(path, MAX_BYTES, deadline).map_err(TrustStoreError::Unreadable)?;
    let certificates = certificates(&text).ok_or_else(|| bad("its PEM is damaged"))?;
    if certificates.is_empty() {
        return Err(bad("it holds no certificate in PEM"));
    }
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).map_err(|_| bad("it holds a certificate that cannot be a trust anchor"))?;
    }
    Ok(roots)
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
    let bundle = BUNDLES
        .iter()
        .filter(|_| !named)
        .find_map(|path| certificates(&file::read(Path::new(path), MAX_BYTES).ok()?));
    let certificates = bundle.unwrap_or_else(|| rustls_native_certs::load_native_certs().certs);
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() { Err(TrustStoreError::NoRoots { named }) } else { Ok(roots) }
}

/// Decodes the certificates of a bundle; `None` if a block is damaged. They are not secret, so decoding need not take
/// constant time.
fn certificates(bundle: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let text = std::str::from_utf8(bundle).map_or_else(|_| String::from_utf8_lossy(bundle), Cow::Borrowed);
    let mut rest = text.as_ref();
    let (mut certificates, mut base64) = (Vec::new(), Vec::new());
    while let Some((_, block)) = rest.split_once("-----BEGIN CERTIFICATE-----") {
        let (der, after) = decode_strict(block, &mut base64).or_else(|| decode_lax(block, &mut base64))?;
        certificates.push(der.into());
        rest = after;
    }
    Some(certificates)
}

const END: &str = "-----END CERTIFICATE-----";

/// Decodes a block with lines of 64 characters (RFC 7468, section 3), and returns the text after it. All common bundles
/// are written like this; without a search for line ends, decoding takes half the time. `None`: the lines may have
/// another length.
fn decode_strict<'a>(block: &'a str, base64: &mut Vec<u8>) -> Option<(Vec<u8>, &'a str)> {
    const LINE: usize = 64;
    base64.clear();
    let mut rest = block.strip_prefix('\n')?;
    while let Some((line, more)) = rest.split_at_checked(LINE + 1)
        && let Some(full) = line.strip_suffix('\n')
    {
        base64.extend_from_slice(full.as_bytes());
        rest = more;
    }
    let (last, after) = rest.split_once(END)?;
    base64.extend_from_slice(last.trim_ascii_end().as_bytes());
    Some((STANDARD.decode(base64).ok()?, after))
}

/// Decodes a block with lines of any length, and returns the text after it; `None` if it is damaged.
fn decode_lax<'a>(block: &'a str, base64: &mut Vec<u8>) -> Option<(Vec<u8>, &'a str)> {
    let (body, after) = block.split_once(END)?;
    base64.clear();
    for line in body.lines() {
        base64.extend_from_slice(line.trim_ascii().as_bytes());
    }
    Some((STANDARD.decode(base64).ok()?, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";

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
