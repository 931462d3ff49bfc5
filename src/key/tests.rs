//! Encodings of keys and numbers that do not belong together.

use super::*;

const P256: &[u8] = CURVES[0].oid;
const SECP256K1: &[u8] = &oid!(raw 1.3.132.0.10);

/// An `ECPrivateKey` with the given optional fields.
pub(super) fn sec1(scalar: &[u8], curve: Option<&[u8]>, point: Option<&[u8]>) -> Vec<u8> {
    let curve = curve.map(|oid| write(CONTEXT_0, &[write(OID, &[oid])])).unwrap_or_default();
    let bits = |point: &[u8]| write(CONTEXT_1, &[write(BIT_STRING, &[&[0], point])]);
    let point = point.map(bits).unwrap_or_default();
    write(SEQUENCE, &[integer(&[1]), write(OCTET_STRING, &[scalar]), curve, point]).to_vec()
}

/// A `PrivateKeyInfo` with the given parameters and last field, encoded.
pub(super) fn pkcs8(version: u8, algorithm: &[u8], parameters: &[u8], key: &[u8], last: &[u8]) -> Vec<u8> {
    let algorithm = write(SEQUENCE, &[&write(OID, &[algorithm]), parameters]);
    let key = write(OCTET_STRING, &[key]);
    write(SEQUENCE, &[integer(&[version]).as_slice(), &algorithm, &key, last]).to_vec()
}

/// A scalar below 256 in its full length.
fn scalar(value: u8, length: usize) -> Vec<u8> {
    let mut scalar = vec![0; length];
    scalar[length - 1] = value;
    scalar
}

fn read_sec1(der: &[u8]) -> Result<PrivateKey, KeyError> {
    PrivateKey::from_der(KeyFormat::Sec1, der)
}

fn point_of(value: u8, curve: &Curve) -> Vec<u8> {
    read_sec1(&sec1(&scalar(value, curve.length), Some(curve.oid), None)).unwrap().public_key.bits
}

pub(super) fn compressed(point: &[u8]) -> Vec<u8> {
    [&[2 + point[point.len() - 1] % 2], &point[1..=point.len() / 2]].concat()
}

#[test]
fn stored_public_key_must_match_the_scalar() {
    for curve in &CURVES {
        let (own, other) = (point_of(7, curve), point_of(8, curve));
        let mut negated = compressed(&own);
        negated[0] ^= 1;
        let rows = [
            ("uncompressed", Some(own.clone()), Ok(())),
            ("compressed", Some(compressed(&own)), Ok(())),
            ("none", None, Ok(())),
            ("of another key", Some(other.clone()), Err(PUBLIC_KEY_MISMATCH)),
            ("compressed, of another key", Some(compressed(&other)), Err(PUBLIC_KEY_MISMATCH)),
            ("compressed, negated", Some(negated), Err(PUBLIC_KEY_MISMATCH)),
            ("compact", Some([&[5], &own[1..=curve.length]].concat()), Err(PUBLIC_KEY_MISMATCH)),
            ("cut off", Some(own[..curve.length].to_vec()), Err(PUBLIC_KEY_MISMATCH)),
            ("empty", Some(vec![]), Err(PUBLIC_KEY_MISMATCH)),
        ];
        for (name, stored, wanted) in rows {
            let inside = sec1(&scalar(7, curve.length), Some(curve.oid), stored.as_deref());
            let read = read_sec1(&inside);
            assert_eq!(read.map(|_| ()), wanted, "{}, {name}", curve.key_type);
            let last = stored.map(|bits| write(IMPLICIT_1, &[&[0], bits.as_slice()])).unwrap_or_default();
            let parameters = write(OID, &[curve.oid]);
            let outside = pkcs8(1, EC, &parameters, &sec1(&scalar(7, curve.length), None, None), &last);
            let read = PrivateKey::from_der(KeyFormat::Pkcs8, &outside);
            assert_eq!(read.map(|_| ()), wanted, "{}, {name}, outside", curve.key_type);
        }
    }
}

#[test]
fn scalars_are_padded_and_limited_to_the_order() {
    for curve @ Curve { oid, length, .. } in &CURVES {
        let read = |scalar: &[u8]| read_sec1(&sec1(scalar, Some(oid), None)).map(|key| key.der);
        let own = read(&scalar(7, *length)).unwrap();
        for same in [vec![7], scalar(7, length - 1), scalar(7, length + 1)] {
            assert_eq!(read(&same).as_ref(), Ok(&own), "{same:?}");
        }
        let stored = sec1(&scalar(0, *length), Some(oid), Some(&point_of(7, curve)));
        assert_eq!(read_sec1(&stored).err(), Some(MALFORMED_EC));
        for none in [vec![], scalar(0, *length), vec![0xff; *length], vec![1; length + 1]] {
            assert_eq!(read(&none), Err(MALFORMED_EC), "{none:?}");
        }
    }
}

