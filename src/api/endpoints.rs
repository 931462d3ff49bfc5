//! The endpoints of the service, one method each. Sections are those of the API document.

use std::collections::HashSet;

use futures_util::future::try_join;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::client::Client;
use super::error::RequestError;
use super::list::{Gap, List};
use super::response::{Download, Response};
use super::transport::Request;
use super::upload_body::UploadBody;
use super::wire::{ApiObject, Listed, Record, SavedSite, Site, Uploaded};
use crate::names::Domain;

/// All sites and records of the account.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) records: List<Record>,
    pub(crate) sites: List<Site>,
}

impl Listing {
    /// Why sites or records may be missing; empty for a complete listing.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = &Gap> {
        self.sites.gaps.iter().chain(&self.records.gaps)
    }
}

impl Client {
    /// Lists sites and records at the same time. Another run may make a record after the records were read, and bind a
    /// site to it before the sites are, so records are listed again if one is missing.
    pub(crate) async fn listing(&self) -> Result<Listing, RequestError> {
        let (mut records, sites) = try_join(self.records::<Record>(), self.sites::<Site>()).await?;
        let listed: HashSet<u64> = records.items.iter().map(|record| record.id).collect();
        let is_record_missing = |site: &Site| site.cert_id.is_some_and(|id| !listed.contains(&id));
        if records.gaps.is_empty() && sites.items.iter().any(is_record_missing) {
            records = self.records().await?;
        }
        Ok(Listing { records, sites })
    }

    /// `GET /api/certs` (section 4.1), as `Record` or `ApiObject<Record>`.
    pub(crate) async fn records<T: Listed>(&self) -> Result<List<T>, RequestError> {
        self.list("/api/certs").await
    }

    /// `POST /api/certs/upload` (section 4.2). Replaces the record of the domain in place, so repeating it is safe.
    /// Also returns the number of attempts.
    pub(crate) async fn upload(
        &self,
        body: &UploadBody,
        domain: &Domain,
    ) -> Result<(Uploaded, u32), RequestError> {
        let request = Request::post("/api/certs/upload", body.for_domain(domain));
        self.call(&request, |response, attempts| Ok((response.uploaded()?, attempts))).await
    }

    /// `GET /api/certs/{id}/download` (section 4.3). A response for a different record is invalid. Errors do not quote
    /// the response, which may hold the key.
    pub(crate) async fn download(&self, id: u64) -> Result<Download, RequestError> {
        let request = Request::new(Method::GET, format!("/api/certs/{id}/download"));
        let request = Request { is_quoted: false, ..request };
        self.call(&request, |response, _| response.download(id)).await
    }

    /// `GET /api/me/sites` (section 4.4), as `Site` or `ApiObject<Site>`.
    pub(crate) async fn sites<T: Listed>(&self) -> Result<List<T>, RequestError> {
        self.list("/api/me/sites").await
    }

    /// Lists sites or records. Every account has both lists, so a server without them is not the service.
    async fn list<T: Listed>(&self, path: &'static str) -> Result<List<T>, RequestError> {
        let request = Request::new(Method::GET, path);
        let base_url = &self.service.base_url;
        let list = self.call(&request, |response: Response<T>, _| response.list()).await;
        list.map_err(|failed| RequestError { error: failed.error.of_list(base_url, path), ..failed })
    }

    /// `GET /api/sites/{id}` (section 4.5). A response with another site is invalid.
    pub(crate) async fn site(&self, id: u64) -> Result<ApiObject<Site>, RequestError> {
        let parse = move |json: &Value| ApiObject::of_site(json).filter(|site| site.known.id == id);
        let request = Request::new(Method::GET, format!("/api/sites/{id}"));
        self.call(&request, |response: Response, _| response.read(parse)).await
    }

    /// `POST /api/sites` (section 4.6). Sent once: if the response were lost, a second request would be refused
    /// because the site exists.
    pub(crate) async fn create_site(&self, fields: &Map<String, Value>) -> Result<SavedSite, RequestError> {
        let request =
            Request { is_sent_once: true, ..Request::post("/api/sites", json!(fields).to_string()) };
        self.call(&request, |response: Response, _| response.read(SavedSite::from_json)).await
    }

    /// `POST /api/sites/{id}/update` (section 4.7). Repeating it is safe.
    pub(crate) async fn update_site(
        &self,
        id: u64,
        fields: &Map<String, Value>,
    ) -> Result<SavedSite, RequestError> {
        let request = Request::post(format!("/api/sites/{id}/update"), json!(fields).to_string());
        self.call(&request, |response: Response, _| response.read(SavedSite::from_json)).await
    }

    /// `POST /api/sites/{id}/enable` or `…/disable` (section 4.8). Repeating it is safe. Success proves nothing: the
    /// service may leave the site as it is.
    pub(crate) async fn set_enabled(&self, id: u64, enabled: bool) -> Result<(), RequestError> {
        let verb = if enabled { "enable" } else { "disable" };
        let request = Request::new(Method::POST, format!("/api/sites/{id}/{verb}"));
        self.call(&request, |response, _| response.check_ok()).await
    }

    /// `DELETE /api/sites/{id}` (section 4.9). If a retry finds no site, an earlier attempt has deleted it.
    pub(crate) async fn delete_site(&self, id: u64) -> Result<(), RequestError> {
        let request = Request::new(Method::DELETE, format!("/api/sites/{id}"));
        match self.call(&request, |response, _| response.check_ok()).await {
            Err(error) if error.attempts > 1 && error.refused_status() == Some(404) => Ok(()),
            result => result,
        }
    }
}
