//! The API of the service: one method of `Client` for each endpoint.
//!
//! Requests are retried until they succeed, are refused, or the run's deadline passes. What the API document leaves
//! open is read leniently. Nothing that leaves this module holds a secret, except a downloaded private key.

mod client;
mod endpoints;
mod envelope;
mod error;
mod http;
mod limits;
mod list;
mod listing;
mod response;
mod timestamp;
mod transport;
mod upload_body;
mod wire;

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;

use self::response::Response;

pub(crate) use self::client::Client;
pub(crate) use self::endpoints::Listing;
pub(crate) use self::error::{AttemptError, RequestError};
pub(crate) use self::http::{anonymous_client, failure_reason};
pub(crate) use self::limits::MAX_CONCURRENT_REQUESTS;
pub(crate) use self::list::{Gap, List};
pub(crate) use self::timestamp::Timestamp;
pub(crate) use self::transport::Service;
pub(crate) use self::upload_body::UploadBody;
pub(crate) use self::wire::{ApiObject, Record, SavedSite, Site, Uploaded};

/// Parses a body as the response of each endpoint, for fuzzing. Returns whether lists are the same if it arrives in
/// chunks of this many bytes.
#[doc(hidden)]
pub fn parse_response(body: &[u8], chunk: usize) -> bool {
    async fn response<T: listing::Element>(body: &[u8], chunk: usize) -> Response<T> {
        let mut chunks = body.chunks(chunk.max(1)).map(Bytes::copy_from_slice);
        Response::receive(200, Arc::default(), true, async || chunks.next()).await
    }
    let lists = async |chunk| {
        let (records, sites) = (response::<Record>(body, chunk), response::<ApiObject<Site>>(body, chunk));
        format!("{:?} {:?}", records.await.list(), sites.await.list())
    };
    let parsed = async {
        let object = || response(body, chunk);
        let _ = (object().await.read(ApiObject::of_site), object().await.read(SavedSite::from_json));
        let _ = (object().await.uploaded(), object().await.download(5), object().await.check_ok());
        lists(chunk).await == lists(body.len()).await
    };
    // Nothing is waited for.
    parsed.now_or_never() == Some(true)
}
