//! RSA private keys, checked with the `rsa` crate.

use rsa::traits::{PrivateKeyParts as _, PublicKeyParts as _};
use rsa::{BigUint, RsaPrivateKey};
use zeroize::Zeroizing;

use super::KeyError;
use super::strict::{Numbers, Repair};
use crate::cert::{KeyType, PublicKey, bit_length};

/// Reads an `RSAPrivateKey` (RFC 8017, appendix A.1.2).
pub(super) fn read(der: &[u8]) -> Result<Numbers, KeyError> {
    let key = rsa::pkcs1::RsaPrivateKey::try_from(der).map_err(|_| KeyError::Malformed("RSA"))?;
    if key.other_prime_infos.is_some() {
        return Err(KeyError::Unsupported("RSA with more than two primes".into()));
    }
    let key_type = KeyType::Rsa { bits: bit_length(key.modulus.as_bytes()) };
    if !key_type.is_supported() {
        return Err(KeyError::Unsupported(key_type.to_string()));
    }
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
    // Every number is below the modulus; computing with a longer one would only cost time.
    let max = key.modulus.as_bytes().len();
    if numbers.iter().any(|number| number.as_bytes().len() > max) {
        return Err(KeyError::InconsistentRsa);
    }
    checked(numbers.map(|number| BigUint::from_bytes_be(number.as_bytes()))).ok_or(KeyError::InconsistentRsa)
}

/// Returns the numbers, repaired, if they belong to one key; their names are those of RFC 8017, section 3.2.
///
/// `from_components` checks that n = p·q and that e·d ≡ 1 modulo p − 1 and q − 1. It also computes the values for the
/// Chinese remainder theorem; servers sign with those in the file, so a wrong one would spoil every handshake.
#[expect(clippy::many_single_char_names, reason = "the names of the standard")]
fn checked([n, e, d, p, q, d_p, d_q, q_inv]: [BigUint; 8]) -> Option<Numbers> {
    let stored = [d_p, d_q, q_inv].map(Zeroizing::new);
    let key = RsaPrivateKey::from_components(n, e, d, vec![p, q]).ok()?;
    let crt = crt_values(&key)?;
    let is_reduced = crt == stored && key.d() < key.n();
    if !is_reduced && reduced(&key, &stored)? != crt {
        return None;
    }
    let [p, q] = key.primes() else { return None };
    let d =
        Zeroizing::new(if key.d() < key.n() { key.d().clone() } else { key.d() % ((p - 1u8) * (q - 1u8)) });
    let secrets = [&d, p, q].into_iter().chain(crt.iter().map(|number| &**number));
    Some(Numbers {
        public_key: PublicKey::Rsa { modulus: key.n().to_bytes_be(), exponent: key.e().to_bytes_be() },
        secrets: secrets.map(|number| Zeroizing::new(number.to_bytes_be())).collect(),
        repairs: if is_reduced { Vec::new() } else { vec![Repair::Unreduced] },
    })
}

/// The exponents and the coefficient for the Chinese remainder theorem, each below its modulus.
fn crt_values(key: &RsaPrivateKey) -> Option<[Zeroizing<BigUint>; 3]> {
    let [d_p, d_q] = [key.dp()?, key.dq()?].map(|number| Zeroizing::new(number.clone()));
    Some([d_p, d_q, Zeroizing::new(key.qinv()?.to_biguint()?)])
}

/// Reduces the values of a file modulo their primes.
fn reduced(
    key: &RsaPrivateKey,
    [d_p, d_q, q_inv]: &[Zeroizing<BigUint>; 3],
) -> Option<[Zeroizing<BigUint>; 3]> {
    let [p, q] = key.primes() else { return None };
    Some([&**d_p % (p - 1u8), &**d_q % (q - 1u8), &**q_inv % p].map(Zeroizing::new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_different_keys_are_refused() {
        let is_key = |numbers: [u16; 8]| checked(numbers.map(BigUint::from)).is_some();
        assert!(is_key([3233, 17, 413, 61, 53, 53, 49, 38]));
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
            assert!(!is_key(numbers), "{name}");
        }
    }
    #[test]
    fn numbers_are_brought_below_their_moduli() {
        let reduced = [413u16, 61, 53, 53, 49, 38].map(BigUint::from).to_vec();
        let rows: [([u16; 8], &[Repair]); 5] = [
            ([3233, 17, 413, 61, 53, 53, 49, 38], &[]),
            ([3233, 17, 413, 61, 53, 53 + 60, 49, 38], &[Repair::Unreduced]),
            ([3233, 17, 413, 61, 53, 53, 49 + 52, 38], &[Repair::Unreduced]),
            ([3233, 17, 413, 61, 53, 53, 49, 38 + 61], &[Repair::Unreduced]),
            ([3233, 17, 413 + 60 * 52, 61, 53, 53, 49, 38], &[Repair::Unreduced]),
        ];
        for (numbers, repairs) in rows {
            let read = checked(numbers.map(BigUint::from)).unwrap();
            let secrets: Vec<_> = read.secrets.iter().map(|number| BigUint::from_bytes_be(number)).collect();
            assert_eq!((secrets, read.repairs.as_slice()), (reduced.clone(), repairs), "{numbers:?}");
        }
    }

    /// Half of the keys that Go generates are like this, and every reader accepts them.
    #[test]
    fn smaller_prime_may_be_first() {
        let read = checked([3233u16, 17, 413, 53, 61, 49, 53, 20].map(BigUint::from)).unwrap();
        assert!(read.repairs.is_empty() && read.secrets[1].as_slice() == [53]);
    }
}
