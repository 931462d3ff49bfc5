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
    pub(super) metadata: Metadata,
    /// Go writes an empty list as `null`.
    pub(super) items: Option<Vec<Secret>>,
}

/// Of a page or of a secret.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    /// Token of the next page; empty on the last one.
    #[serde(rename = "continue")]
    pub(super) next: String,
    pub(super) name: String,
}

#[derive(Deserialize)]
pub(super) struct Secret {
    pub(super) metadata: Metadata,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    data: Option<Data>,
}

/// The files in Base64.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Data {
    #[serde(rename = "tls.crt", deserialize_with = "encoded")]
    cert: Zeroizing<String>,
    #[serde(rename = "tls.key", deserialize_with = "encoded")]
    key: Zeroizing<String>,
}

/// Go writes empty bytes as `null`.
fn encoded<'de, D: Deserializer<'de>>(from: D) -> Result<Zeroizing<String>, D::Error> {
    Option::deserialize(from).map(|text| Zeroizing::new(text.unwrap_or_default()))
}

impl Secret {
    /// Whether it has the type that was asked for.
    pub(super) fn is_tls(&self) -> bool {
        self.kind.is_empty() || self.kind == "kubernetes.io/tls"
    }

    /// The contents of `tls.crt` and `tls.key`.
    pub(super) fn into_files(self) -> (Zeroizing<Vec<u8>>, Zeroizing<Vec<u8>>) {
        let data = self.data.unwrap_or_default();
        // Invalid Base64 is decoded to an empty file, which the checks report.
        let decode = |text: &str| Zeroizing::new(STANDARD.decode(text).unwrap_or_default());
        (decode(&data.cert), decode(&data.key))
    }
}
