//! Trust anchors: the setting, and which root certificates it stands for.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use crate::env::Env;
use crate::file::recorded_path;

/// Trusted root certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    /// Those in a file.
    File(PathBuf),
    /// The system's trust store. `file` is the value of `SSL_CERT_FILE`; `named` is whether that or `SSL_CERT_DIR` is
    /// set.
    System { named: bool, file: Option<PathBuf> },
}

impl Roots {
    /// The system's trust store, located by the environment.
    pub(crate) fn of_system(env: &Env) -> Self {
        let file = env.path("SSL_CERT_FILE");
        Self::System { named: file.is_some() || env.raw("SSL_CERT_DIR").is_some(), file }
    }
}

/// The value of the setting `trust_anchors`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrustAnchors {
    Off,
    System,
    File(PathBuf),
}

const OFF: &str = "off";
const SYSTEM: &str = "system";

/// A file named like a keyword is given as `./system`.
impl From<PathBuf> for TrustAnchors {
    fn from(path: PathBuf) -> Self {
        match path.to_str() {
            Some(OFF) => Self::Off,
            Some(SYSTEM) => Self::System,
            _ => Self::File(path),
        }
    }
}

/// State files spell it as variables do.
impl Serialize for TrustAnchors {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let path = match self {
            Self::Off => Path::new(OFF),
            Self::System => Path::new(SYSTEM),
            Self::File(path) => path,
        };
        recorded_path::serialize(path, serializer)
    }
}

impl TrustAnchors {
    /// The root certificates; `None` for `off`.
    pub(crate) fn roots(self, env: &Env) -> Option<Roots> {
        match self {
            Self::Off => None,
            Self::System => Some(Roots::of_system(env)),
            Self::File(path) => Some(Roots::File(path)),
        }
    }

    /// The value for later runs. A path without a file may be a misplaced secret, so it is not recorded; `system` in its
    /// place is no less strict.
    pub(super) fn to_record(&self) -> Self {
        match self {
            Self::File(path) if path.is_file() => {
                Self::File(std::path::absolute(path).unwrap_or_else(|_| path.clone()))
            }
            Self::File(_) => Self::System,
            keyword => keyword.clone(),
        }
    }
}

/// What to do about a chain that leads to no trusted root; made from the setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TrustPolicy {
    /// Warn about it: the setting is unset, and the roots are those of the system.
    Advisory(Roots),
    /// Refuse it.
    Required(Roots),
    /// Do not check.
    Off,
}

impl TrustPolicy {
    pub(crate) fn new(anchors: Option<TrustAnchors>, env: &Env) -> Self {
        match anchors {
            None => Self::Advisory(Roots::of_system(env)),
            Some(anchors) => anchors.roots(env).map_or(Self::Off, Self::Required),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_exact() {
        let rows = [
            ("off", TrustAnchors::Off),
            ("system", TrustAnchors::System),
            ("./system", TrustAnchors::File("./system".into())),
            ("/etc/off", TrustAnchors::File("/etc/off".into())),
            ("System", TrustAnchors::File("System".into())),
            ("OFF", TrustAnchors::File("OFF".into())),
            (" off", TrustAnchors::File(" off".into())),
        ];
        for (text, expected) in rows {
            assert_eq!(TrustAnchors::from(PathBuf::from(text)), expected, "{text}");
            assert_eq!(serde_json::to_string(&expected).unwrap(), format!("{text:?}"));
        }
    }

    #[test]
    fn recorded_file_is_absolute_and_exists() {
        let here = std::env::current_dir().unwrap();
        let rows = [
            (TrustAnchors::File("Cargo.toml".into()), TrustAnchors::File(here.join("Cargo.toml"))),
            (TrustAnchors::File("no-such-file".into()), TrustAnchors::System),
            (TrustAnchors::File("src".into()), TrustAnchors::System),
            (TrustAnchors::System, TrustAnchors::System),
            (TrustAnchors::Off, TrustAnchors::Off),
        ];
        for (given, recorded) in rows {
            assert_eq!(given.to_record(), recorded, "{given:?}");
        }
    }
}
