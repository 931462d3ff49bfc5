//! Path validation by webpki, as a TLS client does it (RFC 5280, section 6), and its verdicts in words.

use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, UnixTime};
use time::OffsetDateTime;
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage};

use crate::cert::Certificate;
use crate::material::Chain;
use crate::trust;

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
        .map_err(|error| trust::words(&error).into())
}

fn der(certificate: &Certificate) -> CertificateDer<'_> {
    CertificateDer::from(certificate.der())
}
