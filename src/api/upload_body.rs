//! The body of an upload. All of it but the domain is the same for every site, and is written once.

use bytes::Bytes;
use serde_json::to_writer;
use zeroize::Zeroizing;

use crate::check::Vetted;
use crate::names::Domain;

/// The body of the uploads of one certificate, without the domain. It holds the private key and is wiped on drop.
pub(crate) struct UploadBody(Zeroizing<Vec<u8>>);

const START: &[u8] = b"{\"domain\":";
const CERT: &[u8] = b",\"cert_pem\":";
const KEY: &[u8] = b",\"key_pem\":";
const NAME: &[u8] = b",\"name\":";
const END: &[u8] = b"}";

impl UploadBody {
    /// Writes certificate, key and the name of the record, if there is one, as JSON.
    pub(crate) fn new(vetted: &Vetted<'_>, name: Option<&str>) -> Self {
        let (cert, key) = (vetted.chain().pem(), vetted.key().pem());
        let key = key.expose();
        // A character takes six bytes at most, and growing would leave copies of the key behind.
        let name_len = name.map_or(0, |name| NAME.len() + 6 * name.len() + 2);
        let capacity = CERT.len() + KEY.len() + END.len() + 6 * (cert.len() + key.len()) + 4 + name_len;
        let mut body = Zeroizing::new(Vec::with_capacity(capacity));
        body.extend_from_slice(CERT);
        write_text(&mut body, &cert);
        body.extend_from_slice(KEY);
        write_text(&mut body, key);
        if let Some(name) = name {
            body.extend_from_slice(NAME);
            write_text(&mut body, name);
        }
        body.extend_from_slice(END);
        Self(body)
    }

    /// The body for one domain. It is wiped once all attempts have ended.
    pub(super) fn for_domain(&self, domain: &Domain) -> Bytes {
        let domain = domain.spelled();
        let capacity = START.len() + 6 * domain.len() + 2 + self.0.len();
        let mut body = Zeroizing::new(Vec::with_capacity(capacity));
        body.extend_from_slice(START);
        write_text(&mut body, domain);
        body.extend_from_slice(&self.0);
        Bytes::from_owner(body)
    }
}

/// Appends a text as JSON.
fn write_text(body: &mut Vec<u8>, text: &str) {
    // Writing to memory does not fail.
    let _ = to_writer(body, text);
}
