//! Path validation by webpki, as a TLS client does it (RFC 5280, section 6), and its verdicts in words.

use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, UnixTime};
use time::OffsetDateTime;
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, Error, KeyUsage};

use crate::bundle::Chain;
use crate::cert::Certificate;

/// Looks for a path from the leaf to an anchor for use by a TLS server; the reason where there is none.
pub(super) fn verify(chain: &Chain, anchors: &RootCertStore, at: OffsetDateTime) -> Result<(), String> {
    let leaf = der(&chain.leaf);
    let issuers: Vec<CertificateDer<'_>> = chain.issuers.iter().map(der).collect();
    let seconds = u64::try_from(at.unix_timestamp()).unwrap_or(0);
    let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    EndEntityCert::try_from(&leaf)
        .and_then(|leaf| {
            let usage = KeyUsage::server_auth();
            leaf.verify_for_usage(ALL_VERIFICATION_ALGS, &anchors.roots, &issuers, at, usage, None, None)
                .map(|_| ())
        })
        .map_err(|error| words(&error).into())
}

fn der(certificate: &Certificate) -> CertificateDer<'_> {
    CertificateDer::from(certificate.der())
}

/// A verdict of the path validation in words.
pub fn words(error: &Error) -> &'static str {
    match error {
        Error::UnknownIssuer => "the chain ends at an issuer that is not among them",
        Error::CertExpired { .. } => "a certificate of the chain has expired",
        Error::CertNotValidYet { .. } => "a certificate of the chain is not valid yet",
        Error::InvalidSignatureForPublicKey => "a signature is not by the issuer that it names",
        Error::CaUsedAsEndEntity => "the leaf is a CA certificate",
        Error::EndEntityUsedAsCa => "a certificate that is no CA signed another one",
        Error::NameConstraintViolation => "a CA of the chain may not sign for these names",
        Error::PathLenConstraintViolated => "a CA of the chain may not have so many CAs below it",
        Error::RequiredEkuNotFoundContext(_) | Error::EmptyEkuExtension => {
            "a certificate of the chain is not for TLS servers"
        }
        Error::UnsupportedSignatureAlgorithmContext(_) | Error::SignatureAlgorithmMismatch => {
            "a signature is of a kind that is not accepted any more"
        }
        Error::UnsupportedCertVersion => "a certificate is not of version 3",
        Error::UnsupportedCriticalExtension => "a critical extension is not known",
        Error::MaximumPathBuildCallsExceeded
        | Error::MaximumPathDepthExceeded
        | Error::MaximumSignatureChecksExceeded
        | Error::MaximumNameConstraintComparisonsExceeded => "the chain is too tangled to be followed",
        Error::InvalidCertValidity => "a certificate ends before it begins",
        Error::MalformedDnsIdentifier | Error::MalformedNameConstraint | Error::UnsupportedNameType => {
            "a name or name constraint cannot be understood"
        }
        _ => "a certificate of the chain is malformed",
    }
}
