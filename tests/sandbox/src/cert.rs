//! Reads the certificate of an upload: the first block is the leaf, and every block must parse.

use const_oid::ObjectIdentifier;
use der::Decode;
use sha2::{Digest, Sha256};
use x509_cert::Certificate;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::spki::SubjectPublicKeyInfoOwned;

const RSA: ObjectIdentifier = const_oid::db::rfc5912::RSA_ENCRYPTION;

/// What the service knows about a certificate.
#[derive(Debug)]
pub(crate) struct Leaf {
    /// DNS names of the SAN, as they stand there.
    pub(crate) names: Vec<String>,
    pub(crate) not_after: i64,
    pub(crate) key: PublicKey,
    /// Lower-case hexadecimal SHA-256 of the DER.
    pub(crate) fingerprint: String,
}

/// The half of the pair that is in the certificate.
#[derive(Debug)]
pub(crate) enum PublicKey {
    Rsa(RsaNumbers),
    Other,
}

/// What makes two RSA keys the same: modulus and public exponent, without leading zeros.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RsaNumbers {
    pub(crate) modulus: Vec<u8>,
    pub(crate) exponent: Vec<u8>,
}

impl RsaNumbers {
    pub(crate) fn new(modulus: pkcs1::UintRef<'_>, exponent: pkcs1::UintRef<'_>) -> Self {
        Self { modulus: modulus.as_bytes().to_vec(), exponent: exponent.as_bytes().to_vec() }
    }
}

/// The DER of each certificate in the text.
pub(crate) fn chain(cert_pem: &str) -> Result<Vec<Vec<u8>>, String> {
    let blocks = pem::parse_many(cert_pem).map_err(|error| error.to_string())?;
    let chain: Vec<_> = blocks
        .into_iter()
        .filter(|block| block.tag() == "CERTIFICATE")
        .map(pem::Pem::into_contents)
        .collect();
    if chain.is_empty() { Err("there is no CERTIFICATE block".to_owned()) } else { Ok(chain) }
}

/// Reads the leaf, and that the other certificates can be read.
pub(crate) fn read(cert_pem: &str) -> Result<Leaf, String> {
    let mut leaf = None;
    for (index, der) in chain(cert_pem)?.iter().enumerate() {
        let certificate =
            Certificate::from_der(der).map_err(|error| format!("certificate {}: {error}", index + 1))?;
        if leaf.is_none() {
            leaf = Some(examine(&certificate, der)?);
        }
    }
    leaf.ok_or_else(|| "there is no CERTIFICATE block".to_owned())
}

/// Lower-case hexadecimal SHA-256.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        for nibble in [byte >> 4, byte & 15] {
            hex.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
        hex
    })
}

fn examine(certificate: &Certificate, der: &[u8]) -> Result<Leaf, String> {
    let body = &certificate.tbs_certificate;
    let end = body.validity.not_after.to_unix_duration().as_secs();
    Ok(Leaf {
        names: dns_names(certificate)?,
        not_after: i64::try_from(end).map_err(|error| error.to_string())?,
        key: public_key(&body.subject_public_key_info)?,
        fingerprint: sha256_hex(der),
    })
}

fn dns_names(certificate: &Certificate) -> Result<Vec<String>, String> {
    let san = certificate.tbs_certificate.get::<SubjectAltName>();
    let Some((_critical, SubjectAltName(names))) = san.map_err(|error| format!("SAN: {error}"))? else {
        return Ok(Vec::new());
    };
    let dns = names.into_iter().filter_map(|name| match name {
        GeneralName::DnsName(text) => Some(text.to_string()),
        _ => None,
    });
    Ok(dns.collect())
}

fn public_key(info: &SubjectPublicKeyInfoOwned) -> Result<PublicKey, String> {
    if info.algorithm.oid != RSA {
        return Ok(PublicKey::Other);
    }
    let bits = info.subject_public_key.raw_bytes();
    let key = pkcs1::RsaPublicKey::from_der(bits).map_err(|error| error.to_string())?;
    Ok(PublicKey::Rsa(RsaNumbers::new(key.modulus, key.public_exponent)))
}
