//! The requirements that a bundle is checked against.

use rustls::RootCertStore;
use time::OffsetDateTime;

use super::finding::Status;
use crate::names::Domain;

pub struct CheckContext<'a> {
    /// Domains that the leaf must cover; empty means any.
    pub domains: &'a [Domain],
    /// When the certificate must be valid.
    pub at: OffsetDateTime,
    /// The status of a test, staging or self-signed issuer.
    pub untrusted: Status,
    /// The path that the chain must have; `None` means that this is not checked.
    pub path: Option<PathRule<'a>>,
    /// The URL of the ACME directory, if the client names it.
    pub directory: Option<&'a str>,
}

/// The rule that a chain must have a path to a trust anchor.
#[derive(Clone, Copy)]
pub struct PathRule<'a> {
    pub anchors: &'a RootCertStore,
    /// The status of a chain without a path: a failure, or a warning unless another finding explains it.
    pub no_path: Status,
}
