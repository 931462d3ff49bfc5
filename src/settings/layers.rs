//! Merges the settings from flags, environment, state and configuration.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::api_key::{self, KeyLocation};
use super::layer::{Connection, Layer, Local, PREFIX, variable};
use super::{
    BaseUrl, Configuration, EdgeAddresses, LineageEntry, Settings, SettingsError, TrustAnchors,
    default_state_dir, timeout,
};
use crate::clock::Deadline;
use crate::env::{Env, NotUnicode};
use crate::file::recorded_path;
use crate::secret::Secret;

/// The layers of settings that apply to the whole run. The methods add those of one lineage: its recorded options and
/// its configuration entry.
pub(crate) struct Layers<'a> {
    pub(crate) env: &'a Env,
    pub(super) flags: &'a Layer,
    pub(super) environment: Layer,
    /// Errors of invalid variables.
    pub(crate) unusable: Vec<SettingsError>,
    pub(super) file: &'a Layer,
    /// The API keys that were read.
    keys: RefCell<Vec<(KeyLocation, Result<Secret, SettingsError>)>>,
}

impl<'a> Layers<'a> {
    /// Reads the environment.
    pub(crate) fn new(flags: &'a Layer, env: &'a Env, configuration: &'a Configuration) -> Self {
        let (environment, unusable) = read_variables(env);
        Self { env, flags, environment, unusable, file: &configuration.layer, keys: RefCell::default() }
    }

