//! EC private keys: reads the scalar and computes its public point.

use p256::elliptic_curve::sec1::ToSec1Point as _;
use pkcs8::der::asn1::{AnyRef, ObjectIdentifier};
use pkcs8::der::{Tag, Tagged as _};
use pkcs8::spki::AlgorithmIdentifierRef;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
};
use zeroize::Zeroizing;

use super::der::EcPrivateKey;
use super::strict::{Numbers, Repair};
use super::{KeyError, is_encoding_of};
use crate::cert::{PublicKey, curve_name};

const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");

const MALFORMED: KeyError = KeyError::Malformed("EC");

/// First byte of an uncompressed point (SEC 1, section 2.3.3).
const UNCOMPRESSED: u8 = 4;

/// Reads an `ECPrivateKey`. In PKCS#8 the algorithm around it names the curve.
pub(super) fn read(der: &[u8], algorithm: Option<&AlgorithmIdentifierRef<'_>>) -> Result<Numbers, KeyError> {
    let key = EcPrivateKey::from_der(der).map_err(|_| MALFORMED)?;
    let outer =
        algorithm.and_then(|algorithm| algorithm.parameters).filter(|parameters| !parameters.is_null());
    let curve = named_curve(&key, outer)?;
    let length = match curve {
        P256 => 32,
        P384 => 48,
        P521 => 66,
        other => return Err(KeyError::Unsupported(curve_name(&other.to_string()))),
    };
    let scalar = padded(key.scalar, length).ok_or(MALFORMED)?;
    let public_key = match curve {
        P256 => p256_point(&scalar, key.public_key).map(PublicKey::P256),
        P384 => p384_point(&scalar, key.public_key).map(PublicKey::P384),
        _ => p521_point(&scalar).map(PublicKey::P521),
    };
    let public_key = public_key.ok_or(MALFORMED)?;
    if key.public_key.is_some_and(|bits| !is_encoding_of(&public_key, bits)) {
        return Err(KeyError::PublicKeyMismatch);
    }
    let is_curve_named = if algorithm.is_some() { outer.is_some() } else { key.parameters.is_some() };
    let repairs = repairs(&key, length, is_curve_named);
    Ok(Numbers { public_key, secrets: vec![scalar], repairs })
}

/// How a key whose scalar should have `length` bytes deviates from the strict form.
fn repairs(key: &EcPrivateKey<'_>, length: usize, is_curve_named: bool) -> Vec<Repair> {
    let found = key.scalar.len();
    let scalar = (found != length).then_some(Repair::ScalarLength { found, wanted: length });
    let public_key = match key.public_key {
        None => Some(Repair::NoPublicKey),
        Some([UNCOMPRESSED, ..]) => None,
        Some(_) => Some(Repair::CompressedPublicKey),
    };
    let curve = (!is_curve_named).then_some(Repair::NoCurve);
    [scalar, public_key, curve].into_iter().flatten().collect()
}

/// The object identifier of an EC key's curve.
pub(super) fn curve(key: &PublicKey) -> Option<&'static ObjectIdentifier> {
    match key {
        PublicKey::P256(_) => Some(&P256),
        PublicKey::P384(_) => Some(&P384),
        PublicKey::P521(_) => Some(&P521),
        PublicKey::Rsa { .. } | PublicKey::Ed25519(_) | PublicKey::Unsupported(_) => None,
    }
}

/// Whether `point` encodes the uncompressed point `own`, compressed or not (SEC 1, section 2.3.3).
pub(super) fn is_same_point(own: &[u8], point: &[u8]) -> bool {
    let compressed = || {
        let (x, y) = own.get(1..)?.split_at_checked(own.len() / 2)?;
        Some([&[2 | y.last()? & 1], x].concat())
    };
    own == point || compressed().is_some_and(|own| own == point)
}

fn named_curve(key: &EcPrivateKey<'_>, outer: Option<AnyRef<'_>>) -> Result<ObjectIdentifier, KeyError> {
    if outer.is_some() && key.parameters.is_some_and(|inner| Some(inner) != outer) {
        return Err(KeyError::CurveMismatch);
    }
    match outer.or(key.parameters) {
        Some(parameters) if parameters.tag() == Tag::ObjectIdentifier => {
            parameters.decode_as().map_err(|_| MALFORMED)
        }
        Some(_) => Err(KeyError::Unsupported("EC with explicit curve parameters".into())),
        None => Ok(guessed_curve(key)),
    }
}

