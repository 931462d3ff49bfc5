//! Parses the certificates of an upload. The first `CERTIFICATE` block is the leaf; every block must parse.
//! Nothing is verified here; `validation` applies the service's rules.

use const_oid::ObjectIdentifier;
use der::Decode;
use x509_cert::Certificate;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::spki::SubjectPublicKeyInfoOwned;
use x509_cert::time::Time;

use crate::digest::sha256_hex;
use crate::names;

const RSA: ObjectIdentifier = const_oid::db::rfc5912::RSA_ENCRYPTION;

/// The fields of an end-entity certificate that the service uses.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    /// DNS names of the SAN extension, as spelled there.
    pub(crate) names: Vec<String>,
    /// Beginning of the validity period in Unix seconds.
    pub(crate) not_before: i64,
    /// Its end.
    pub(crate) not_after: i64,
    pub(crate) public_key: PublicKey,
    /// Lower-case hexadecimal SHA-256 of the DER.
    pub(crate) fingerprint: String,
}

/// The public key of a certificate, as far as the service can compare it.
#[derive(Debug, Clone)]
pub(crate) enum PublicKey {
    Rsa(RsaPublicKey),
    Other,
}

/// Modulus and public exponent, big-endian without leading zeros.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RsaPublicKey {
    modulus: Vec<u8>,
    exponent: Vec<u8>,
}

impl RsaPublicKey {
    pub(crate) fn new(modulus: pkcs1::UintRef<'_>, exponent: pkcs1::UintRef<'_>) -> Self {
        Self { modulus: modulus.as_bytes().to_vec(), exponent: exponent.as_bytes().to_vec() }
    }
}

impl Leaf {
    /// Parses the leaf and checks that the other certificates parse too.
    pub(crate) fn parse(cert_pem: &str) -> Result<Self, String> {
        let mut leaf = None;
        for (index, der) in parse_chain(cert_pem)?.iter().enumerate() {
            let certificate =
                Certificate::from_der(der).map_err(|error| format!("certificate {}: {error}", index + 1))?;
            if leaf.is_none() {
                leaf = Some(Self::from_certificate(&certificate, der)?);
            }
        }
        leaf.ok_or_else(no_certificate)
    }

    /// Returns whether a SAN entry covers this domain.
    pub(crate) fn covers(&self, domain: &str) -> bool {
        self.names.iter().any(|san| names::covers(san, domain))
    }

    fn from_certificate(certificate: &Certificate, der: &[u8]) -> Result<Self, String> {
        let tbs = &certificate.tbs_certificate;
        let seconds =
            |time: Time| i64::try_from(time.to_unix_duration().as_secs()).map_err(|error| error.to_string());
        Ok(Self {
            names: dns_names(certificate)?,
            not_before: seconds(tbs.validity.not_before)?,
            not_after: seconds(tbs.validity.not_after)?,
            public_key: public_key(&tbs.subject_public_key_info)?,
            fingerprint: sha256_hex(der),
        })
    }
}

/// Returns the DER of each certificate in the text, without parsing it.
pub(crate) fn parse_chain(cert_pem: &str) -> Result<Vec<Vec<u8>>, String> {
    let blocks = pem::parse_many(cert_pem).map_err(|error| error.to_string())?;
    let chain: Vec<_> = blocks
        .into_iter()
        .filter(|block| block.tag() == "CERTIFICATE")
        .map(pem::Pem::into_contents)
        .collect();
    if chain.is_empty() { Err(no_certificate()) } else { Ok(chain) }
}

fn no_certificate() -> String {
    "no CERTIFICATE block".to_owned()
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
    Ok(PublicKey::Rsa(RsaPublicKey::new(key.modulus, key.public_exponent)))
}
