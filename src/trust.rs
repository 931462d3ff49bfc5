//! Root certificates: whom edgecert trusts to be the service, and what `check --trust-anchors` looks for a path to.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use crate::file;
use crate::settings::Roots;

/// A trust store that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Untrusting {
    #[error("cannot use the CA file {}: {reason}", crate::text::path(path))]
    CaFile { path: PathBuf, reason: String },
    #[error("the system's trust store holds no usable certificate")]
    NoRoots,
}

/// No bundle is larger.
const MOST_BYTES: u64 = 16 << 20;

/// Bundle files of the usual systems. One file costs a third of what walking the hashed directory beside it does.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The root certificates; at least one.
pub(crate) fn load(roots: &Roots) -> Result<RootCertStore, Untrusting> {
    match roots {
        Roots::File(path) => from_file(path),
        Roots::System { named } => of_system(*named),
    }
}

/// Every certificate of a file that was named must be usable.
fn from_file(path: &Path) -> Result<RootCertStore, Untrusting> {
    let bad = |reason: &str| Untrusting::CaFile { path: path.to_owned(), reason: reason.to_owned() };
    let text = file::read(path, MOST_BYTES).map_err(|unreadable| bad(&unreadable.reason))?;
    let certificates = certificates(&text).ok_or_else(|| bad("its PEM is damaged"))?;
    if certificates.is_empty() {
        return Err(bad("it holds no certificate in PEM"));
    }
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate).map_err(|_| bad("it holds something that is no CA certificate"))?;
    }
    Ok(roots)
}

/// What `SSL_CERT_FILE` and `SSL_CERT_DIR` name, else the bundle file, else whatever is found.
fn of_system(named: bool) -> Result<RootCertStore, Untrusting> {
    let bundle = BUNDLES.iter().filter(|_| !named).find_map(|path| certificates(&std::fs::read(path).ok()?));
    let certificates = bundle.unwrap_or_else(|| rustls_native_certs::load_native_certs().certs);
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() { Err(Untrusting::NoRoots) } else { Ok(roots) }
}

/// The certificates of a bundle; `None` where a block is damaged. Nothing in it is secret, so a table does.
fn certificates(bundle: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    let text = std::str::from_utf8(bundle).map_or_else(|_| String::from_utf8_lossy(bundle), Cow::Borrowed);
    let mut base64 = Vec::new();
    text.split(BEGIN)
        .skip(1)
        .map(|block| {
            let (body, _) = block.split_once("-----END CERTIFICATE-----")?;
            base64.clear();
            for line in body.lines() {
                base64.extend_from_slice(line.trim_ascii().as_bytes());
            }
            STANDARD.decode(&base64).ok().map(CertificateDer::from)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_read_whole_or_not_at_all() {
        let block = "-----BEGIN CERTIFICATE-----\nAQ\r\nID\n-----END CERTIFICATE-----\n";
        assert_eq!(certificates(format!("# one\n{block}# two\n{block}").as_bytes()).unwrap().len(), 2);
        assert_eq!(certificates(b"").unwrap().len(), 0);
        for damaged in [
            "-----BEGIN CERTIFICATE-----\nAQID",
            "-----BEGIN CERTIFICATE-----\nA?ID\n-----END CERTIFICATE-----",
        ] {
            assert!(certificates(damaged.as_bytes()).is_none(), "{damaged}");
        }
    }
}