    /// Fails if a variable is invalid, even if a flag overrides it.
    pub(crate) fn require_valid(&self) -> Result<(), SettingsError> {
        self.unusable.first().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// The base URL that a flag or a variable names.
    pub(crate) fn given_base_url(&self) -> Option<&BaseUrl> {
        self.flags.connection.base_url.as_ref().or(self.environment.connection.base_url.as_ref())
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
        let named_key_file =
            self.flags.connection.api_key_file.as_ref().or(own_key_file).or(recorded_key_file);
        let mut below = [&self.environment, recorded, &configured].into_iter();
        let key_file = below.find_map(|layer| layer.connection.api_key_file.as_ref());
        let merged = self.merge(recorded, entry);
        let deadline = Deadline::after(timeout(&merged));
        let location = KeyLocation::find(named_key_file, key_file, self.env);
        let api_key = location.map(|location| self.read_key(location, deadline)).transpose()?;
        let base_url = merged.connection.base_url.clone().ok_or(SettingsError::NoBaseUrl)?;
        Settings::new(base_url, api_key.ok_or(SettingsError::NoApiKey)?, merged, self.env)
    }

    /// The key file of an entry, unless something else names the service: the key in the environment may be that of
    /// another account.
    fn key_file_of_entry<'e>(&self, recorded: &Layer, entry: &'e LineageEntry) -> Option<&'e PathBuf> {
        let above = [self.flags, &self.environment, recorded];
        let is_elsewhere = above.iter().any(|layer| layer.connection.base_url.is_some());
        entry.layer.connection.api_key_file.as_ref().filter(|_| !is_elsewhere)
    }

    /// The recorded key file, if the recorded base URL is used: `EDGECERT_API_KEY` may be the key for another service.
    fn recorded_key_file<'r>(
        &self,
        recorded: &'r Layer,
        configured: &Layer,
    ) -> Result<Option<&'r PathBuf>, SettingsError> {
        let (recorded, is_overridden) = (&recorded.connection, self.given_base_url().is_some());
        let Some(url) = recorded.base_url.as_ref().filter(|_| !is_overridden) else { return Ok(None) };
        let has_key_file = self.flags.connection.api_key_file.is_some() || recorded.api_key_file.is_some();
        let is_elsewhere = |own: &BaseUrl| own != url;
        if !has_key_file && configured.connection.base_url.as_ref().is_some_and(is_elsewhere) {
            return Err(SettingsError::OtherService { url: url.to_string() });
        }
        Ok(recorded.api_key_file.as_ref())
    }

    /// The state directory, even if other settings are invalid; `None` if there is none.
    pub(crate) fn state_dir(&self) -> Option<PathBuf> {
        self.of_run().local.state_dir.or_else(|| default_state_dir(self.env))
    }

    /// The time limit of the run.
    pub(crate) fn timeout(&self) -> Duration {
        timeout(&self.of_run())
    }

    /// The edges to verify; if empty, the addresses of each site's `cname`.
    /// `lineage` is the value from the lineage's state or entry.
    pub(crate) fn edge_addresses(&self, lineage: Option<&EdgeAddresses>) -> Vec<String> {
        let local = Local { edge_address: lineage.cloned(), ..Local::default() };
        let merged = self.merge(&Layer { local, ..Layer::default() }, None);
        merged.local.edge_address.map(EdgeAddresses::into_vec).unwrap_or_default()
    }

    /// Flags and variables to record, so that a later run can repeat this one. Invalid values are left out: a secret
    /// may be in their place.
    pub(crate) fn to_record(&self) -> Layer {
        let given = self.flags.clone().or(self.environment.clone());
        let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        let Connection { api_key_file, ca_file, .. } = given.connection;
        Layer {
            // The later run has a deadline and a state directory of its own.
            connection: Connection {
                api_key_file: api_key_file.filter(|path| path.is_file()).map(absolute),
                ca_file: ca_file.filter(|path| path.is_file()).map(absolute),
                timeout: None,
                ..given.connection
            },
            local: Local { state_dir: None, ..given.local },
            wait: None,
            trust_anchors: given.trust_anchors.as_ref().map(TrustAnchors::to_record),
            ..given
        }
    }

    /// The base URL of the run.
    pub(crate) fn base_url(&self) -> Result<BaseUrl, SettingsError> {
        let invalid = || self.unusable.iter().find(|error| error.is_about_base_url()).cloned();
        let missing = || invalid().unwrap_or(SettingsError::NoBaseUrl);
        self.of_run().connection.base_url.ok_or_else(missing)
    }

    /// The API key of the run.
    pub(crate) fn api_key(&self) -> Result<Secret, SettingsError> {
        let location = self.key_location().ok_or(SettingsError::NoApiKey)?;
        self.read_key(location, Deadline::after(self.timeout()))
    }

    /// Reads a key once, because its file may be a pipe.
    fn read_key(&self, location: KeyLocation, deadline: Deadline) -> Result<Secret, SettingsError> {
        let known =
            self.keys.borrow().iter().find(|(known, _)| *known == location).map(|(_, key)| key.clone());
        known.unwrap_or_else(|| {
            let key = location.read(self.env, deadline);
            self.keys.borrow_mut().push((location, key.clone()));
            key
        })
    }

    /// Where the API key of the run is.
    pub(super) fn key_location(&self) -> Option<KeyLocation> {
        let configured = self.environment.connection.api_key_file.as_ref();
        let configured = configured.or(self.file.connection.api_key_file.as_ref());
        KeyLocation::find(self.flags.connection.api_key_file.as_ref(), configured, self.env)
    }

    /// The settings of the run, or of a lineage, for checks that go on although some are invalid or missing: with the API
    /// key of the run or an empty one, and with the address of no service if none is set.
    pub(crate) fn incomplete(
        &self,
        recorded: &Layer,
        entry: Option<&LineageEntry>,
    ) -> Result<Settings, SettingsError> {
        let merged = self.merge(recorded, entry);
        let base_url = merged.connection.base_url.clone().or_else(|| "https://localhost".parse().ok());
        let api_key = self.api_key().unwrap_or_else(|_| Secret::new(String::new()));
        Settings::new(base_url.ok_or(SettingsError::NoBaseUrl)?, api_key, merged, self.env)
    }

    /// The settings of the run, without those of a lineage.
    pub(super) fn of_run(&self) -> Layer {
        self.merge(&Layer::default(), None)
    }

    /// The settings of a lineage, even if some are invalid.
    pub(crate) fn merge(&self, recorded: &Layer, entry: Option<&LineageEntry>) -> Layer {
        let given = self.flags.clone().or(self.environment.clone());
        given.or(recorded.clone()).or(self.configured(entry))
    }

    /// The settings of the configuration file.
    fn configured(&self, entry: Option<&LineageEntry>) -> Layer {
        let entry = entry.map(|entry| entry.layer.clone()).unwrap_or_default();
        entry.or(self.file.clone())
    }
}

