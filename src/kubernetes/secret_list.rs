//! A page of a list of secrets, as the API server sends it. Keys are wiped on drop.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

/// A page; the fields that are not named are skipped.
#[derive(Deserialize)]
pub(super) struct SecretList {
    /// `SecretList`, unless this is something else.
    pub(super) kind: String,
    #[serde(default)]
    pub(super) metadata: ListMetadata,
    /// Go writes an empty list as `null`.
    pub(super) items: Option<Vec<Secret>>,
}

#[derive(Default, Deserialize)]
pub(super) struct ListMetadata {
    /// Token of the next page; empty on the last one.
    #[serde(default, rename = "continue")]
    pub(super) next: String,
}

#[derive(Deserialize)]
pub(super) struct Secret {
    pub(super) metadata: SecretMetadata,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    data: Option<Data>,
}

#[derive(Deserialize)]
pub(super) struct SecretMetadata {
    pub(super) name: String,
}

#[derive(Default, Deserialize)]
struct Data {
    #[serde(default, rename = "tls.crt")]
    cert: Encoded,
    #[serde(default, rename = "tls.key")]
    key: Encoded,
}

/// Base64.
#[derive(Default)]
struct Encoded(Zeroizing<String>);

impl<'de> Deserialize<'de> for Encoded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Go writes empty bytes as `null`.
        let text = Option::deserialize(deserializer)?;
        Ok(Self(Zeroizing::new(text.unwrap_or_default())))
    }
}

impl Encoded {
    /// Invalid base64 is decoded to an empty file, which the checks report.
    fn decode(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(STANDARD.decode(self.0.as_bytes()).unwrap_or_default())
    }
}

impl Secret {
    /// Whether it has the type that was asked for.
    pub(super) fn is_tls(&self) -> bool {
        self.kind.is_empty() || self.kind == "kubernetes.io/tls"
    }

    /// The contents of `tls.crt` and `tls.key`.
    pub(super) fn into_files(self) -> (Zeroizing<Vec<u8>>, Zeroizing<Vec<u8>>) {
        let data = self.data.unwrap_or_default();
        (data.cert.decode(), data.key.decode())
    }
}
