//! Private keys: what is in one, and whether it is the other half of a certificate's public key.
//!
//! The public key is derived from the private one and compared; the public part that a key file carries is never
//! trusted, but it has to agree. Nothing is signed or decrypted.

use edgecert_curves::Curve;
use pkcs8::der::asn1::{AnyRef, BitStringRef, ContextSpecific, ObjectIdentifier as Oid, OctetStringRef};
use pkcs8::der::{Decode as _, Reader as _, SliceReader, Tag, TagNumber, Tagged as _};
use pkcs8::spki::AlgorithmIdentifierRef;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use rsa::BigUint;
use rsa::traits::PublicKeyParts as _;
use zeroize::Zeroizing;

use crate::cert::{KeyType, PublicKey, SUPPORTED, algorithm_name, bit_length, curve_name};
use crate::pem::{self, KeyForm};
use crate::secret::Secret;

/// A private key of a supported type whose two halves agree. Of the numbers only the public half is kept, derived from
/// the private one once, because that multiplication is the dearest step of all local checks.
pub struct PrivateKey {
    public: Derived,
    pem: Secret,
}

/// The public half that belongs to a private one.
enum Derived {
    Rsa(rsa::RsaPublicKey),
    /// The point, uncompressed.
    Ec(Curve, Vec<u8>),
    Ed25519([u8; 32]),
}

/// Why a private key cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// A type that edgecert does not support, by name.
    #[error("a private key of type {0}, which is not supported; {SUPPORTED} are")]
    Unsupported(String),
    /// Not a key at all.
    #[error("a private key whose {0} structure is damaged")]
    Malformed(&'static str),
    /// The private part does not belong to the public part in the same file.
    #[error("a private key that contradicts itself: {0}")]
    Contradicts(&'static str),
}

const RSA_NUMBERS: &str = "its primes and exponents do not belong to its modulus";
const HALVES: &str = "its private part does not belong to its public part";

const RSA: Oid = Oid::new_unwrap("1.2.840.113549.1.1.1");
const RSASSA_PSS: Oid = Oid::new_unwrap("1.2.840.113549.1.1.10");
const EC: Oid = Oid::new_unwrap("1.2.840.10045.2.1");
const ED25519: Oid = Oid::new_unwrap("1.3.101.112");
const P256: Oid = Oid::new_unwrap("1.2.840.10045.3.1.7");
const P384: Oid = Oid::new_unwrap("1.3.132.0.34");
const P521: Oid = Oid::new_unwrap("1.3.132.0.35");

impl PrivateKey {
    /// Reads a key and proves that its own halves agree.
    pub fn from_der(form: KeyForm, der: &[u8]) -> Result<Self, BadKey> {
        let public = match form {
            KeyForm::Pkcs1 => rsa(der)?,
            KeyForm::Sec1 => ec(der, None)?,
            KeyForm::Pkcs8 => pkcs8(der)?,
        };
        Ok(Self { public, pem: pem::write(form.label(), der) })
    }

    /// The key as clean PEM, in the form in which it was found.
    pub fn pem(&self) -> &Secret {
        &self.pem
    }

    /// The type of the key.
    pub fn key_type(&self) -> KeyType {
        match &self.public {
            Derived::Rsa(key) => KeyType::Rsa { bits: key.n().bits() },
            Derived::Ec(Curve::P256, _) => KeyType::P256,
            Derived::Ec(Curve::P384, _) => KeyType::P384,
            Derived::Ec(Curve::P521, _) => KeyType::P521,
            Derived::Ed25519(_) => KeyType::Ed25519,
        }
    }

    /// Whether this key is the private half of `public`.
    pub fn pairs_with(&self, public: &PublicKey) -> bool {
        match (&self.public, public) {
            (Derived::Rsa(key), PublicKey::Rsa { modulus, exponent }) => {
                key.n().to_bytes_be() == strip_zeros(modulus)
                    && key.e().to_bytes_be() == strip_zeros(exponent)
            }
            (Derived::Ec(curve @ Curve::P256, derived), PublicKey::P256(point))
            | (Derived::Ec(curve @ Curve::P384, derived), PublicKey::P384(point))
            | (Derived::Ec(curve @ Curve::P521, derived), PublicKey::P521(point)) => {
                is_same(*curve, derived, point)
            }
            (Derived::Ed25519(key), PublicKey::Ed25519(bytes)) => key.as_slice() == bytes,
            _ => false,
        }
    }
}

/// Whether `point` is an encoding of the derived one, compressed or not.
fn is_same(curve: Curve, derived: &[u8], point: &[u8]) -> bool {
    derived == point || curve.uncompressed(point).is_some_and(|point| derived == point)
}

/// `PrivateKeyInfo` and `OneAsymmetricKey` (RFC 5958).
fn pkcs8(der: &[u8]) -> Result<Derived, BadKey> {
    let fields = Pkcs8Fields::from_der(der).map_err(|_| BadKey::Malformed("PKCS#8"))?;
    let derived = match fields.algorithm.oid {
        RSA | RSASSA_PSS => rsa(fields.key)?,
        EC => ec(fields.key, fields.algorithm.parameters)?,
        ED25519 => ed25519(fields.key)?,
        other => return Err(BadKey::Unsupported(algorithm_name(&other.to_string()))),
    };
    if fields.public.is_some_and(|public| !derived.is(public)) {
        return Err(BadKey::Contradicts(HALVES));
    }
    Ok(derived)
}

impl Derived {
    /// Whether these are the bits of this key in a `SubjectPublicKeyInfo`.
    fn is(&self, bits: &[u8]) -> bool {
        match self {
            Self::Rsa(key) => rsa::pkcs1::RsaPublicKey::try_from(bits).is_ok_and(|other| {
                key.n().to_bytes_be() == other.modulus.as_bytes()
                    && key.e().to_bytes_be() == other.public_exponent.as_bytes()
            }),
            Self::Ec(curve, derived) => is_same(*curve, derived, bits),
            Self::Ed25519(key) => key == bits,
        }
    }
}

/// The fields of `OneAsymmetricKey`, as writers really fill them in: with a public key in version 1, and with one that is
/// tagged explicitly.
struct Pkcs8Fields<'a> {
    algorithm: AlgorithmIdentifierRef<'a>,
    key: &'a [u8],
    public: Option<&'a [u8]>,
}

