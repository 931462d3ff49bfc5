//! Trust anchors: the setting, and which root certificates it stands for.

use std::path::{Path, PathBuf};

use super::layers::existing;
use crate::env::Env;

/// Trusted root certificates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

// Values of the setting besides files. A file of that name is given as `./system`.
const OFF: &str = "off";
const SYSTEM: &str = "system";

/// Whether a value of the setting stands for no file.
pub(super) fn is_keyword(value: &Path) -> bool {
    matches!(value.to_str(), Some(OFF | SYSTEM))
}

/// The value for later runs. In place of a path without a file, `system` is no less strict.
pub(super) fn to_record(value: PathBuf) -> PathBuf {
    if is_keyword(&value) { value } else { existing(value).unwrap_or_else(|| SYSTEM.into()) }
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
    /// Reads the value of the setting.
    pub(crate) fn new(anchors: Option<PathBuf>, env: &Env) -> Self {
        let Some(path) = anchors else { return Self::Advisory(Roots::of_system(env)) };
        match path.to_str() {
            Some(OFF) => Self::Off,
            Some(SYSTEM) => Self::Required(Roots::of_system(env)),
            _ => Self::Required(Roots::File(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_exact() {
        let env = Env::default();
        let system = TrustPolicy::Required(Roots::of_system(&env));
        for (text, expected) in [("off", TrustPolicy::Off), ("system", system)] {
            assert_eq!(TrustPolicy::new(Some(text.into()), &env), expected);
        }
        for text in ["./system", "/etc/off", "System", "OFF", " off", "off/"] {
            let expected = TrustPolicy::Required(Roots::File(text.into()));
            assert_eq!(TrustPolicy::new(Some(text.into()), &env), expected, "{text:?}");
        }
    }

    #[test]
    fn recorded_file_is_absolute_and_exists() {
        let here = std::env::current_dir().unwrap().join("Cargo.toml");
        let rows = [
            ("Cargo.toml", here.to_str().unwrap()),
            ("no-such-file", "system"),
            ("src", "system"),
            ("system", "system"),
            ("off", "off"),
        ];
        for (given, recorded) in rows {
            assert_eq!(to_record(given.into()), Path::new(recorded), "{given:?}");
        }
    }
}
