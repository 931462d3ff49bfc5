//! Merges the settings from flags, environment, state and configuration.

use std::path::PathBuf;
use std::time::Duration;

use super::layer::{Layer, Reader, Setting};
use super::value::Value;
use super::{
    BaseUrl, Configuration, EdgeAddresses, LineageEntry, Settings, SettingsError, TrustAnchors, TrustPolicy,
    api_key, default_state_dir, timeout,
};
use crate::clock::Deadline;
use crate::env::{Env, NotUnicode};

/// The layers of settings that apply to the whole run. The methods add those of one lineage: its recorded options and
/// its configuration entry.
pub(crate) struct Layers<'a> {
    pub(super) env: &'a Env,
    pub(super) flags: &'a Layer,
    pub(super) environment: Layer,
    /// Errors of invalid variables.
    pub(super) unusable: Vec<SettingsError>,
    pub(super) file: &'a Layer,
}

/// Settings of `deploy` that may differ between lineages.
pub(crate) struct LineageOptions {
    pub(crate) rebind: bool,
    pub(crate) allow_untrusted: bool,
    pub(crate) skip_unmatched: bool,
    pub(crate) trust_anchors: TrustPolicy,
}

impl<'a> Layers<'a> {
    /// Reads the environment.
    pub(crate) fn new(flags: &'a Layer, env: &'a Env, configuration: &'a Configuration) -> Self {
        let mut reader = Environment { env, unusable: Vec::new() };
        let environment = Layer::read(&mut reader);
        Self { env, flags, environment, unusable: reader.unusable, file: &configuration.layer }
    }

    /// Fails if a variable is invalid, even if a flag overrides it.
    pub(crate) fn require_valid(&self) -> Result<(), SettingsError> {
        self.unusable.first().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// The base URL that a flag or a variable names.
    pub(crate) fn given_base_url(&self) -> Option<&BaseUrl> {
        self.flags.base_url.as_ref().or(self.environment.base_url.as_ref())
    }

    /// Resolves the settings of a run without recorded options.
    pub(crate) fn resolve(&self, entry: Option<&LineageEntry>) -> Result<Settings, SettingsError> {
        self.resolve_recorded(&Layer::default(), entry)
    }

    /// Resolves the settings for a lineage that was deployed before.
    pub(crate) fn resolve_recorded(
        &self,
        recorded: &Layer,
        entry: Option<&LineageEntry>,
    ) -> Result<Settings, SettingsError> {
        self.require_valid()?;
        let configured = self.configured(entry);
        let recorded_key_file = self.recorded_key_file(recorded, &configured)?;
        let own_key_file = entry.and_then(|entry| self.key_file_of_entry(recorded, entry));
        let named_key_file = self.flags.api_key_file.as_ref().or(own_key_file).or(recorded_key_file);
        let environment = self.environment.clone().or(recorded.clone());
        let key_file = environment.api_key_file.as_ref().or(configured.api_key_file.as_ref());
        let merged = self.merge(recorded, entry);
        let deadline = Deadline::after(timeout(merged.timeout));
        let api_key = api_key::find(named_key_file, key_file, self.env, deadline)?;
        let base_url = merged.base_url.clone().ok_or(SettingsError::NoBaseUrl)?;
        Settings::new(base_url, api_key.ok_or(SettingsError::NoApiKey)?, merged, self.env)
    }

    /// The key file of an entry, unless something else names the service: the key in the environment may be that of
    /// another account.
    fn key_file_of_entry<'e>(&self, recorded: &Layer, entry: &'e LineageEntry) -> Option<&'e PathBuf> {
        let above = [self.flags, &self.environment, recorded];
        let is_elsewhere = above.iter().any(|layer| layer.base_url.is_some());
        entry.layer.api_key_file.as_ref().filter(|_| !is_elsewhere)
    }

    /// The recorded key file, if the recorded base URL is used: `EDGECERT_API_KEY` may be the key for another service.
    fn recorded_key_file<'r>(
        &self,
        recorded: &'r Layer,
        configured: &Layer,
    ) -> Result<Option<&'r PathBuf>, SettingsError> {
        let is_overridden = self.flags.base_url.is_some() || self.environment.base_url.is_some();
        let Some(url) = recorded.base_url.as_ref().filter(|_| !is_overridden) else { return Ok(None) };
        let has_key_file = self.flags.api_key_file.is_some() || recorded.api_key_file.is_some();
        let is_elsewhere = |own: &BaseUrl| own != url;
        if !has_key_file && configured.base_url.as_ref().is_some_and(is_elsewhere) {
            return Err(SettingsError::OtherService { url: url.to_string() });
        }
        Ok(recorded.api_key_file.as_ref())
    }

    /// Resolves the options of one lineage, even if other settings are invalid.
    pub(crate) fn lineage_options(&self, recorded: &Layer, entry: Option<&LineageEntry>) -> LineageOptions {
        let merged = self.merge(recorded, entry);
        LineageOptions {
            rebind: merged.rebind.unwrap_or(false),
            allow_untrusted: merged.allow_untrusted.unwrap_or(false),
            skip_unmatched: merged.skip_unmatched.unwrap_or(false),
            trust_anchors: TrustPolicy::new(merged.trust_anchors, self.env),
        }
    }

    /// The state directory, even if other settings are invalid; `None` if there is none.
    pub(crate) fn state_dir(&self) -> Option<PathBuf> {
        self.merge(&Layer::default(), None).state_dir.or_else(|| default_state_dir(self.env))
    }

    /// The time limit of the run.
    pub(crate) fn timeout(&self) -> Duration {
        timeout(self.merge(&Layer::default(), None).timeout)
    }

    /// The edges to verify; if empty, the addresses of each site's `cname`.
    /// `lineage` is the value from the lineage's state or entry.
    pub(crate) fn edge_addresses(&self, lineage: Option<&EdgeAddresses>) -> Vec<String> {
        let recorded = Layer { edge_address: lineage.cloned(), ..Layer::default() };
        self.merge(&recorded, None).edge_address.map(EdgeAddresses::into_vec).unwrap_or_default()
    }

    /// Flags and variables to record, so that a later run can repeat this one. Invalid values are left out: a secret
    /// may be in their place.
    pub(crate) fn to_record(&self) -> Layer {
        let given = self.flags.clone().or(self.environment.clone());
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        Layer {
            api_key_file: given.api_key_file.filter(|path| path.is_file()).map(absolute),
            ca_file: given.ca_file.filter(|path| path.is_file()).map(absolute),
            trust_anchors: given.trust_anchors.as_ref().map(TrustAnchors::to_record),
            // The later run has a deadline and a state directory of its own.
            state_dir: None,
            timeout: None,
            wait: None,
            ..given
        }
    }

    pub(super) fn merge(&self, recorded: &Layer, entry: Option<&LineageEntry>) -> Layer {
        let given = self.flags.clone().or(self.environment.clone());
        given.or(recorded.clone()).or(self.configured(entry))
    }

    /// The settings of the configuration file.
    fn configured(&self, entry: Option<&LineageEntry>) -> Layer {
        let entry = entry.map(|entry| entry.layer.clone()).unwrap_or_default();
        entry.or(self.file.clone())
    }
}

