//! Parses private keys in PKCS#8, PKCS#1 or SEC1. Encrypted keys are rejected, and EC keys whose scalar does not have the
//! length of RFC 5915, as the service rejects them.

use const_oid::ObjectIdentifier;
use const_oid::db::rfc5912;
use der::Decode;
use pem::Pem;
use pkcs8::PrivateKeyInfo;
use rustls::pki_types::PrivateKeyDer;

use crate::cert::{PublicKey, RsaPublicKey};

const RSA: ObjectIdentifier = rfc5912::RSA_ENCRYPTION;
const EC: ObjectIdentifier = rfc5912::ID_EC_PUBLIC_KEY;

/// The curves whose scalars are checked, with the length of these in bytes.
const CURVES: [(ObjectIdentifier, usize); 3] =
    [(rfc5912::SECP_256_R_1, 32), (rfc5912::SECP_384_R_1, 48), (rfc5912::SECP_521_R_1, 66)];

/// Parses the first private key of the text and returns its public half.
pub(crate) fn public_half(key_pem: &str) -> Result<PublicKey, String> {
    let block = first_key_block(key_pem)?;
    match block.tag() {
        "PRIVATE KEY" => from_pkcs8(block.contents()),
        "RSA PRIVATE KEY" => from_pkcs1(block.contents()),
        "EC PRIVATE KEY" => from_sec1(block.contents(), None),
        other => Err(format!("unsupported key format {other}")),
    }
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

fn from_pkcs8(der: &[u8]) -> Result<PublicKey, String> {
    let info = PrivateKeyInfo::from_der(der).map_err(|error| error.to_string())?;
    match info.algorithm.oid {
        RSA => from_pkcs1(info.private_key),
        EC => from_sec1(info.private_key, info.algorithm.parameters_oid().ok()),
        _ => Ok(PublicKey::Other),
    }
}

fn from_pkcs1(der: &[u8]) -> Result<PublicKey, String> {
    let key = pkcs1::RsaPrivateKey::from_der(der).map_err(|error| error.to_string())?;
    Ok(PublicKey::Rsa(RsaPublicKey::new(key.modulus, key.public_exponent)))
}

/// Parses an `ECPrivateKey` (RFC 5915); in PKCS#8 the curve is named outside of it.
fn from_sec1(der: &[u8], curve: Option<ObjectIdentifier>) -> Result<PublicKey, String> {
    let key = sec1::EcPrivateKey::from_der(der).map_err(|error| error.to_string())?;
    let inner = key.parameters.and_then(sec1::EcParameters::named_curve);
    let curve = curve.or(inner).ok_or_else(|| "no curve is named".to_owned())?;
    match (CURVES.iter().find(|(oid, _)| *oid == curve), key.private_key.len()) {
        (Some((_, wanted)), found) if found != *wanted => {
            Err(format!("the private value has {found} bytes instead of {wanted}"))
        }
        _ => Ok(PublicKey::Other),
    }
}
