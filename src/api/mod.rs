//! The service's API: one method per endpoint, on top of one generic `call`.
//!
//! What the API document leaves open is read leniently in `wire.rs`; what went wrong is told apart in `error.rs`.

mod endpoints;
mod error;
mod limiter;
mod response;
mod transport;
mod wire;

use std::cell::RefCell;

use futures_util::future::try_join;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

pub(crate) use self::error::{Error, RequestError};
pub(crate) use self::limiter::MOST as MAX_AT_ONCE;
pub(crate) use self::response::{ApiObject, Download, Saved};
use self::transport::{Body, Transport};
pub(crate) use self::transport::{ClientConfig, SetupError};
pub(crate) use self::wire::{Record, RecordType, Site, Updated, Uploaded};
use crate::check::Vetted;
use crate::clock::Deadline;
use crate::names::Domain;
use crate::secret::Redactor;

/// A connection to the service for one run.
pub(crate) struct Client {
    transport: Transport,
    deadline: Deadline,
    /// A request is not sent more often than this.
    most_attempts: u32,
    notes: RefCell<Vec<String>>,
}

/// The sites of the account.
#[derive(Debug)]
pub(crate) struct Sites {
    pub(crate) sites: Vec<Site>,
    /// Records to which sites are bound that cannot be read.
    pub(crate) hidden: Vec<u64>,
}

/// What the account has.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) records: Vec<Record>,
    pub(crate) sites: Vec<Site>,
    /// Records to which sites are bound that cannot be read.
    pub(crate) hidden: Vec<u64>,
    /// What was strange about the answers; empty: nothing can be missing.
    pub(crate) notes: Vec<String>,
}

/// An answer and how often it had to be asked for.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    pub(crate) value: T,
    pub(crate) attempts: u32,
}

/// An answer that cannot be understood is asked for again only so often: it will not change by itself.
const MAX_UNREADABLE: u32 = 4;

impl Client {
    /// Prepares the connection; nothing is sent yet.
    pub(crate) fn new(
        access: &ClientConfig,
        redactor: Redactor,
        deadline: Deadline,
    ) -> Result<Self, SetupError> {
        let transport = Transport::new(access, redactor)?;
        Ok(Self { transport, deadline, most_attempts: u32::MAX, notes: RefCell::default() })
    }

    /// The same, but a request is sent so often at most, whatever time is left: for a person who waits for the answer.
    pub(crate) fn asking_at_most(self, attempts: u32) -> Self {
        Self { most_attempts: attempts, ..self }
    }

    /// How far this machine's clock is ahead of the service's, where an answer named its date.
    pub(crate) fn skew(&self) -> Option<time::Duration> {
        self.transport.skew()
    }

    /// The same connections, for another piece of work.
    pub(crate) fn refresh(&self, redactor: Redactor, deadline: Deadline) -> Self {
        let transport = self.transport.with(redactor);
        Self { transport, deadline, most_attempts: self.most_attempts, notes: RefCell::default() }
    }

    /// The sites and records of the account, asked for together.
    pub(crate) async fn listing(&self) -> Result<Listing, RequestError> {
        let (records, Sites { sites, hidden }) = try_join(self.records(), self.sites()).await?;
        let notes = self.notes();
        Ok(Listing { records, sites, hidden, notes })
    }

    /// `GET /api/certs`: the account's certificate records.
    pub(crate) async fn records(&self) -> Result<Vec<Record>, RequestError> {
        let mut listing = self.call(Method::GET, "/api/certs", None, wire::records).await?.value;
        listing.clean(self.transport.redactor());
        self.note(listing.notes);
        Ok(listing.items)
    }

    /// `GET /api/me/sites`: the account's sites.
    pub(crate) async fn sites(&self) -> Result<Sites, RequestError> {
        let mut listing = self.call(Method::GET, "/api/me/sites", None, wire::sites).await?.value;
        listing.clean(self.transport.redactor());
        self.note(listing.notes);
        Ok(Sites { sites: listing.items, hidden: listing.hidden })
    }

    /// `POST /api/certs/upload`: stores a vetted certificate for a domain. Safe to repeat: the service replaces in
    /// place.
    pub(crate) async fn upload(
        &self,
        vetted: &Vetted<'_>,
        domain: &Domain,
    ) -> Result<Answer<Uploaded>, RequestError> {
        let body = json!({
            "domain": domain.spelled(),
            "cert_pem": vetted.chain.pem(),
            "key_pem": vetted.key.pem().expose(),
        });
        let mut answer = self.call(Method::POST, "/api/certs/upload", Some(&body), wire::uploaded).await?;
        answer.value.clean(self.transport.redactor());
        Ok(answer)
    }

    /// `POST /api/sites/{id}/update`: binds a site to a record. Safe to repeat.
    pub(crate) async fn bind(&self, site: u64, cert_id: u64) -> Result<Updated, RequestError> {
        let (path, body) = (format!("/api/sites/{site}/update"), json!({ "cert_id": cert_id }));
        let mut updated = self.call(Method::POST, &path, Some(&body), wire::updated).await?.value;
        updated.clean(self.transport.redactor());
        Ok(updated)
    }

    /// What was strange about the answers so far, each once.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.notes.take()
    }

    fn note(&self, notes: Vec<String>) {
        let mut known = self.notes.borrow_mut();
        known.extend(notes);
        known.sort();
        known.dedup();
    }

    /// Asks until there is an answer that `read` understands, a refusal, or no time left.
    async fn call<T>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Answer<T>, RequestError> {
        self.repeat(method, path, body, |answer| answer?.read(&read)).await
    }

    /// The same where `read` is to judge every answer.
    async fn repeat<T>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        read: impl Fn(Result<Body, Error>) -> Result<T, Error>,
    ) -> Result<Answer<T>, RequestError> {
        let mut delays = transport::delays();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let answer = self.transport.once(&method, path, body, self.deadline).await;
            let error = match read(answer) {
                Ok(value) => {
                    if attempts > 1 {
                        log::warn!("{method} {path} succeeded at attempt {attempts}");
                    }
                    return Ok(Answer { value, attempts });
                }
                Err(error) => error,
            };
            let failed = RequestError { request: format!("{method} {path}"), attempts, error };
            let hopeless = matches!(failed.error, Error::Unreadable { .. }) && attempts >= MAX_UNREADABLE;
            if !failed.error.is_worth_repeating() || hopeless || attempts >= self.most_attempts {
                return Err(failed);
            }
            // `Retry-After: 0` is no leave to hammer.
            let pause = delays.next().max(failed.error.retry_after()).unwrap_or_default();
            if pause >= self.deadline.left() {
                return Err(failed);
            }
            log::warn!("{}: {}; trying again in {:.1} s", failed.request, failed.error, pause.as_secs_f32());
            sleep(pause).await;
        }
    }
}

/// Reads a response body as the answer to each endpoint in turn, for fuzzing.
#[doc(hidden)]
pub fn parse_response(json: &Value) {
    let _ = (wire::records(json), wire::sites(json), wire::uploaded(json));
}
