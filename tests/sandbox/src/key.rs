//! Parses private keys in PKCS#8, PKCS#1 or SEC1. Encrypted keys are rejected.

use const_oid::ObjectIdentifier;
use der::Decode;
use pem::Pem;
use pkcs8::PrivateKeyInfo;
use rustls::pki_types::PrivateKeyDer;

use crate::cert::{PublicKey, RsaPublicKey};

const RSA: ObjectIdentifier = const_oid::db::rfc5912::RSA_ENCRYPTION;

/// Parses the first private key of the text and returns its public half.
pub(crate) fn public_half(key_pem: &str) -> Result<PublicKey, String> {
    let block = first_key_block(key_pem)?;
    let public = match block.tag() {
        "PRIVATE KEY" => from_pkcs8(block.contents()),
        "RSA PRIVATE KEY" => from_pkcs1(block.contents()),
        "EC PRIVATE KEY" => sec1::EcPrivateKey::from_der(block.contents()).map(|_| PublicKey::Other),
        other => return Err(format!("unsupported key format {other}")),
    };
    public.map_err(|error| error.to_string())
}

/// Converts the first private key of the text for the TLS library.
pub(crate) fn to_rustls(key_pem: &str) -> Result<PrivateKeyDer<'static>, String> {
    let block = first_key_block(key_pem)?;
    let der = block.contents().to_vec();
    Ok(match block.tag() {
        "RSA PRIVATE KEY" => PrivateKeyDer::Pkcs1(der.into()),
        "EC PRIVATE KEY" => PrivateKeyDer::Sec1(der.into()),
        _ => PrivateKeyDer::Pkcs8(der.into()),
    })
}

fn first_key_block(key_pem: &str) -> Result<Pem, String> {
    let blocks = pem::parse_many(key_pem).map_err(|error| error.to_string())?;
    let key = blocks.into_iter().find(|block| block.tag().ends_with("PRIVATE KEY"));
    let key = key.ok_or_else(|| "no private key block".to_owned())?;
    // RFC 1421, section 4.6.1.1: how OpenSSL's traditional formats mark encryption.
    let has_encryption_header =
        key.headers().get("Proc-Type").is_some_and(|value| value.contains("ENCRYPTED"));
    if has_encryption_header || key.tag() == "ENCRYPTED PRIVATE KEY" {
        return Err("the key is encrypted with a passphrase".to_owned());
    }
    Ok(key)
}

fn from_pkcs8(der: &[u8]) -> der::Result<PublicKey> {
    let info = PrivateKeyInfo::from_der(der)?;
    if info.algorithm.oid == RSA { from_pkcs1(info.private_key) } else { Ok(PublicKey::Other) }
}

fn from_pkcs1(der: &[u8]) -> der::Result<PublicKey> {
    let key = pkcs1::RsaPrivateKey::from_der(der)?;
    Ok(PublicKey::Rsa(RsaPublicKey::new(key.modulus, key.public_exponent)))
}
