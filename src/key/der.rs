//! The DER structures around private keys, read as leniently as common writers require.

use pkcs8::der::asn1::{AnyRef, BitStringRef, ContextSpecific, OctetStringRef};
use pkcs8::der::{Decode as _, Reader, Result, SliceReader, Tag, TagNumber, Tagged as _};
use pkcs8::spki::AlgorithmIdentifierRef;

/// `PrivateKeyInfo`, also called `OneAsymmetricKey` (RFC 5958, section 2).
///
/// Accepts a public key in version 1 too, and one that is tagged explicitly.
pub(super) struct PrivateKeyInfo<'a> {
    /// 0 is version 1, 1 is version 2.
    pub(super) version: u8,
    pub(super) algorithm: AlgorithmIdentifierRef<'a>,
    pub(super) private_key: &'a [u8],
    pub(super) public_key: Option<&'a [u8]>,
}

impl<'a> PrivateKeyInfo<'a> {
    pub(super) fn from_der(der: &'a [u8]) -> Result<Self> {
        let mut reader = SliceReader::new(der)?;
        let info = reader.sequence(|reader| {
            let version = expect_version(reader, &[0, 1])?;
            let algorithm = AlgorithmIdentifierRef::decode(reader)?;
            let private_key = <&OctetStringRef>::decode(reader)?.as_bytes();
            let mut public_key = None;
            while !reader.is_finished() {
                let field = AnyRef::decode(reader)?;
                match field.tag() {
                    // Attributes; none of them matter here.
                    Tag::ContextSpecific { number: TagNumber(0), .. } => {}
                    Tag::ContextSpecific { number: TagNumber(1), .. } => {
                        public_key = Some(public_key_bits(field.value()));
                    }
                    other => return Err(other.unexpected_error(None).into()),
                }
            }
            Ok::<_, pkcs8::der::Error>(Self { version, algorithm, private_key, public_key })
        })?;
        reader.finish()?;
        Ok(info)
    }
}

/// Returns the bits of a `[1] IMPLICIT BIT STRING`, or of one that is tagged explicitly.
fn public_key_bits(value: &[u8]) -> &[u8] {
    let explicit = BitStringRef::from_der(value).ok().and_then(|bits| bits.as_bytes());
    explicit.or_else(|| value.strip_prefix(&[0])).unwrap_or(value)
}

/// `ECPrivateKey` (RFC 5915, section 3).
///
/// Not the `sec1` crate's type, because that rejects explicit curve parameters, which need a message of their own.
pub(super) struct EcPrivateKey<'a> {
    pub(super) scalar: &'a [u8],
    pub(super) parameters: Option<AnyRef<'a>>,
    pub(super) public_key: Option<&'a [u8]>,
}

impl<'a> EcPrivateKey<'a> {
    pub(super) fn from_der(der: &'a [u8]) -> Result<Self> {
        let mut reader = SliceReader::new(der)?;
        let key = reader.sequence(|reader| {
            expect_version(reader, &[1])?;
            let scalar = <&OctetStringRef>::decode(reader)?.as_bytes();
            let parameters = ContextSpecific::<AnyRef<'a>>::decode_explicit(reader, TagNumber(0))?;
            let public_key = ContextSpecific::<BitStringRef<'a>>::decode_explicit(reader, TagNumber(1))?;
            Ok::<_, pkcs8::der::Error>(Self {
                scalar,
                parameters: parameters.map(|field| field.value),
                public_key: public_key.map(|field| whole_bytes(field.value)).transpose()?,
            })
        })?;
        reader.finish()?;
        Ok(key)
    }
}

/// Returns the bytes of a bit string; one with unused bits is not a public key.
fn whole_bytes(bits: BitStringRef<'_>) -> Result<&[u8]> {
    bits.as_bytes().ok_or_else(|| Tag::BitString.value_error().into())
}

fn expect_version<'a>(reader: &mut impl Reader<'a>, known: &[u8]) -> Result<u8> {
    match u8::decode(reader)? {
        version if known.contains(&version) => Ok(version),
        _ => Err(Tag::Integer.value_error().into()),
    }
}
