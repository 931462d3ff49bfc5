//! Serde adapter for the paths in state files: `#[serde(with = "crate::file::recorded_path")]`. A path that is not
//! UTF-8 is stored as bytes, any other as text.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize as _, Serializer};
use serde_json::Value;

#[derive(Deserialize)]
#[serde(untagged)]
enum Spelling {
    Text(String),
    Bytes(OsString),
}

impl From<Spelling> for PathBuf {
    fn from(spelling: Spelling) -> Self {
        match spelling {
            Spelling::Text(text) => text.into(),
            Spelling::Bytes(bytes) => bytes.into(),
        }
    }
}

pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => serializer.serialize_str(text),
        None => path.as_os_str().serialize(serializer),
    }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    Spelling::deserialize(deserializer).map(Into::into)
}

/// A path as it is recorded.
pub(crate) fn to_value(path: &Path) -> Value {
    serialize(path, serde_json::value::Serializer).unwrap_or_default()
}

/// The adapter for an optional path.
pub(crate) mod option {
    use super::{Deserialize as _, Deserializer, PathBuf, Serializer, Spelling};

    #[expect(clippy::ref_option, reason = "serde passes the field")]
    pub(crate) fn serialize<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
        match path {
            Some(path) => super::serialize(path, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<Spelling>::deserialize(deserializer)?.map(Into::into))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt as _;

    #[derive(Debug, PartialEq, Eq, serde::Serialize, Deserialize)]
    struct Recorded(
        #[serde(with = "crate::file::recorded_path")] PathBuf,
        #[serde(with = "crate::file::recorded_path::option")] Option<PathBuf>,
    );

    #[test]
    fn every_path_survives() {
        for (bytes, json) in [
            (&b"/etc/\xc3\xa4"[..], "[\"/etc/ä\",\"/etc/ä\"]"),
            (b"/\xe4\xff", "[{\"Unix\":[47,228,255]},{\"Unix\":[47,228,255]}]"),
        ] {
            let path = PathBuf::from(OsString::from_vec(bytes.to_vec()));
            let recorded = Recorded(path.clone(), Some(path));
            let written = serde_json::to_string(&recorded).unwrap();
            assert_eq!(written, json);
            assert_eq!(serde_json::from_str::<Recorded>(&written).unwrap(), recorded);
        }
        let absent = Recorded("/".into(), None);
        assert_eq!(serde_json::from_str::<Recorded>("[\"/\",null]").unwrap(), absent);
    }
}