#[test]
fn curve_comes_from_either_place_or_the_length() {
    for curve @ Curve { oid, length, .. } in &CURVES {
        let own = point_of(7, curve);
        let parameters = write(OID, &[oid]);
        let wrapped = |inner: &[u8]| {
            let der = pkcs8(0, EC, &parameters, inner, &[]);
            PrivateKey::from_der(KeyFormat::Pkcs8, &der).map(|key| key.public_key.bits)
        };
        // The length as written counts, with a zero less or more.
        for written in [scalar(7, length - 1), scalar(7, *length), scalar(7, length + 1)] {
            let unnamed = sec1(&written, None, None);
            assert_eq!(read_sec1(&unnamed).unwrap().public_key.bits, own, "{written:?}");
            assert_eq!(wrapped(&unnamed).as_ref(), Ok(&own), "{written:?}");
        }
        let other = sec1(&scalar(7, *length), Some(SECP256K1), None);
        assert_eq!(wrapped(&other), Err(KeyError::Inconsistent("it names two different curves")));
        assert_eq!(
            read_sec1(&other).err(),
            Some(KeyError::Unsupported("EC with curve OID 1.3.132.0.10".into()))
        );
    }
}

#[test]
fn points_pair_in_both_encodings_only() {
    for curve in &CURVES {
        let key = read_sec1(&sec1(&scalar(7, curve.length), Some(curve.oid), None)).unwrap();
        let pairs = |bits: &[u8]| key.public_key == PublicKey::new(curve.key_type.clone(), bits);
        let (own, other) = (point_of(7, curve), point_of(8, curve));
        assert!(pairs(&own) && pairs(&compressed(&own)));
        let mut negated = compressed(&own);
        negated[0] ^= 1;
        for wrong in [compressed(&other), other, negated, vec![], vec![0], own[..own.len() - 1].to_vec()] {
            assert!(!pairs(&wrong), "{wrong:02x?}");
        }
    }
}

#[test]
fn damaged_structures_are_malformed() {
    for der in [vec![], vec![0x30, 0x80], vec![0x30, 3, 2, 1, 1], vec![0x30, 3, 2, 1, 2]] {
        assert_eq!(read_sec1(&der).err(), Some(MALFORMED_EC), "{der:02x?}");
    }
    let (parameters, inner) = (write(OID, &[P256]), sec1(&[7; 32], None, None));
    let attributes = write(CONTEXT_0, &[NULL]);
    let rows: [(u8, &[u8], bool); 6] = [
        (0, &[], true),
        (0, &attributes, true),
        (1, &attributes, true),
        (2, &[], false),
        (0, NULL, false),
        (0, &[attributes.as_slice(), &attributes].concat(), false),
    ];
    for (version, last, is_readable) in rows {
        let read = PrivateKey::from_der(KeyFormat::Pkcs8, &pkcs8(version, EC, &parameters, &inner, last));
        let wanted = (!is_readable).then_some(MALFORMED_PKCS8);
        assert_eq!(read.err(), wanted, "{version} {last:02x?}");
    }
}

#[test]
fn parameters_must_be_those_of_the_algorithm() {
    let seed = write(OCTET_STRING, &[[7; 32]]);
    let empty_sequence: &[u8] = &[0x30, 0];
    let rows: [(&[u8], &[u8], Option<KeyError>); 7] = [
        (ED25519, &[], None),
        (ED25519, NULL, None),
        (ED25519, &[0x25, 0], Some(MALFORMED_PKCS8)),
        (ED25519, &[5, 0, 5, 0], Some(MALFORMED_PKCS8)),
        (RSA, empty_sequence, Some(MALFORMED_PKCS8)),
        (RSASSA_PSS, NULL, Some(MALFORMED_PKCS8)),
        // The key in it is not RSA.
        (RSASSA_PSS, empty_sequence, Some(MALFORMED_RSA)),
    ];
    for (algorithm, parameters, wanted) in rows {
        let der = pkcs8(0, algorithm, parameters, &seed, &[]);
        let read = PrivateKey::from_der(KeyFormat::Pkcs8, &der);
        assert_eq!(read.err(), wanted, "{algorithm:02x?} {parameters:02x?}");
    }
}

#[test]
fn unsupported_types_are_described() {
    let explicit: &[u8] = &[0x30, 0];
    let scalar = sec1(&[7; 32], None, None);
    let rsa = |version: u8, bits: usize, more: &[u8]| {
        let number = |bits: usize| integer(&(BigUint::from(1u8) << (bits - 1)).to_bytes_be());
        let half = bits / 2;
        let numbers = [bits, 17, bits, half, half, half, half, half].map(number);
        let numbers = numbers.iter().flat_map(|number| number.iter().copied()).collect::<Vec<u8>>();
        (KeyFormat::Pkcs1, write(SEQUENCE, &[&*integer(&[version]), &numbers, more]).to_vec())
    };
    let other = |algorithm: &[u8], parameters: &[u8]| {
        (KeyFormat::Pkcs8, pkcs8(0, algorithm, parameters, &scalar, &[]))
    };
    let rows = [
        (rsa(0, 512, &[]), "RSA-512"),
        (rsa(0, 8193, &[]), "RSA-8193"),
        (rsa(1, 1024, &[0x30, 0]), "RSA with more than two primes"),
        (other(&oid!(raw 1.3.101.110), &[]), "OID 1.3.101.110"),
        (other(&oid!(raw 1.3.101.113), &[]), "OID 1.3.101.113"),
        (other(&oid!(raw 1.2.840.10040.4.1), explicit), "OID 1.2.840.10040.4.1"),
        (other(EC, &write(OID, &[SECP256K1])), "EC with curve OID 1.3.132.0.10"),
        (other(EC, &write(OID, &[&oid!(raw 1.3.132.0.33)])), "EC with curve OID 1.3.132.0.33"),
        (other(EC, explicit), "EC with explicit curve parameters"),
    ];
    for ((format, der), name) in rows {
        assert_eq!(PrivateKey::from_der(format, &der).err(), Some(KeyError::Unsupported(name.into())));
    }
}

