//! What a test does behind the back of the client under test: uploads by another client of the account, and
//! records whose content changes without an upload.

use crate::clock;
use crate::records::{self, Replacement, UploadError};
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
            Err(error) => panic!("the upload for {domain} was refused: {error}"),
        }
    }

    /// Replaces certificate and key of a record without validation, and pushes them like any change.
    ///
    /// # Panics
    /// If there is no such record.
    #[track_caller]
    pub fn replace_cert(&self, id: u64, cert_pem: &str, key_pem: &str) {
        self.replace(id, &Replacement { cert_pem, key_pem, is_silent: false });
    }

    /// Replaces certificate and key of a record, also on the edge, while `config_synced` stays as it is.
    ///
    /// # Panics
    /// If there is no such record.
    #[track_caller]
    pub fn replace_cert_silently(&self, id: u64, cert_pem: &str, key_pem: &str) {
        self.replace(id, &Replacement { cert_pem, key_pem, is_silent: true });
    }

    fn try_upload(&self, domain: &str, cert_pem: &str, key_pem: &str) -> Result<u64, UploadError> {
        let account = self.app.store().first_account()?;
        let content = UploadContent { account, domain, name: None, cert_pem, key_pem };
        let uploaded = records::upload(&self.app, &content, clock::now())?;
        Ok(uploaded.id.unsigned_abs())
    }

    #[track_caller]
    #[expect(clippy::panic, reason = "a test that cannot set up its world fails")]
    fn replace(&self, id: u64, new: &Replacement<'_>) {
        let replaced = i64::try_from(id).map(|id| records::replace_unvalidated(&self.app, id, new));
        match replaced {
            Ok(Ok(true)) => {}
            Ok(Err(error)) => panic!("cannot replace certificate {id}: {error}"),
            Ok(Ok(false)) | Err(_) => panic!("there is no certificate {id}"),
        }
    }
}
