//! Checks the settings one by one for `doctor`, so that an invalid one does not hide the others.

use std::path::PathBuf;

use super::{BaseUrl, Layer, Layers, Proxy, Settings, SettingsError, api_key, timeout};
use crate::clock::Deadline;
use crate::secret::Secret;

/// Each setting, or its error.
pub(crate) struct Inspection {
    /// Errors of settings other than base URL and API key.
    pub(crate) unusable: Vec<SettingsError>,
    pub(crate) base_url: Result<BaseUrl, SettingsError>,
    pub(crate) api_key: Result<Secret, SettingsError>,
    /// `None` if there is none, so that nothing is recorded.
    pub(crate) state_dir: Option<PathBuf>,
}

impl Layers<'_> {
    /// Checks every setting.
    pub(crate) fn inspect(&self) -> Inspection {
        let merged = self.merge(&Layer::default(), None);
        let deadline = Deadline::after(timeout(merged.timeout));
        let key_file = self.environment.api_key_file.as_ref().or(self.file.api_key_file.as_ref());
        let api_key = api_key::find(self.flags.api_key_file.as_ref(), key_file, self.env, deadline);
        let (invalid_url, unusable): (Vec<_>, Vec<_>) =
            self.unusable.iter().cloned().partition(|error| error.name() == Some("EDGECERT_BASE_URL"));
        let missing_url = || invalid_url.first().cloned().unwrap_or(SettingsError::NoBaseUrl);
        let base_url = merged.base_url.ok_or_else(missing_url);
        let proxy = base_url.as_ref().ok().map(|url| Proxy::find(url, merged.proxy.as_ref(), self.env));
        Inspection {
            unusable: unusable.into_iter().chain(proxy.and_then(Result::err)).collect(),
            base_url,
            api_key: api_key.and_then(|key| key.ok_or(SettingsError::NoApiKey)),
            state_dir: self.state_dir(),
        }
    }

    /// The settings for requests that only read; `None` without a base URL, and with a proxy that cannot be used.
    /// Without an API key, an empty one is sent.
    pub(crate) fn inspected_settings(&self, inspection: &Inspection) -> Option<Settings> {
        let base_url = inspection.base_url.as_ref().ok()?.clone();
        let api_key = inspection.api_key.as_ref().map_or_else(|_| Secret::new(String::new()), Secret::clone);
        Settings::new(base_url, api_key, self.merge(&Layer::default(), None), self.env).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use crate::settings::Configuration;

    #[test]
    fn unusable_variable_does_not_hide_others() {
        let env: Env = [
            ("EDGECERT_TIMEOUT", "soon"),
            ("EDGECERT_VERIFY", "perhaps"),
            ("EDGECERT_BASE_URL", "https://api.example.net"),
            ("EDGECERT_STATE_DIR", "/state"),
        ]
        .into_iter()
        .collect();
        let (flags, file) = (Layer::default(), Configuration::default());
        let inspection = Layers::new(&flags, &env, &file).inspect();
        let unusable: Vec<String> = inspection.unusable.iter().map(ToString::to_string).collect();
        assert_eq!(
            unusable,
            [
                "EDGECERT_TIMEOUT: expected a whole number of seconds above 0, not \"soon\"",
                "EDGECERT_VERIFY: expected auto, require or off, not \"perhaps\""
            ]
        );
        assert!(inspection.base_url.is_ok() && matches!(inspection.api_key, Err(SettingsError::NoApiKey)));
        assert_eq!(inspection.state_dir, Some("/state".into()));
    }
}
