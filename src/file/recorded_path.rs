//! Serde adapter for the paths in state files: `#[serde(with = "crate::file::recorded_path")]`. A path that is not
//! UTF-8 is stored as bytes, any other as text.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum Spelling<P> {
    Text(P),
    Bytes(OsString),
}

/// Writes the path of a field that is a `PathBuf` or an `Option<PathBuf>`.
pub(crate) fn serialize<'p, S: Serializer>(
    path: impl Into<Option<&'p PathBuf>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let Some(path) = path.into() else { return serializer.serialize_none() };
    match path.to_str() {
        Some(text) => serializer.serialize_str(text),
        None => path.as_os_str().serialize(serializer),
    }
}

/// Reads it; only an optional one can be `null`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>, P: Deserialize<'de> + From<PathBuf>>(
    deserializer: D,
) -> Result<P, D::Error> {
    Ok(match Spelling::deserialize(deserializer)? {
        Spelling::Text(path) => path,
        Spelling::Bytes(bytes) => PathBuf::from(bytes).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt as _;

    #[derive(Debug, PartialEq, Eq, serde::Serialize, Deserialize)]
    struct Recorded(
        #[serde(with = "crate::file::recorded_path")] PathBuf,
        #[serde(with = "crate::file::recorded_path")] Option<PathBuf>,
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