impl<'a> Pkcs8Fields<'a> {
    fn from_der(der: &'a [u8]) -> pkcs8::der::Result<Self> {
        let mut reader = SliceReader::new(der)?;
        let fields = reader.sequence(|reader| {
            version(reader, &[0, 1])?;
            let algorithm = AlgorithmIdentifierRef::decode(reader)?;
            let key = <&OctetStringRef>::decode(reader)?.as_bytes();
            let mut public = None;
            while !reader.is_finished() {
                let field = AnyRef::decode(reader)?;
                match field.tag() {
                    // Attributes; nobody writes any that matter.
                    Tag::ContextSpecific { number: TagNumber(0), .. } => {}
                    Tag::ContextSpecific { number: TagNumber(1), .. } => {
                        public = Some(public_bits(field.value()));
                    }
                    other => return Err(other.unexpected_error(None).into()),
                }
            }
            Ok::<_, pkcs8::der::Error>(Self { algorithm, key, public })
        })?;
        reader.finish()?;
        Ok(fields)
    }
}

/// The bits of `[1] IMPLICIT BIT STRING`, or of the same tagged explicitly.
fn public_bits(value: &[u8]) -> &[u8] {
    let explicit = BitStringRef::from_der(value).ok().and_then(|bits| bits.as_bytes());
    explicit.or_else(|| value.strip_prefix(&[0])).unwrap_or(value)
}

