//! The API of the service: one method of `Client` for each endpoint.
//!
//! Requests are retried until they succeed, are refused, or the run's deadline passes. What the API document leaves
//! open is read leniently. Nothing that leaves this module holds a secret, except a downloaded private key.

mod client;
mod config;
mod connection;
mod endpoints;
mod envelope;
mod error;
mod gap;
mod limiter;
mod list;
mod response;
mod timestamp;
mod transport;
mod wire;

pub(crate) use self::client::Client;
pub(crate) use self::config::{ClientConfig, SetupError};
pub(crate) use self::endpoints::Listing;
pub(crate) use self::error::{AttemptError, CertificateFault, RequestError};
pub(crate) use self::gap::Gap;
pub(crate) use self::limiter::MAX_CONCURRENT_REQUESTS;
pub(crate) use self::list::List;
pub(crate) use self::response::Download;
pub(crate) use self::timestamp::Timestamp;
pub(crate) use self::wire::{ApiObject, Record, RecordType, SavedSite, Site, Uploaded};

/// Parses a body as the response of each endpoint, for fuzzing.
#[doc(hidden)]
pub fn parse_response(json: &serde_json::Value) {
    let _ = (List::<Record>::of_records(json), List::<Site>::of_sites(json));
    let _ = (ApiObject::of_site(json), SavedSite::from_json(json), Uploaded::from_json(json));
}
