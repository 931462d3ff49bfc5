//! The endpoints behind `edgecert certs` and `edgecert sites`: everything of the account but the upload.

use reqwest::Method;
use serde_json::{Map, Value};

use super::response::{self, ApiObject, Download, Saved};
use super::transport::Body;
use super::wire::Listing;
use super::{Client, Error, Record, RequestError, Site};

impl Client {
    /// `GET /api/me/sites`, each site as the service shows it.
    pub(crate) async fn list_sites(&self) -> Result<Vec<ApiObject<Site>>, RequestError> {
        let read = |json: &Value| response::sites(json, self.transport.redactor());
        Ok(self.items(self.call(Method::GET, "/api/me/sites", None, read).await?.value))
    }

    /// `GET /api/certs`, each record as the service shows it.
    pub(crate) async fn list_records(&self) -> Result<Vec<ApiObject<Record>>, RequestError> {
        let read = |json: &Value| response::records(json, self.transport.redactor());
        Ok(self.items(self.call(Method::GET, "/api/certs", None, read).await?.value))
    }

    /// `GET /api/sites/{id}`. A site with another number is no answer.
    pub(crate) async fn site(&self, id: u64) -> Result<ApiObject<Site>, RequestError> {
        let redactor = self.transport.redactor();
        let read = |json: &Value| response::site(json, redactor).filter(|site| site.known.id == id);
        Ok(self.call(Method::GET, &format!("/api/sites/{id}"), None, read).await?.value)
    }

    /// `GET /api/certs/{id}/download`. Errors do not repeat the service's words: a key may stand in them.
    pub(crate) async fn download(&self, id: u64) -> Result<Download, RequestError> {
        let read = |json: &Value| response::download(json, self.transport.redactor());
        let judge = |answer: Result<Body, Error>| {
            answer.and_then(|answer| answer.read(read)).map_err(Error::without_words)
        };
        Ok(self.repeat(Method::GET, &format!("/api/certs/{id}/download"), None, judge).await?.value)
    }

    /// `POST /api/sites`, once: a second one would be refused because of the first.
    pub(crate) async fn create_site(&self, fields: &Map<String, Value>) -> Result<Saved, RequestError> {
        let (method, path, body) = (Method::POST, "/api/sites", Value::Object(fields.clone()));
        let answer = self.transport.once(&method, path, Some(&body), self.deadline).await;
        let read = |json: &Value| response::saved(json, self.transport.redactor());
        let saved = answer.and_then(|answer| answer.read(read));
        saved.map_err(|error| RequestError { request: format!("{method} {path}"), attempts: 1, error })
    }

    /// `POST /api/sites/{id}/update`. Safe to repeat.
    pub(crate) async fn update_site(
        &self,
        id: u64,
        fields: &Map<String, Value>,
    ) -> Result<Saved, RequestError> {
        let (path, body) = (format!("/api/sites/{id}/update"), Value::Object(fields.clone()));
        let read = |json: &Value| response::saved(json, self.transport.redactor());
        Ok(self.call(Method::POST, &path, Some(&body), read).await?.value)
    }

    /// `POST /api/sites/{id}/enable` and `…/disable`. Safe to repeat; what the answer says proves nothing.
    pub(crate) async fn switch_site(&self, id: u64, on: bool) -> Result<(), RequestError> {
        let path = format!("/api/sites/{id}/{}", if on { "enable" } else { "disable" });
        self.repeat(Method::POST, &path, None, |answer| answer?.accept()).await.map(|_| ())
    }

    /// `DELETE /api/sites/{id}`. After an answer that was lost, a site that is not there is a site that was deleted.
    pub(crate) async fn delete_site(&self, id: u64) -> Result<(), RequestError> {
        let path = format!("/api/sites/{id}");
        match self.repeat(Method::DELETE, &path, None, |answer| answer?.accept()).await {
            Err(failed) if failed.attempts > 1 && failed.error.refused_with() == Some(404) => Ok(()),
            answer => answer.map(|answer| answer.value),
        }
    }

    fn items<T>(&self, listing: Listing<T>) -> Vec<T> {
        self.note(listing.notes);
        listing.items
    }
}
