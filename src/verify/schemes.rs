//! Signature schemes that clients offer. An edge may hold a certificate for each key type and chooses by the schemes.

use rustls::SignatureScheme as S;

use crate::cert::KeyType;

pub(super) type Schemes = &'static [S];

/// Two kinds of clients that accept different key types.
#[derive(Clone, Copy)]
pub(super) struct ClientKinds {
    /// Accepts the key type of the expected leaf only.
    pub(super) own: Schemes,
    /// Accepts other key types.
    pub(super) other: Schemes,
    /// The second kind, for messages.
    pub(super) other_name: &'static str,
}

/// Every key type that can be deployed, in an order that makes each of the sets below a part of it.
pub(super) const ANY: Schemes = &[
    S::ED25519,
    S::ECDSA_NISTP256_SHA256,
    S::ECDSA_NISTP384_SHA384,
    S::ECDSA_NISTP521_SHA512,
    S::RSA_PSS_SHA256,
    S::RSA_PSS_SHA384,
    S::RSA_PSS_SHA512,
    S::RSA_PKCS1_SHA256,
    S::RSA_PKCS1_SHA384,
    S::RSA_PKCS1_SHA512,
];
const NOT_RSA: Schemes = ANY.split_at(4).0;
const RSA: Schemes = ANY.split_at(4).1;
const ED25519: Schemes = NOT_RSA.split_at(1).0;
const ECDSA: Schemes = NOT_RSA.split_at(1).1;
const NOT_ED25519: Schemes = ANY.split_at(1).1;

pub(super) const ONLY_RSA_CLIENTS: &str = "clients that accept only RSA";
pub(super) const NO_RSA_CLIENTS: &str = "clients that do not accept RSA";

impl ClientKinds {
    /// The kinds for a leaf with this key type. If the type is unknown, the first kind accepts all but RSA.
    pub(super) fn new(key_type: Option<&KeyType>) -> Self {
        match key_type {
            Some(KeyType::Rsa { .. }) => Self { own: RSA, other: NOT_RSA, other_name: NO_RSA_CLIENTS },
            Some(KeyType::Ed25519) => {
                Self { own: ED25519, other: NOT_ED25519, other_name: "clients that do not accept Ed25519" }
            }
            Some(_) => Self { own: ECDSA, other: RSA, other_name: ONLY_RSA_CLIENTS },
            None => Self { own: NOT_RSA, other: RSA, other_name: ONLY_RSA_CLIENTS },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_one_key_type() {
        assert_eq!(ED25519, [S::ED25519]);
        let name = |scheme: &S| scheme.as_str().unwrap();
        assert!(ECDSA.len() == 3 && ECDSA.iter().all(|scheme| name(scheme).starts_with("ECDSA_")));
        assert!(RSA.len() == 6 && RSA.iter().all(|scheme| name(scheme).starts_with("RSA_")));
    }

    #[test]
    fn client_kinds_do_not_overlap() {
        let types = [None, Some(KeyType::Rsa { bits: 2048 }), Some(KeyType::P256), Some(KeyType::Ed25519)];
        for key_type in types {
            let ClientKinds { own, other, .. } = ClientKinds::new(key_type.as_ref());
            assert!(own.iter().all(|scheme| !other.contains(scheme)), "{key_type:?}");
        }
    }
}
