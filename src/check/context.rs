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
    /// Trust anchors to which the chain must have a path; `None` means that this is not checked.
    pub anchors: Option<&'a RootCertStore>,
    /// The URL of the ACME directory, if the client names it.
    pub directory: Option<&'a str>,
}
