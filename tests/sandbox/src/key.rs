//! Reads the private key of an upload in PKCS#8, PKCS#1 or SEC1. Passphrases are refused by name.

use const_oid::ObjectIdentifier;
use der::Decode;
use pem::Pem;
use pkcs8::PrivateKeyInfo;
use rustls::pki_types::PrivateKeyDer;

use crate::cert::RsaNumbers;

const RSA: ObjectIdentifier = const_oid::db::rfc5912::RSA_ENCRYPTION;

/// The half of the pair that the service can compare, if it can.
#[derive(Debug)]
pub(crate) enum Key {
    Rsa(RsaNumbers),
    Other,
}

/// Reads the first private key of the text.
pub(crate) fn read(key_pem: &str) -> Result<Key, String> {
    let block = block(key_pem)?;
    let readable = match block.tag() {
        "PRIVATE KEY" => pkcs8_key(block.contents()),
        "RSA PRIVATE KEY" => rsa(block.contents()),
        "EC PRIVATE KEY" => sec1::EcPrivateKey::from_der(block.contents()).map(|_| Key::Other),
        other => return Err(format!("{other} is not a known form of private key")),
    };
    readable.map_err(|error| error.to_string())
}

/// The same key as the edge's TLS library takes it.
pub(crate) fn for_tls(key_pem: &str) -> Result<PrivateKeyDer<'static>, String> {
    let block = block(key_pem)?;
    let der = block.contents().to_vec();
    Ok(match block.tag() {
        "RSA PRIVATE KEY" => PrivateKeyDer::Pkcs1(der.into()),
        "EC PRIVATE KEY" => PrivateKeyDer::Sec1(der.into()),
        _ => PrivateKeyDer::Pkcs8(der.into()),
    })
}

fn block(key_pem: &str) -> Result<Pem, String> {
    let blocks = pem::parse_many(key_pem).map_err(|error| error.to_string())?;
    let key = blocks.into_iter().find(|block| block.tag().ends_with("PRIVATE KEY"));
    let key = key.ok_or_else(|| "there is no private key block".to_owned())?;
    let legacy = key.headers().get("Proc-Type").is_some_and(|value| value.contains("ENCRYPTED"));
    if legacy || key.tag() == "ENCRYPTED PRIVATE KEY" {
        return Err("it is encrypted with a passphrase".to_owned());
    }
    Ok(key)
}

fn pkcs8_key(der: &[u8]) -> der::Result<Key> {
    let info = PrivateKeyInfo::from_der(der)?;
    if info.algorithm.oid == RSA { rsa(info.private_key) } else { Ok(Key::Other) }
}

fn rsa(der: &[u8]) -> der::Result<Key> {
    let key = pkcs1::RsaPrivateKey::from_der(der)?;
    Ok(Key::Rsa(RsaNumbers::new(key.modulus, key.public_exponent)))
}