/// Reads the `EDGECERT_…` variables, and returns the errors of invalid ones.
fn read_variables(env: &Env) -> (Layer, Vec<SettingsError>) {
    let (mut layer, mut unusable) = (Layer::default(), Vec::new());
    let names = env.with_prefix(PREFIX).filter_map(|(name, _)| name.to_str());
    let mut names: Vec<&str> = names.filter(|name| *name != api_key::VARIABLE).collect();
    names.sort_unstable();
    for name in names {
        let key = name.trim_start_matches(PREFIX).to_ascii_lowercase();
        let Some(raw) = env.raw(name).filter(|_| variable(&key) == name) else { continue };
        match Layer::one(&key, recorded_path::to_value(Path::new(raw))) {
            Ok(read) => layer = layer.or(read),
            Err(_) if raw.to_str().is_none() => unusable.push(NotUnicode(name.to_owned()).into()),
            Err(error) => {
                unusable.push(SettingsError::Invalid { name: name.to_owned(), reason: error.to_string() });
            }
        }
    }
    (layer, unusable)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::OpenOptionsExt as _;

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
        file.layer.wait = "3".parse().ok();
        let flags = Layer { wait: "1".parse().ok(), ..Layer::default() };
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
    fn key_is_read_once() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("key");
        let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
        std::io::Write::write_all(&mut &file, b"secret").unwrap();
        let env = env(&[
            ("EDGECERT_BASE_URL", "https://a.example"),
            ("EDGECERT_API_KEY_FILE", path.to_str().unwrap()),
        ]);
        let (flags, file) = (Layer::default(), Configuration::default());
        let layers = Layers::new(&flags, &env, &file);
        assert!(layers.api_key().is_ok());
        std::fs::remove_file(path).unwrap();
        assert_eq!(layers.resolve(None).unwrap().api_key.expose(), "secret");
    }

    #[test]
    fn unusable_variable_is_named() {
        let (flags, file) = (Layer::default(), Configuration::default());
        for (name, value) in [
            ("EDGECERT_TIMEOUT", "soon"),
            ("EDGECERT_WAIT", "-1"),
            ("EDGECERT_VERIFY", "maybe"),
            ("EDGECERT_REBIND", "2"),
        ] {
            let env = env(&[(name, value)]);
            let error = Layers::new(&flags, &env, &file).resolve(None).err().unwrap().to_string();
            assert!(error.starts_with(&format!("{name}: expected ")) && !error.contains(value), "{error}");
        }
    }

    #[test]
    fn recorded_service_needs_its_own_key() {
        let env = env(&[("EDGECERT_API_KEY", "k")]);
        let (flags, mut file) = (Layer::default(), Configuration::default());
        file.layer.connection.base_url = "https://here.example".parse().ok();
        let layers = Layers::new(&flags, &env, &file);
        let recorded = |url: &str| Layer::one("base_url", url.into()).unwrap();
        assert!(layers.resolve_recorded(&recorded("https://here.example/"), None).is_ok());
        let elsewhere = layers.resolve_recorded(&recorded("https://there.example"), None);
        assert!(
            matches!(elsewhere, Err(SettingsError::OtherService { url }) if url == "https://there.example")
        );
    }

    #[test]
    fn record_omits_time_limits_and_invalid_values() {
        let env = env(&[("EDGECERT_BASE_URL", "secret"), ("EDGECERT_WAIT", "0"), ("EDGECERT_REBIND", "1")]);
        let (flags, file) = (Layer::one("timeout", 5.into()).unwrap(), Configuration::default());
        let recorded = Layers::new(&flags, &env, &file).to_record();
        assert_eq!(recorded, Layer { rebind: Some(true), ..Layer::default() });
    }

    #[test]
    fn unusable_variable_does_not_hide_others() {
        let env = env(&[
            ("EDGECERT_VERIFY", "perhaps"),
            ("EDGECERT_TIMEOUT", "soon"),
            ("EDGECERT_BASE_URL", "https://api.example.net"),
            ("EDGECERT_STATE_DIR", "/state"),
        ]);
        let (flags, file) = (Layer::default(), Configuration::default());
        let layers = Layers::new(&flags, &env, &file);
        let unusable: Vec<String> = layers.unusable.iter().map(ToString::to_string).collect();
        assert_eq!(
            unusable,
            [
                "EDGECERT_TIMEOUT: expected a whole number of seconds above 0",
                "EDGECERT_VERIFY: expected auto, require or off"
            ]
        );
        assert!(layers.base_url().is_ok() && matches!(layers.api_key(), Err(SettingsError::NoApiKey)));
        assert_eq!(layers.state_dir(), Some("/state".into()));
    }
}