#[test]
fn ed25519_seeds_must_have_32_bytes() {
    for length in [0, 31, 32, 33] {
        let seed = write(OCTET_STRING, &[vec![7; length]]);
        let key = PrivateKey::from_der(KeyFormat::Pkcs8, &pkcs8(0, ED25519, &[], &seed, &[]));
        let wanted = (length != 32).then_some(KeyError::Malformed("Ed25519"));
        assert_eq!(key.err(), wanted, "{length}");
    }
}

#[test]
fn keys_of_different_types_never_pair() {
    let types = [
        KeyType::Rsa { bits: 1024 },
        KeyType::Rsa { bits: 2048 },
        KeyType::P256,
        KeyType::P384,
        KeyType::P521,
        KeyType::Ed25519,
    ];
    let keys = || types.iter().map(|key_type| PublicKey::new(key_type.clone(), &[4, 1, 2]));
    for (own_at, own) in keys().enumerate() {
        for (other_at, other) in keys().enumerate() {
            assert_eq!(own == other, own_at == other_at, "{own_at} {other_at}");
        }
    }
}

#[test]
fn rsa_is_supported_from_1024_to_8192_bits() {
    for (bits, wanted) in [(1023, false), (1024, true), (8192, true), (8193, false)] {
        let modulus = (BigUint::from(1u8) << (bits - 1)).to_bytes_be();
        let key_type = rsa_type(&modulus);
        assert_eq!(
            (!matches!(key_type, KeyType::Other(_)), key_type.to_string()),
            (wanted, format!("RSA-{bits}"))
        );
    }
}

/// The secret numbers of a key with these numbers, if they are one.
fn secrets(numbers: [u16; 8]) -> Option<Vec<BigUint>> {
    let secrets = rsa_secrets(numbers.map(BigUint::from))?;
    Some(secrets.iter().map(|number| BigUint::from_bytes_be(number)).collect())
}

#[test]
fn numbers_of_different_keys_are_refused() {
    assert!(secrets([3233, 17, 413, 61, 53, 53, 49, 38]).is_some());
    let rows = [
        ("the modulus is not the product", [3235, 17, 413, 61, 53, 53, 49, 38]),
        ("e·d is not 1 modulo p - 1", [3233, 17, 465, 61, 53, 45, 49, 38]),
        ("e·d is not 1 modulo q - 1", [3233, 17, 473, 61, 53, 53, 5, 38]),
        ("another public exponent", [3233, 19, 413, 61, 53, 53, 49, 38]),
        ("d_p is not d modulo p - 1", [3233, 17, 413, 61, 53, 54, 49, 38]),
        ("d_q is not d modulo q - 1", [3233, 17, 413, 61, 53, 53, 48, 38]),
        ("the coefficient is not the inverse", [3233, 17, 413, 61, 53, 53, 49, 39]),
        ("p is 1", [53, 17, 413, 1, 53, 0, 49, 0]),
        ("q is 0", [0, 17, 413, 61, 0, 53, 49, 38]),
        ("p is q", [3721, 17, 53, 61, 61, 53, 53, 1]),
    ];
    for (name, numbers) in rows {
        assert_eq!(secrets(numbers), None, "{name}");
    }
}

/// The primes may be in either order: half of the keys that Go generates have the smaller one first.
#[test]
fn numbers_are_brought_below_their_moduli() {
    let rows: [([u16; 8], [u16; 6]); 6] = [
        ([3233, 17, 413, 61, 53, 53, 49, 38], [413, 61, 53, 53, 49, 38]),
        ([3233, 17, 413, 53, 61, 49, 53, 20], [413, 53, 61, 49, 53, 20]),
        ([3233, 17, 413, 61, 53, 53 + 60, 49, 38], [413, 61, 53, 53, 49, 38]),
        ([3233, 17, 413, 61, 53, 53, 49 + 52, 38], [413, 61, 53, 53, 49, 38]),
        ([3233, 17, 413, 61, 53, 53, 49, 38 + 61], [413, 61, 53, 53, 49, 38]),
        ([3233, 17, 413 + 60 * 52, 61, 53, 53, 49, 38], [413, 61, 53, 53, 49, 38]),
    ];
    for (numbers, wanted) in rows {
        assert_eq!(secrets(numbers), Some(wanted.map(BigUint::from).to_vec()), "{numbers:?}");
    }
}
