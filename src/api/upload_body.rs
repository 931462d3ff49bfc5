//! The body of an upload.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{json, to_writer};
use zeroize::Zeroizing;

use crate::check::Vetted;
use crate::names::Domain;

/// The body of the uploads of one certificate: JSON without the domain. Certificate and key are encoded only once.
pub(crate) struct UploadBody(Zeroizing<Vec<u8>>);

/// The length of field names, quotation marks and punctuation.
const OVERHEAD: usize = 64;

impl UploadBody {
    /// Encodes certificate and key, and the name of the record, if it is to have one.
    pub(crate) fn new(vetted: &Vetted<'_>, name: Option<&str>) -> Self {
        Self::of(&vetted.chain().pem(), vetted.key().pem().expose(), name)
    }

    fn of(cert_pem: &str, key_pem: &str, name: Option<&str>) -> Self {
        let length = cert_pem.len() + key_pem.len() + name.map_or(0, str::len);
        // A character takes six bytes at most. Growing would leave copies of the key behind.
        let mut json = Zeroizing::new(Vec::with_capacity(6 * length + OVERHEAD));
        let mut fields = BTreeMap::from([("cert_pem", cert_pem), ("key_pem", key_pem)]);
        fields.extend(name.map(|name| ("name", name)));
        // Writing to memory does not fail.
        let _ = to_writer(&mut *json, &fields);
        Self(json)
    }

    /// The body for one domain. It is wiped once all attempts have ended.
    pub(super) fn for_domain(&self, domain: &Domain) -> Bytes {
        let domain = json!(domain).to_string();
        let others = self.0.strip_prefix(b"{").unwrap_or_default();
        Bytes::from_owner(Zeroizing::new([b"{\"domain\":", domain.as_bytes(), b",", others].concat()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_with_the_key_never_grows() {
        for length in [0, 1000] {
            let text = "\u{1}".repeat(length);
            let body = UploadBody::of(&text, &text, Some(&text));
            assert_eq!(body.0.capacity(), 18 * length + OVERHEAD);
            let sent = body.for_domain(&"a.example".parse().unwrap());
            assert!(sent.starts_with(b"{\"domain\":\"a.example\",\"cert_pem\":\""), "{sent:?}");
        }
    }
}