/// `RSAPrivateKey` (RFC 8017, appendix A.1.2): the primes must multiply to the modulus and the exponents be inverse.
fn rsa(der: &[u8]) -> Result<Derived, BadKey> {
    let key = rsa::pkcs1::RsaPrivateKey::try_from(der).map_err(|_| BadKey::Malformed("RSA"))?;
    if key.other_prime_infos.is_some() {
        return Err(BadKey::Unsupported("RSA with more than two primes".into()));
    }
    let key_type = KeyType::Rsa { bits: bit_length(key.modulus.as_bytes()) };
    if !key_type.is_supported() {
        return Err(BadKey::Unsupported(key_type.to_string()));
    }
    let longest = key.modulus.as_bytes().len();
    let numbers = [
        key.modulus,
        key.public_exponent,
        key.private_exponent,
        key.prime1,
        key.prime2,
        key.exponent1,
        key.exponent2,
        key.coefficient,
    ];
    // Every number is below the modulus; a longer one would only cost time.
    if numbers.iter().any(|number| number.as_bytes().len() > longest) {
        return Err(BadKey::Contradicts(RSA_NUMBERS));
    }
    let numbers = numbers.map(|number| Zeroizing::new(BigUint::from_bytes_be(number.as_bytes())));
    if !belong_together(&numbers) {
        return Err(BadKey::Contradicts(RSA_NUMBERS));
    }
    let [mut n, mut e, ..] = numbers;
    // Looks at n and e by themselves. The constructor of a private key would do all of the above again, and invert q.
    rsa::RsaPublicKey::new_with_max_size(std::mem::take(&mut *n), std::mem::take(&mut *e), 8 * longest)
        .map(Derived::Rsa)
        .map_err(|_| BadKey::Contradicts(RSA_NUMBERS))
}

/// Whether the numbers of an `RSAPrivateKey` are those of one key.
#[expect(clippy::many_single_char_names, reason = "they are the names of the standard")]
fn belong_together([n, e, d, p, q, d_p, d_q, q_inv]: &[Zeroizing<BigUint>; 8]) -> bool {
    let one = BigUint::from(1u8);
    if **p <= one || **q <= one {
        return false;
    }
    let (below_p, below_q) = (Zeroizing::new(&**p - &one), Zeroizing::new(&**q - &one));
    // Servers sign with these three (RFC 8017, section 3.2); a wrong one spoils every handshake.
    let crt = &**d % &*below_p == **d_p && &**d % &*below_q == **d_q && (&**q_inv * &**q) % &**p == one;
    // e·d = 1 modulo both, on numbers of half the length: d is congruent to d_p and d_q there.
    let inverse = crt && (&**e * &**d_p) % &*below_p == one && (&**e * &**d_q) % &*below_q == one;
    inverse && &**p * &**q == **n
}

/// `CurvePrivateKey` (RFC 8410).
fn ed25519(der: &[u8]) -> Result<Derived, BadKey> {
    let seed = <&OctetStringRef>::from_der(der)
        .ok()
        .and_then(|seed| <[u8; 32]>::try_from(seed.as_bytes()).ok())
        .map(Zeroizing::new)
        .ok_or(BadKey::Malformed("Ed25519"))?;
    let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_slice());
    let derived = pair.ok().and_then(|pair| pair.public_key().as_ref().try_into().ok());
    derived.map(Derived::Ed25519).ok_or(BadKey::Malformed("Ed25519"))
}

