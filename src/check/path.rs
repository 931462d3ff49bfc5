//! Path validation by webpki, as a TLS client does it (RFC 5280, section 6).

use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, UnixTime};
use time::OffsetDateTime;
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, Error, KeyUsage};

use crate::bundle::Chain;

/// Validates that the leaf, used by a TLS server, has a path to an anchor. The error says why it has none.
pub(super) fn validate(chain: &Chain, anchors: &RootCertStore, at: OffsetDateTime) -> Result<(), Error> {
    let leaf = chain.leaf.der.as_slice().into();
    let issuers: Vec<_> = chain.issuers.iter().map(|issuer| CertificateDer::from(&*issuer.der)).collect();
    let seconds = u64::try_from(at.unix_timestamp()).unwrap_or(0);
    let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    let (leaf, usage) = (EndEntityCert::try_from(&leaf)?, KeyUsage::server_auth());
    leaf.verify_for_usage(ALL_VERIFICATION_ALGS, &anchors.roots, &issuers, at, usage, None, None)?;
    Ok(())
}

/// What to do about a path that does not validate.
pub(super) fn hint(error: &Error) -> &'static str {
    match error {
        Error::UnknownIssuer => {
            "check that the file holds the full chain; name the root of a private CA with --trust-anchors FILE, or pass --trust-anchors off"
        }
        Error::CertExpired { .. } => "renew the certificate to get a current chain",
        Error::CertNotValidYet { .. } => "check the clock of this host",
        Error::InvalidSignatureForPublicKey => "pass the chain of this renewal",
        _ => "have the CA issue it again, with a chain that TLS clients accept",
    }
}

/// Describes why a path does not validate.
pub fn describe_path_error(error: &Error) -> &'static str {
    match error {
        Error::UnknownIssuer => "the chain does not end at one",
        Error::CertExpired { .. } => "a certificate in the chain has expired",
        Error::CertNotValidYet { .. } => "a certificate in the chain is not valid yet",
        Error::InvalidSignatureForPublicKey => "a certificate was not signed by the issuer that it names",
        Error::CaUsedAsEndEntity => "the leaf is a CA certificate",
        Error::EndEntityUsedAsCa => "an issuer in the chain is not a CA",
        Error::NameConstraintViolation => "a CA of the chain is not allowed to issue for these names",
        Error::RequiredEkuNotFoundContext(_) | Error::EmptyEkuExtension => {
            "a certificate in the chain is not for TLS servers"
        }
        Error::UnsupportedSignatureAlgorithmContext(_) | Error::SignatureAlgorithmMismatch => {
            "a certificate in the chain has an unsupported signature algorithm"
        }
        Error::UnsupportedCriticalExtension => "a certificate in the chain has an unknown critical extension",
        _ => "a certificate in the chain cannot be used, or the chain is too long",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn common_faults_of_a_path_have_sentences_of_their_own() {
        let time = UnixTime::since_unix_epoch(Duration::ZERO);
        let faults = [
            Error::UnknownIssuer,
            Error::CertExpired { time, not_after: time },
            Error::CertNotValidYet { time, not_before: time },
            Error::InvalidSignatureForPublicKey,
            Error::CaUsedAsEndEntity,
            Error::EndEntityUsedAsCa,
            Error::NameConstraintViolation,
            Error::EmptyEkuExtension,
            Error::SignatureAlgorithmMismatch,
            Error::UnsupportedCriticalExtension,
            Error::BadDer,
        ];
        let sentences: HashSet<&str> = faults.iter().map(describe_path_error).collect();
        assert_eq!(sentences.len(), faults.len(), "{sentences:?}");
        let hints: HashSet<&str> = faults.iter().map(hint).collect();
        assert_eq!(hints.len(), 5, "{hints:?}");
    }
}
