//! The body of an upload. All of it but the domain is the same for every site, and is written once.

use bytes::Bytes;
use serde::Serialize;
use serde_json::to_writer;
use zeroize::Zeroizing;

use crate::check::Vetted;
use crate::names::Domain;

/// The body of the uploads of one certificate, without the domain. It holds the private key and is wiped on drop.
pub(crate) struct UploadBody(Zeroizing<Vec<u8>>);

/// All fields but the domain.
#[derive(Serialize)]
struct Fields<'a> {
    cert_pem: &'a str,
    key_pem: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

/// The length of names, quotation marks and punctuation.
const OVERHEAD: usize = 64;

impl UploadBody {
    /// Writes certificate, key and the name of the record, if there is one, as JSON.
    pub(crate) fn new(vetted: &Vetted<'_>, name: Option<&str>) -> Self {
        let (cert, key) = (vetted.chain().pem(), vetted.key().pem());
        Self::of(&Fields { cert_pem: &cert, key_pem: key.expose(), name })
    }

    fn of(fields: &Fields<'_>) -> Self {
        let name = fields.name.unwrap_or_default();
        let mut body = buffer(fields.cert_pem.len() + fields.key_pem.len() + name.len(), 0);
        // Writing to memory does not fail.
        let _ = to_writer(&mut *body, fields);
        Self(body)
    }

    /// The body for one domain. It is wiped once all attempts have ended.
    pub(super) fn for_domain(&self, domain: &Domain) -> Bytes {
        let fields = self.0.strip_prefix(b"{").unwrap_or_default();
        let mut body = buffer(domain.spelled().len(), fields.len());
        body.extend_from_slice(b"{\"domain\":");
        let _ = to_writer(&mut *body, domain.spelled());
        body.push(b',');
        body.extend_from_slice(fields);
        Bytes::from_owner(body)
    }
}

/// Has room for text of this length and for JSON: growing would leave copies of the key behind.
fn buffer(text: usize, json: usize) -> Zeroizing<Vec<u8>> {
    // A character takes six bytes at most.
    Zeroizing::new(Vec::with_capacity(6 * text + json + OVERHEAD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_with_the_key_never_grows() {
        for length in [0, 1000] {
            let text = "\u{1}".repeat(length);
            let body = UploadBody::of(&Fields { cert_pem: &text, key_pem: &text, name: Some(&text) });
            assert_eq!(body.0.capacity(), buffer(3 * length, 0).capacity());
            assert!(body.0.starts_with(b"{\"cert_pem\":\""), "{:?}", body.0);
        }
    }
}