/// `ECPrivateKey` (RFC 5915); in PKCS#8 the curve stands outside.
fn ec(der: &[u8], outer: Option<AnyRef<'_>>) -> Result<Derived, BadKey> {
    let fields = EcFields::from_der(der).map_err(|_| BadKey::Malformed("EC"))?;
    if outer.is_some() && fields.parameters.is_some_and(|inner| Some(inner) != outer) {
        return Err(BadKey::Contradicts("it names two curves"));
    }
    let curve = match outer.or(fields.parameters).map(|parameters| (parameters.tag(), parameters)) {
        Some((Tag::ObjectIdentifier, oid)) => oid.decode_as::<Oid>().map_err(|_| BadKey::Malformed("EC"))?,
        Some((_, _)) => return Err(BadKey::Unsupported("EC with explicit curve parameters".into())),
        // Without a name only the length tells; the pairing with the leaf proves the guess.
        None => match fields.scalar.len() {
            ..=32 => P256,
            33..=48 => P384,
            _ => P521,
        },
    };
    match curve {
        P256 => derive(Curve::P256, &fields),
        P384 => derive(Curve::P384, &fields),
        P521 => derive(Curve::P521, &fields),
        other => Err(BadKey::Unsupported(curve_name(&other.to_string()))),
    }
}

/// The public point of the scalar; the one in the same file has to agree.
fn derive(curve: Curve, fields: &EcFields<'_>) -> Result<Derived, BadKey> {
    let derived = curve.derive(fields.scalar).ok_or(BadKey::Malformed("EC"))?;
    if fields.public.is_some_and(|point| !is_same(curve, &derived, point)) {
        return Err(BadKey::Contradicts(HALVES));
    }
    Ok(Derived::Ec(curve, derived))
}

/// The fields of `ECPrivateKey`; read here because explicit parameters have to be named, not only refused.
struct EcFields<'a> {
    scalar: &'a [u8],
    parameters: Option<AnyRef<'a>>,
    public: Option<&'a [u8]>,
}

impl<'a> EcFields<'a> {
    fn from_der(der: &'a [u8]) -> pkcs8::der::Result<Self> {
        let mut reader = SliceReader::new(der)?;
        let fields = reader.sequence(|reader| {
            version(reader, &[1])?;
            let scalar = <&OctetStringRef>::decode(reader)?.as_bytes();
            let parameters = ContextSpecific::<AnyRef<'a>>::decode_explicit(reader, TagNumber(0))?;
            let public = ContextSpecific::<BitStringRef<'a>>::decode_explicit(reader, TagNumber(1))?;
            Ok::<_, pkcs8::der::Error>(Self {
                scalar,
                parameters: parameters.map(|field| field.value),
                public: public.map(|field| whole_bytes(field.value)).transpose()?,
            })
        })?;
        reader.finish()?;
        Ok(fields)
    }
}

/// The bytes of a bit string; one that ends within a byte is no key.
fn whole_bytes(bits: BitStringRef<'_>) -> pkcs8::der::Result<&[u8]> {
    bits.as_bytes().ok_or_else(|| Tag::BitString.value_error().into())
}

/// The first field of every structure; another version may mean anything.
fn version<'a>(reader: &mut impl pkcs8::der::Reader<'a>, known: &[u8]) -> pkcs8::der::Result<()> {
    match u8::decode(reader)? {
        version if known.contains(&version) => Ok(()),
        _ => Err(Tag::Integer.value_error().into()),
    }
}

fn strip_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.get(zeros..).unwrap_or_default()
}

