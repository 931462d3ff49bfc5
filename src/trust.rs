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
pub(crate) enum TrustStoreError {
    #[error("cannot use the CA file {}: {reason}", crate::text::path(path))]
    CaFile { path: PathBuf, reason: String },
    #[error("the system's trust store holds no usable certificate")]
    NoRoots,
}

/// No bundle is larger; the usual ones have a quarter of a megabyte.
const MAX_BYTES: u64 = 4 << 20;

/// Bundle files of the usual systems. One file costs a third of what walking the hashed directory beside it does.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// The root certificates; at least one.
pub(crate) fn load(roots: &Roots) -> Result<RootCertStore, TrustStoreError> {
    match roots {
        Roots::File(path) => from_file(path),
        Roots::System { named, file } => of_system(*named, file.as_deref()),
    }
}

/// Every certificate of a file that was named must be usable.
fn from_file(path: &Path) -> Result<RootCertStore, TrustStoreError> {
    let bad = |reason: &str| TrustStoreError::CaFile { path: path.to_owned(), reason: reason.to_owned() };
    let text = file::read(path, MAX_BYTES).map_err(|unreadable| bad(&unreadable.reason))?;
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
fn of_system(named: bool, file: Option<&Path>) -> Result<RootCertStore, TrustStoreError> {
    // It would be read whole, whatever it is.
    if let Some(path) = file
        && let Err(unreadable) = file::read(path, MAX_BYTES)
        && !unreadable.is_missing()
    {
        return Err(TrustStoreError::CaFile { path: path.to_owned(), reason: unreadable.reason });
    }
    let bundle = BUNDLES
        .iter()
        .filter(|_| !named)
        .find_map(|path| certificates(&file::read(Path::new(path), MAX_BYTES).ok()?));
    let certificates = bundle.unwrap_or_else(|| rustls_native_certs::load_native_certs().certs);
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates);
    if roots.is_empty() { Err(TrustStoreError::NoRoots) } else { Ok(roots) }
}

/// The certificates of a bundle; `None` where a block is damaged. Nothing in it is secret, so a table does.
fn certificates(bundle: &[u8]) -> Option<Vec<CertificateDer<'static>>> {
    let text = std::str::from_utf8(bundle).map_or_else(|_| String::from_utf8_lossy(bundle), Cow::Borrowed);
    let mut rest = text.as_ref();
    let (mut certificates, mut base64) = (Vec::new(), Vec::new());
    while let Some((_, block)) = rest.split_once("-----BEGIN CERTIFICATE-----") {
        let (der, behind) = in_full_lines(block, &mut base64).or_else(|| in_any_lines(block, &mut base64))?;
        certificates.push(der.into());
        rest = behind;
    }
    Some(certificates)
}

const END: &str = "-----END CERTIFICATE-----";

/// A block whose lines are as long as RFC 7468 wants them, and what stands behind it. All bundles look so, and what need not
/// be searched for line ends is read at half the price. `None` means nothing: the block may be written in another way.
fn in_full_lines<'a>(block: &'a str, base64: &mut Vec<u8>) -> Option<(Vec<u8>, &'a str)> {
    const LINE: usize = 64;
    base64.clear();
    let mut rest = block.strip_prefix('\n')?;
    while let Some((line, more)) = rest.split_at_checked(LINE + 1)
        && let Some(full) = line.strip_suffix('\n')
    {
        base64.extend_from_slice(full.as_bytes());
        rest = more;
    }
    let (last, behind) = rest.split_once(END)?;
    base64.extend_from_slice(last.trim_ascii_end().as_bytes());
    Some((STANDARD.decode(base64).ok()?, behind))
}

/// A block as anyone may write it, and what stands behind it; `None` where it is damaged.
fn in_any_lines<'a>(block: &'a str, base64: &mut Vec<u8>) -> Option<(Vec<u8>, &'a str)> {
    let (body, behind) = block.split_once(END)?;
    base64.clear();
    for line in body.lines() {
        base64.extend_from_slice(line.trim_ascii().as_bytes());
    }
    Some((STANDARD.decode(base64).ok()?, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";

    #[test]
    fn a_bundle_is_read_whole_or_not_at_all() {
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

    /// However long the certificate is, and however its lines are broken.
    #[test]
    fn every_way_to_write_a_certificate_says_the_same() {
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
                // What follows may look as if it were a line of the body.
                for behind in ["", "\n", "\n# a\n", &format!("\n{}\n", "#".repeat(41)), "\nCA \u{e9}\n"] {
                    let bundle = format!("{BEGIN}{body}{END}{behind}").repeat(3);
                    let read = certificates(bundle.as_bytes()).unwrap();
                    assert!(read.len() == 3 && read.iter().all(|read| **read == *der), "{bundle}");
                    let damaged = bundle.replacen(body, &body.replacen(&base64[..1], "?", 1), 1);
                    assert!(certificates(damaged.as_bytes()).is_none(), "{damaged}");
                }
            }
        }
    }
}
