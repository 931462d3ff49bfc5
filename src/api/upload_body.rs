//! The body of an upload.

use bytes::Bytes;
use serde::Serialize;
use serde_json::to_writer;
use zeroize::Zeroizing;

use crate::check::Vetted;
use crate::names::Domain;
use crate::secret::Secret;

/// The body of the uploads of one certificate, without the domain.
pub(crate) struct UploadBody {
    cert_pem: String,
    key_pem: Secret,
    /// The name of the record.
    name: Option<String>,
}

#[derive(Serialize)]
struct Fields<'a> {
    domain: &'a str,
    cert_pem: &'a str,
    key_pem: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

/// The length of field names, quotation marks and punctuation.
const OVERHEAD: usize = 64;

impl UploadBody {
    pub(crate) fn new(vetted: &Vetted<'_>, name: Option<&str>) -> Self {
        let (cert_pem, key_pem) = (vetted.chain().pem(), vetted.key().pem());
        Self { cert_pem, key_pem, name: name.map(str::to_owned) }
    }

    /// The body for one domain. It is wiped once all attempts have ended.
    pub(super) fn for_domain(&self, domain: &Domain) -> Bytes {
        Bytes::from_owner(self.json(domain.spelled()))
    }

    fn json(&self, domain: &str) -> Zeroizing<Vec<u8>> {
        let (cert_pem, key_pem, name) = (&*self.cert_pem, self.key_pem.expose(), self.name.as_deref());
        let length = domain.len() + cert_pem.len() + key_pem.len() + name.map_or(0, str::len);
        // A character takes six bytes at most. Growing would leave copies of the key behind.
        let mut json = Zeroizing::new(Vec::with_capacity(6 * length + OVERHEAD));
        // Writing to memory does not fail.
        let _ = to_writer(&mut *json, &Fields { domain, cert_pem, key_pem, name });
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_with_the_key_never_grows() {
        for length in [0, 1000] {
            let text = "\u{1}".repeat(length);
            let key_pem = Secret::new(text.clone());
            let json = UploadBody { cert_pem: text.clone(), key_pem, name: Some(text.clone()) }.json(&text);
            assert_eq!(json.capacity(), 24 * length + OVERHEAD);
            assert!(json.starts_with(b"{\"domain\":\""), "{json:?}");
        }
    }
}