/// The curve of a key that names none, by the length of its numbers. After a wrong guess the key does not pair with the
/// leaf.
fn guessed_curve(key: &EcPrivateKey<'_>) -> ObjectIdentifier {
    match (key.public_key.map(<[u8]>::len), key.scalar.len()) {
        (Some(33 | 65), _) | (None, 32) => P256,
        (Some(49 | 97), _) | (None, 48) => P384,
        (Some(67 | 133), _) | (None, 66) => P521,
        _ => match significant(key.scalar).len() {
            ..=32 => P256,
            33..=48 => P384,
            _ => P521,
        },
    }
}

/// Prefers ring, which takes a tenth of the instructions of the `p256` crate but can only compare with a given public key.
fn p256_point(scalar: &[u8], stored: Option<&[u8]>) -> Option<Vec<u8>> {
    if let Some(point) = stored.filter(|point| is_pair(&ECDSA_P256_SHA256_ASN1_SIGNING, scalar, point)) {
        return Some(point.to_vec());
    }
    let key = p256::SecretKey::from_slice(scalar).ok()?;
    Some(key.public_key().to_sec1_point(false).as_bytes().to_vec())
}

/// Prefers ring, which takes half the time of the `p384` crate.
fn p384_point(scalar: &[u8], stored: Option<&[u8]>) -> Option<Vec<u8>> {
    if let Some(point) = stored.filter(|point| is_pair(&ECDSA_P384_SHA384_ASN1_SIGNING, scalar, point)) {
        return Some(point.to_vec());
    }
    let key = p384::SecretKey::from_slice(scalar).ok()?;
    Some(key.public_key().to_sec1_point(false).as_bytes().to_vec())
}

/// Whether the uncompressed `point` belongs to the scalar.
fn is_pair(curve: &'static EcdsaSigningAlgorithm, scalar: &[u8], point: &[u8]) -> bool {
    EcdsaKeyPair::from_private_key_and_public_key(curve, scalar, point, &SystemRandom::new()).is_ok()
}

fn p521_point(scalar: &[u8]) -> Option<Vec<u8>> {
    let key = p521::SecretKey::from_slice(scalar).ok()?;
    Some(key.public_key().to_sec1_point(false).as_bytes().to_vec())
}

/// Brings a scalar to its full length, because some writers omit leading zeros and others add one.
fn padded(scalar: &[u8], length: usize) -> Option<Zeroizing<Vec<u8>>> {
    let significant = significant(scalar);
    let padding = length.checked_sub(significant.len())?;
    // Allocated once at full size: growing would leave a copy behind that is not zeroized.
    let mut padded = Zeroizing::new(Vec::with_capacity(length));
    padded.resize(padding, 0);
    padded.extend_from_slice(significant);
    Some(padded)
}

