//! What a test does behind the back of the client under test: uploads by another client of the account,
//! records whose content changes without an upload, edge addresses that serve another certificate, and revoked keys.

use std::io;
use std::net::SocketAddr;

use crate::clock;
use crate::edge::address::{EdgeAddress, EdgeMode};
use crate::edge::listeners;
use crate::error::Error;
use crate::records::{self, Push};
use crate::response::RequestError;
use crate::sandbox::Sandbox;
use crate::store::certs::UploadContent;

impl Sandbox {
    /// Uploads a certificate to the first account as another client does: with the validation and the effects
    /// of the API, but without an entry in [`Sandbox::requests`]. Returns the ID of the record.
    ///
    /// # Panics
    /// If the service refuses the upload.
    #[track_caller]
    #[expect(clippy::panic, reason = "a test that cannot set up its world fails")]
    pub fn upload_as_other_client(&self, domain: &str, cert_pem: &str, key_pem: &str) -> u64 {
        match self.try_upload(domain, cert_pem, key_pem) {
            Ok(id) => id,
            Err(error) => panic!("the upload for {domain} was refused: {}", error.message),
        }
    }

    /// Replaces certificate and key of a record without validation, and pushes them like any change.
    ///
    /// # Panics
    /// If there is no such record.
    #[track_caller]
    pub fn replace_cert(&self, id: u64, cert_pem: &str, key_pem: &str) {
        self.replace(id, cert_pem, key_pem, Push::Normal);
    }

    /// Replaces certificate and key of a record, also on the edge, while `config_synced` stays as it is.
    ///
    /// # Panics
    /// If there is no such record.
    #[track_caller]
    pub fn replace_cert_silently(&self, id: u64, cert_pem: &str, key_pem: &str) {
        self.replace(id, cert_pem, key_pem, Push::Silent);
    }

    /// Serves another certificate for one name on the main edge address, whatever is pushed. It is not
    /// validated.
    ///
    /// # Panics
    /// If the edge cannot serve the certificate.
    #[track_caller]
    #[expect(clippy::panic, reason = "a test that cannot set up its world fails")]
    pub fn override_edge(&self, name: &str, cert_pem: &str, key_pem: &str) {
        if let Err(reason) = self.app.edge.override_name(name, cert_pem, key_pem) {
            panic!("cannot override {name}: {reason}");
        }
    }

    /// Opens an additional address of the edge, on its host, and returns host and port.
    ///
    /// # Panics
    /// If the address cannot be opened.
    #[track_caller]
    #[expect(clippy::panic, reason = "a test that cannot set up its world fails")]
    pub fn open_edge_address(&self, address: &EdgeAddress) -> String {
        let host = parse_address(&self.endpoints().edge).ip();
        match listeners::open(&self.app, address, SocketAddr::from((host, 0)), &self.runtime) {
            Ok(opened) => opened.to_string(),
            Err(error) => panic!("cannot open an edge address: {error}"),
        }
    }

    /// Makes an additional address of the edge serve what the main address serves.
    pub(crate) fn catch_up_edge_address(&self, address: &str) -> Result<(), Error> {
        self.close_edge_address(address);
        let (address, same) = (parse_address(address), EdgeAddress::new(EdgeMode::Same));
        let opened = listeners::open(&self.app, &same, address, &self.runtime);
        opened.map(drop).map_err(|reason| Error::Listen { addr: address, source: io::Error::other(reason) })
    }

    /// Revokes the API key of the ready file, and gives its account another one.
    pub(crate) fn replace_api_key(&self, new: &str) -> Result<(), Error> {
        let sql = "UPDATE api_key SET key = ?1 WHERE key = ?2";
        self.app.store().write(|t| Ok(t.execute(sql, [new, &self.endpoints().api_key]).map(drop)?))
    }

    /// Closes an additional address of the edge. Connections that it accepted before stay open.
    ///
    /// # Panics
    /// If there is no such address.
    #[track_caller]
    pub fn close_edge_address(&self, address: &str) {
        let (sender, receiver) = std::sync::mpsc::channel();
        let (app, wanted) = (self.app.clone(), parse_address(address));
        self.runtime.spawn(async move { sender.send(app.edge_listeners.close(wanted).await) });
        assert_eq!(receiver.recv(), Ok(true), "closing the edge address {address}");
    }

    fn try_upload(&self, domain: &str, cert_pem: &str, key_pem: &str) -> Result<u64, RequestError> {
        let account = self.app.store().first_account()?;
        let content = UploadContent { account, domain, name: None, cert_pem, key_pem };
        let uploaded = records::upload(&self.app, &content, clock::now())?;
        Ok(uploaded.id.unsigned_abs())
    }

    #[track_caller]
    #[expect(clippy::panic, reason = "a test that cannot set up its world fails")]
    fn replace(&self, id: u64, cert_pem: &str, key_pem: &str, push: Push) {
        let replaced =
            i64::try_from(id).map(|id| records::replace_unvalidated(&self.app, id, cert_pem, key_pem, push));
        match replaced {
            Ok(Ok(true)) => {}
            Ok(Err(error)) => panic!("cannot replace certificate {id}: {error}"),
            Ok(Ok(false)) | Err(_) => panic!("there is no certificate {id}"),
        }
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "a test that cannot set up its world fails")]
fn parse_address(text: &str) -> SocketAddr {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}