/// Reads `EDGECERT_…` variables.
struct Environment<'a> {
    env: &'a Env,
    unusable: Vec<SettingsError>,
}

impl Reader for Environment<'_> {
    fn read<T: Value>(&mut self, setting: &'static Setting) -> Option<T> {
        let variable = setting.variable();
        let raw = self.env.raw(&variable)?;
        let fault = match (T::from_os(raw), raw.to_str()) {
            (Ok(value), _) => return Some(value),
            (Err(error), Some(text)) => {
                let reason = error.describe(&format!("{:?}", text.trim()));
                SettingsError::Invalid { name: variable, reason }
            }
            (Err(_), None) => NotUnicode(variable).into(),
        };
        self.unusable.push(fault);
        None
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::settings::TIMEOUT;

    fn env(variables: &[(&str, &str)]) -> Env {
        variables.iter().copied().collect()
    }

    #[test]
    fn flag_beats_environment_beats_file() {
        let base =
            [("EDGECERT_BASE_URL", "http://127.0.0.1:1"), ("EDGECERT_API_KEY", "k"), ("EDGECERT_WAIT", "2")];
        let mut file = Configuration::default();
        file.layer.wait = Some(3);
        let flags = Layer { wait: Some(1), ..Layer::default() };
        let wait =
            |flags: &Layer, env: &Env| Layers::new(flags, env, &file).resolve(None).unwrap().wait.as_secs();
        assert_eq!(wait(&flags, &env(&base)), 1);
        assert_eq!(wait(&Layer::default(), &env(&base)), 2);
        assert_eq!(wait(&Layer::default(), &env(&base[..2])), 3);
    }

    #[test]
    fn setting_without_value_has_default() {
        let env = env(&[("EDGECERT_BASE_URL", "http://127.0.0.1:1"), ("EDGECERT_API_KEY", "k")]);
        let (flags, file) = (Layer::default(), Configuration::default());
        let settings = Layers::new(&flags, &env, &file).resolve(None).unwrap();
        assert_eq!(settings.timeout.as_secs(), TIMEOUT);
        assert!(!settings.rebind && settings.edge_addresses.is_empty());
    }

    #[test]
    fn any_number_of_seconds_leads_to_a_deadline() {
        let (flags, file) = (Layer::default(), Configuration::default());
        for (seconds, is_valid) in [
            ("1", true),
            ("9007199254740993", true),
            ("18446744073709551615", true),
            ("18446744073709551616", false),
            ("-1", false),
            ("1e308", false),
        ] {
            for name in ["EDGECERT_TIMEOUT", "EDGECERT_WAIT", "EDGECERT_VERIFY_EVERY"] {
                let base = [("EDGECERT_BASE_URL", "http://127.0.0.1:1"), ("EDGECERT_API_KEY", "k")];
                let env = env(&[base.as_slice(), &[(name, seconds)]].concat());
                let settings = Layers::new(&flags, &env, &file).resolve(None);
                assert_eq!(settings.is_ok(), is_valid, "{name}={seconds}");
                let Ok(settings) = settings else { continue };
                for duration in [settings.timeout, settings.wait, settings.verify_every] {
                    assert!(!Deadline::after(duration).left().is_zero(), "{name}={seconds}");
                }
            }
        }
    }

    #[test]
    fn account_is_service_key_trust_and_proxy() {
        let (flags, file) = (Layer::default(), Configuration::default());
        let proxy = "http://user:secret@proxy.example:1";
        let settings = |changed: (&str, &str)| {
            let base = [
                ("EDGECERT_BASE_URL", "https://a.example"),
                ("EDGECERT_API_KEY", "k"),
                ("HTTPS_PROXY", proxy),
                changed,
            ];
            Layers::new(&flags, &env(&base), &file).resolve(None).unwrap()
        };
        let base = settings(("EDGECERT_WAIT", "1"));
        for (changed, is_same) in [
            (("EDGECERT_WAIT", "2"), true),
            (("EDGECERT_BASE_URL", "https://a.example/"), true),
            (("https_proxy", proxy), true),
            (("EDGECERT_BASE_URL", "https://b.example"), false),
            (("EDGECERT_API_KEY", "other"), false),
            (("EDGECERT_CA_FILE", "/ca.pem"), false),
            (("EDGECERT_PROXY", "off"), false),
            (("EDGECERT_PROXY", "http://proxy.example:1"), false),
            (("HTTPS_PROXY", "http://user:other@proxy.example:1"), false),
        ] {
            assert_eq!(base.is_same_service(&settings(changed)), is_same, "{changed:?}");
            assert_eq!(settings(changed).is_same_service(&base), is_same, "{changed:?}");
        }
    }

    #[test]
    fn unusable_variable_is_named_with_value() {
        let (flags, file) = (Layer::default(), Configuration::default());
        for (name, value) in [
            ("EDGECERT_TIMEOUT", "soon"),
            ("EDGECERT_WAIT", "-1"),
            ("EDGECERT_VERIFY", "maybe"),
            ("EDGECERT_REBIND", "2"),
        ] {
            let env = env(&[(name, value)]);
            let error = Layers::new(&flags, &env, &file).resolve(None).err().unwrap().to_string();
            assert!(
                error.starts_with(&format!("{name}: ")) && error.ends_with(&format!("not {value:?}")),
                "{error}"
            );
        }
    }

    #[test]
    fn recorded_service_needs_its_own_key() {
        let env = env(&[("EDGECERT_API_KEY", "k")]);
        let (flags, mut file) = (Layer::default(), Configuration::default());
        file.layer.base_url = "https://here.example".parse().ok();
        let layers = Layers::new(&flags, &env, &file);
        let recorded = |url: &str| Layer { base_url: url.parse().ok(), ..Layer::default() };
        assert!(layers.resolve_recorded(&recorded("https://here.example/"), None).is_ok());
        let elsewhere = layers.resolve_recorded(&recorded("https://there.example"), None);
        assert!(
            matches!(elsewhere, Err(SettingsError::OtherService { url }) if url == "https://there.example")
        );
    }

    #[test]
    fn record_omits_time_limits_and_invalid_values() {
        let env = env(&[("EDGECERT_BASE_URL", "secret"), ("EDGECERT_WAIT", "0"), ("EDGECERT_REBIND", "1")]);
        let (flags, file) =
            (Layer { timeout: NonZeroU64::new(5), ..Layer::default() }, Configuration::default());
        let recorded = Layers::new(&flags, &env, &file).to_record();
        assert_eq!(recorded, Layer { rebind: Some(true), ..Layer::default() });
    }
}