/// A number without its leading zeros.
fn significant(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::EC;
    use super::*;

    /// DER of each curve's object identifier, and the length of its scalars.
    const CURVES: [(&[u8], usize); 3] = [
        (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7], 32),
        (&[0x2b, 0x81, 4, 0, 34], 48),
        (&[0x2b, 0x81, 4, 0, 35], 66),
    ];
    const SECP256K1: &[u8] = &[0x2b, 0x81, 4, 0, 10];

    /// The public key of an `ECPrivateKey`; in PKCS#8 with the given curve.
    fn public_key(der: &[u8], outer: Option<AnyRef<'_>>) -> Result<PublicKey, KeyError> {
        let algorithm = outer.map(|curve| AlgorithmIdentifierRef { oid: EC, parameters: Some(curve) });
        read(der, algorithm.as_ref()).map(|numbers| numbers.public_key)
    }

    /// An `ECPrivateKey` with the given optional fields.
    fn sec1(scalar: &[u8], curve: Option<&[u8]>, point: Option<&[u8]>) -> Vec<u8> {
        let tlv = |tag: u8, value: &[u8]| {
            let length = u8::try_from(value.len()).unwrap();
            let header = if length < 128 { vec![tag, length] } else { vec![tag, 0x81, length] };
            [header.as_slice(), value].concat()
        };
        let mut fields = [tlv(2, &[1]), tlv(4, scalar)].concat();
        fields.extend(curve.map(|oid| tlv(0xa0, &tlv(6, oid))).unwrap_or_default());
        fields.extend(point.map(|point| tlv(0xa1, &tlv(3, &[&[0], point].concat()))).unwrap_or_default());
        tlv(0x30, &fields)
    }

    /// A scalar below 256 in its full length.
    fn scalar(value: u8, length: usize) -> Vec<u8> {
        let mut scalar = vec![0; length];
        scalar[length - 1] = value;
        scalar
    }

    fn point(value: u8, (curve, length): (&[u8], usize)) -> Vec<u8> {
        match public_key(&sec1(&scalar(value, length), Some(curve), None), None).unwrap() {
            PublicKey::P256(point) | PublicKey::P384(point) | PublicKey::P521(point) => point,
            other => panic!("{other:?}"),
        }
    }

    fn compressed(point: &[u8]) -> Vec<u8> {
        [&[2 + point[point.len() - 1] % 2], &point[1..=point.len() / 2]].concat()
    }

    #[test]
    fn stored_public_key_must_match_the_scalar() {
        for curve @ (oid, length) in CURVES {
            let (own, other) = (point(7, curve), point(8, curve));
            let rows = [
                ("uncompressed", Some(own.clone()), Ok(())),
                ("compressed", Some(compressed(&own)), Ok(())),
                ("none", None, Ok(())),
                ("of another key", Some(other.clone()), Err(KeyError::PublicKeyMismatch)),
                ("compressed, of another key", Some(compressed(&other)), Err(KeyError::PublicKeyMismatch)),
                ("cut off", Some(own[..length].to_vec()), Err(KeyError::PublicKeyMismatch)),
                ("empty", Some(vec![]), Err(KeyError::PublicKeyMismatch)),
            ];
            for (name, stored, wanted) in rows {
                let read = public_key(&sec1(&scalar(7, length), Some(oid), stored.as_deref()), None);
                assert_eq!(read.map(|_| ()), wanted, "{length} bytes, {name}");
            }
        }
    }

    #[test]
    fn scalars_are_padded_and_limited_to_the_order() {
        for curve @ (oid, length) in CURVES {
            let read = |scalar: &[u8]| public_key(&sec1(scalar, Some(oid), None), None);
            let own = read(&scalar(7, length)).unwrap();
            for same in [vec![7], scalar(7, length - 1), scalar(7, length + 1)] {
                assert_eq!(read(&same).as_ref(), Ok(&own), "{same:?}");
            }
            let stored = sec1(&scalar(0, length), Some(oid), Some(&point(7, curve)));
            assert_eq!(public_key(&stored, None), Err(MALFORMED));
            for none in [vec![], scalar(0, length), vec![0xff; length], vec![1; length + 1]] {
                assert_eq!(read(&none), Err(MALFORMED), "{none:?}");
            }
        }
    }

    #[test]
    fn curve_comes_from_either_place_or_the_length() {
        for curve @ (oid, length) in CURVES {
            let (unnamed, own) = (sec1(&scalar(7, length), None, None), point(7, curve));
            let oid_der = [&[6, u8::try_from(oid.len()).unwrap()], oid].concat();
            let outer = Some(AnyRef::try_from(oid_der.as_slice()).unwrap());
            for read in [public_key(&unnamed, None), public_key(&unnamed, outer)] {
                let (PublicKey::P256(read) | PublicKey::P384(read) | PublicKey::P521(read)) = read.unwrap()
                else {
                    panic!("not an EC key")
                };
                assert_eq!(read, own);
            }
            let two = sec1(&scalar(7, length), Some(SECP256K1), None);
            assert_eq!(public_key(&two, outer), Err(KeyError::CurveMismatch));
            assert_eq!(public_key(&two, None), Err(KeyError::Unsupported("secp256k1".into())));
        }
    }

    #[test]
    fn damaged_structures_are_malformed() {
        for der in [vec![], vec![0x30, 0x80], vec![0x30, 3, 2, 1, 1], vec![0x30, 3, 2, 1, 2]] {
            assert_eq!(public_key(&der, None), Err(MALFORMED), "{der:02x?}");
        }
    }

    #[test]
    fn points_match_in_both_encodings_only() {
        for curve in CURVES {
            let (own, other) = (point(7, curve), point(8, curve));
            assert!(is_same_point(&own, &own) && is_same_point(&own, &compressed(&own)));
            let mut negated = compressed(&own);
            negated[0] ^= 1;
            for wrong in [compressed(&other), other, negated, vec![], vec![0], own[..own.len() - 1].to_vec()]
            {
                assert!(!is_same_point(&own, &wrong), "{wrong:02x?}");
            }
        }
    }

    #[test]
    fn ring_compares_uncompressed_points() {
        let rows =
            [(&ECDSA_P256_SHA256_ASN1_SIGNING, CURVES[0]), (&ECDSA_P384_SHA384_ASN1_SIGNING, CURVES[1])];
        for (algorithm, curve @ (_, length)) in rows {
            let own = point(7, curve);
            assert!(is_pair(algorithm, &scalar(7, length), &own));
            assert!(!is_pair(algorithm, &scalar(8, length), &own));
            assert!(!is_pair(algorithm, &scalar(7, length), &compressed(&own)));
            assert!(!is_pair(algorithm, &scalar(0, length), &own));
        }
    }
}