// By its path, because this file is part of other programs too, and rustfmt looks for its modules beside it there.
#[cfg(test)]
#[path = "key/properties.rs"]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    /// `ECPrivateKey` of a scalar below 256, with what is given of the optional fields.
    fn sec1(scalar: u8, width: usize, curve: Option<&[u8]>, public: Option<&[u8]>) -> Vec<u8> {
        let tlv = |tag: u8, body: &[u8]| {
            assert!(body.len() < 128);
            [&[tag, u8::try_from(body.len()).unwrap()], body].concat()
        };
        let mut number = vec![0; width];
        number[width - 1] = scalar;
        let mut body = [tlv(2, &[1]), tlv(4, &number)].concat();
        body.extend(curve.map(|oid| tlv(0xa0, &tlv(6, oid))).unwrap_or_default());
        body.extend(public.map(|point| tlv(0xa1, &tlv(3, &[&[0], point].concat()))).unwrap_or_default());
        tlv(0x30, &body)
    }

    /// The uncompressed point that belongs to a scalar.
    fn point(scalar: u8) -> Vec<u8> {
        Curve::P256.derive(&[scalar]).unwrap()
    }

    const P256_DER: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    const SECP256K1_DER: &[u8] = &[0x2b, 0x81, 4, 0, 10];

    #[test]
    fn the_public_half_is_derived_and_not_believed() {
        let rows = [
            (sec1(7, 32, Some(P256_DER), Some(&point(7))), Ok(())),
            (sec1(7, 32, Some(P256_DER), None), Ok(())),
            (sec1(7, 32, None, None), Ok(())),
            (sec1(7, 1, Some(P256_DER), None), Ok(())),
            (sec1(7, 33, Some(P256_DER), None), Ok(())),
            (sec1(8, 32, Some(P256_DER), Some(&point(7))), Err(BadKey::Contradicts(HALVES))),
            (sec1(0, 32, Some(P256_DER), None), Err(BadKey::Malformed("EC"))),
            (sec1(7, 32, Some(SECP256K1_DER), None), Err(BadKey::Unsupported("secp256k1".into()))),
            (vec![], Err(BadKey::Malformed("EC"))),
            (vec![0x30, 0x80], Err(BadKey::Malformed("EC"))),
        ];
        for (der, wanted) in rows {
            let read = PrivateKey::from_der(KeyForm::Sec1, &der);
            let pairs = read.as_ref().map(|key| key.pairs_with(&PublicKey::P256(point(7))));
            assert!(pairs.as_ref().is_ok_and(|fits| *fits) || pairs.is_err(), "{der:02x?}");
            assert_eq!(read.map(|_| ()), wanted, "{der:02x?}");
        }
    }

    #[test]
    fn only_the_own_point_pairs_compressed_or_not() {
        let key = PrivateKey::from_der(KeyForm::Sec1, &sec1(7, 32, Some(P256_DER), None)).unwrap();
        let compressed = [&[2 + (point(7)[64] & 1)], &point(7)[1..33]].concat();
        assert!(key.pairs_with(&PublicKey::P256(compressed)));
        for other in [point(8), vec![], vec![0], point(7)[..64].to_vec()] {
            assert!(!key.pairs_with(&PublicKey::P256(other)));
        }
        assert!(!key.pairs_with(&PublicKey::P384(point(7))));
        assert!(!key.pairs_with(&PublicKey::Unsupported("X25519".into())));
    }

    #[test]
    fn every_number_of_an_rsa_key_has_to_belong_to_the_others() {
        let fit = |numbers: [u16; 8]| belong_together(&numbers.map(|number| Zeroizing::new(number.into())));
        assert!(fit([3233, 17, 413, 61, 53, 53, 49, 38]));
        let rows = [
            ("the modulus is not the product", [3235, 17, 413, 61, 53, 53, 49, 38]),
            ("the exponents are not inverse for p", [3233, 17, 465, 61, 53, 45, 49, 38]),
            ("the exponents are not inverse for q", [3233, 17, 473, 61, 53, 53, 5, 38]),
            ("the public exponent is another", [3233, 19, 413, 61, 53, 53, 49, 38]),
            ("d is not d_p", [3233, 17, 413, 61, 53, 54, 49, 38]),
            ("d is not d_q", [3233, 17, 413, 61, 53, 53, 48, 38]),
            ("the coefficient is not inverse", [3233, 17, 413, 61, 53, 53, 49, 39]),
            ("p is 1", [53, 17, 413, 1, 53, 0, 49, 0]),
            ("q is 0", [0, 17, 413, 61, 0, 53, 49, 38]),
        ];
        for (name, numbers) in rows {
            assert!(!fit(numbers), "{name}");
        }
    }
}
