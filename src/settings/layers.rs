//! Merges the settings from flags, environment, state and configuration.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use super::api_key::KeyLocation;
use super::configuration::{Origin, Origins};
use super::error::Result;
use super::layer::{Connection, Layer, variable};
use super::{
    BaseUrl, Configuration, LineageEntry, Settings, SettingsError, default_state_dir, timeout, trust_anchors,
};
use crate::clock::Deadline;
use crate::env::Env;
use crate::file::recorded_path;
use crate::secret::Secret;

/// The layers of settings that apply to the whole run. The methods add those of one lineage: its recorded options and
/// its configuration entry.
pub(crate) struct Layers<'a> {
    pub(crate) env: &'a Env,
    pub(super) flags: &'a Layer,
    /// Settings from flags and variables; a flag wins.
    pub(crate) given: Layer,
    /// The variable behind each setting that one gives.
    pub(super) origins: Origins,
    pub(crate) file: &'a Configuration,
    /// The API keys that were read.
    keys: RefCell<HashMap<KeyLocation, Result<Secret>>>,
}

impl<'a> Layers<'a> {
    /// Reads the `EDGECERT_…` variables.
    pub(crate) fn new(flags: &'a Layer, env: &'a Env, configuration: &'a Configuration) -> Self {
        let (mut environment, mut origins) = (Layer::default(), Origins::new());
        for key in Layer::keys() {
            let name = variable(&key);
            let Some(raw) = env.raw(&name) else { continue };
            let value = recorded_path::serialize(&PathBuf::from(raw), serde_json::value::Serializer);
            let read = Layer::one(&key, value.unwrap_or_default());
            let error =
                read.as_ref().err().map(|reason| SettingsError::new(format_args!("{name}: {reason}")));
            environment = environment.or(&read.unwrap_or_default());
            origins.insert(key, Origin { place: format!("variable {name}"), error });
        }
        let given = flags.or(&environment);
        Self { env, flags, given, origins, file: configuration, keys: RefCell::default() }
    }

    /// The keys of invalid variables, with the errors.
    pub(crate) fn unusable(&self) -> impl Iterator<Item = (&str, &SettingsError)> {
        self.origins.iter().filter_map(|(key, origin)| Some((key.as_str(), origin.error.as_ref()?)))
    }

    /// Fails if the file or a variable is invalid, even if a flag overrides it.
    pub(crate) fn require_valid(&self) -> Result<()> {
        self.file.require_valid()?;
        self.unusable().next().map_or(Ok(()), |(_, error)| Err(error.clone()))
    }

    /// Resolves the settings for a lineage, which may have been deployed with recorded options.
    pub(crate) fn resolve(&self, recorded: &Layer, entry: Option<&LineageEntry>) -> Result<Settings> {
        self.require_valid()?;
        let merged = self.merge(recorded, entry);
        let base_url = merged.connection.base_url.clone().ok_or_else(SettingsError::no_base_url)?;
        Settings::new(base_url, self.key(recorded, entry)?, merged, self.env)
    }

    /// Where the API key of a lineage is, or that of the run. `EDGECERT_API_KEY` may be the key of another account than
    /// the one that an entry or a state names, so the key file beside that base URL comes first.
    pub(super) fn key_location(&self, recorded: &Layer, entry: Option<&LineageEntry>) -> Result<KeyLocation> {
        let url = self.merge(recorded, entry).connection.base_url;
        let is_url = |own: &Option<BaseUrl>| own.is_none() || *own == url;
        let (given, recorded) = (&self.given.connection, &self.fitting(recorded).connection);
        let (own, top) = (entry.map(|entry| &entry.layer.connection), &self.file.layer.connection);
        let configured = self.configured(entry).connection;
        let of_entry = own.filter(|_| is_url(&configured.base_url)).and_then(|own| own.api_key_file.as_ref());
        // An entry with a base URL alone is sent the key at the top.
        let is_alone = own.is_some_and(|own| own.base_url.is_some() && own.base_url == url);
        let of_top = top.api_key_file.as_ref().filter(|_| is_alone || is_url(&top.base_url));
        let beside_url = match (&given.base_url, &recorded.base_url) {
            (Some(_), _) => None,
            (None, Some(_)) => recorded.api_key_file.as_ref(),
            (None, None) => of_entry,
        };
        let first = self.flags.connection.api_key_file.as_ref().or(beside_url);
        let others = configured.base_url.as_ref().zip(url.as_ref()).filter(|(own, url)| own != url);
        let of_other = others.map(|(own, url)| SettingsError::key_of_other_service(own, url));
        let is_recorded = given.base_url.is_none() && recorded.base_url.is_some();
        match of_other {
            // A key in a variable may be for that other service, too.
            Some(error) if is_recorded && first.is_none() && top.base_url != url => Err(error),
            of_other => {
                let below = given.api_key_file.as_ref().or(recorded.api_key_file.as_ref());
                let missing = of_other.filter(|_| configured.api_key_file.is_some());
                KeyLocation::find(first, below.or(of_entry).or(of_top), self.env)
                    .ok_or_else(|| missing.unwrap_or_else(SettingsError::no_api_key))
            }
        }
    }

    /// The state directory, even if other settings are invalid; `None` if there is none.
    pub(crate) fn state_dir(&self) -> Option<PathBuf> {
        self.of_run().local.state_dir.or_else(|| default_state_dir(self.env))
    }

    /// The time limit of the run.
    pub(crate) fn timeout(&self) -> Duration {
        timeout(&self.of_run())
    }

    /// Flags and variables to record, so that a later run can repeat this one. Invalid values are left out: a secret
    /// may be in their place.
    pub(crate) fn to_record(&self) -> Layer {
        let mut given = self.given.clone();
        // The later run has deadlines and a state directory of its own.
        (given.connection.timeout, given.wait, given.local.state_dir) = (None, None, None);
        let Connection { api_key_file, ca_file, .. } = &mut given.connection;
        for path in [api_key_file, ca_file] {
            *path = path.take().and_then(existing);
        }
        given.trust_anchors = given.trust_anchors.map(trust_anchors::to_record);
        given
    }

    /// The base URL of the run.
    pub(crate) fn base_url(&self) -> Result<BaseUrl> {
        let invalid = || self.origins.get("base_url").and_then(|origin| origin.error.clone());
        let missing = || invalid().unwrap_or_else(SettingsError::no_base_url);
        self.of_run().connection.base_url.ok_or_else(missing)
    }

    /// The API key of the run.
    pub(crate) fn api_key(&self) -> Result<Secret> {
        self.key(&Layer::default(), None)
    }

    /// The API key of a lineage. It is read once, because its file may be a pipe.
    fn key(&self, recorded: &Layer, entry: Option<&LineageEntry>) -> Result<Secret> {
        let deadline = Deadline::after(timeout(&self.merge(recorded, entry)));
        let (location, mut keys) = (self.key_location(recorded, entry)?, self.keys.borrow_mut());
        keys.entry(location).or_insert_with_key(|location| location.read(self.env, deadline)).clone()
    }

    /// The settings of the run, or of a lineage, for checks that go on although some are invalid or missing; a missing
    /// API key is empty, and a missing base URL a placeholder.
    pub(crate) fn incomplete(&self, recorded: &Layer, entry: Option<&LineageEntry>) -> Result<Settings> {
        let merged = self.merge(recorded, entry);
        let base_url = merged.connection.base_url.clone().or_else(|| "https://localhost".parse().ok());
        let api_key = self.key(recorded, entry).unwrap_or_else(|_| Secret::new(String::new()));
        Settings::new(base_url.ok_or_else(SettingsError::no_base_url)?, api_key, merged, self.env)
    }

    /// The settings of the run, without those of a lineage.
    pub(super) fn of_run(&self) -> Layer {
        self.merge(&Layer::default(), None)
    }

    /// The settings of a lineage, even if some are invalid.
    pub(crate) fn merge(&self, recorded: &Layer, entry: Option<&LineageEntry>) -> Layer {
        self.given.or(&self.fitting(recorded)).or(&self.configured(entry))
    }

    /// The recorded settings, without the key file and the CA file if they are for another base URL than the one given now.
    fn fitting(&self, recorded: &Layer) -> Layer {
        let mut recorded = recorded.clone();
        let (given, own) = (&self.given.connection.base_url, &mut recorded.connection);
        if given.is_some() && own.base_url.is_some() && *given != own.base_url {
            (own.api_key_file, own.ca_file) = (None, None);
        }
        recorded
    }

    /// The settings of the configuration file.
    fn configured(&self, entry: Option<&LineageEntry>) -> Layer {
        let top = &self.file.layer;
        entry.map_or_else(|| top.clone(), |entry| entry.layer.or(top))
    }
}

/// The absolute path of a file, if there is one. Anything else may be a misplaced secret, so it is not recorded.
pub(super) fn existing(path: PathBuf) -> Option<PathBuf> {
    path.is_file().then(|| std::path::absolute(&path).unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::OpenOptionsExt as _;

    use super::*;
    use crate::settings::{Location, TIMEOUT};

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
        let wait = |flags: &Layer, env: &Env| {
            Layers::new(flags, env, &file).resolve(&Layer::default(), None).unwrap().wait.as_secs()
        };
        assert_eq!(wait(&flags, &env(&base)), 1);
        assert_eq!(wait(&Layer::default(), &env(&base)), 2);
        assert_eq!(wait(&Layer::default(), &env(&base[..2])), 3);
    }

    #[test]
    fn setting_without_value_has_default() {
        let env = env(&[("EDGECERT_BASE_URL", "http://127.0.0.1:1"), ("EDGECERT_API_KEY", "k")]);
        let (flags, file) = (Layer::default(), Configuration::default());
        let settings = Layers::new(&flags, &env, &file).resolve(&Layer::default(), None).unwrap();
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
                let settings = Layers::new(&flags, &env, &file).resolve(&Layer::default(), None);
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
            Layers::new(&flags, &env(&base), &file).resolve(&Layer::default(), None).unwrap()
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
        assert_eq!(layers.resolve(&Layer::default(), None).unwrap().api_key.expose(), "secret");
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
            let error =
                Layers::new(&flags, &env, &file).resolve(&Layer::default(), None).err().unwrap().to_string();
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
        assert!(layers.resolve(&recorded("https://here.example/"), None).is_ok());
        let elsewhere = layers.resolve(&recorded("https://there.example"), None);
        let expected = "the configured API key is for https://here.example, not for https://there.example";
        assert!(elsewhere.is_err_and(|error| error.to_string() == expected));
    }

    /// A key file and the base URL that it was given with travel together.
    #[test]
    fn key_file_is_for_its_base_url() {
        type Given<'r> = (Option<&'r str>, Option<&'r str>);
        let connection = |url: Option<&str>, key: Option<&str>| Connection {
            base_url: url.map(|host| format!("https://{host}.example").parse().unwrap()),
            api_key_file: key.map(PathBuf::from),
            ca_file: key.map(PathBuf::from),
            ..Connection::default()
        };
        let layer = |(url, key)| Layer { connection: connection(url, key), ..Layer::default() };
        // Flags, recorded options and configuration, and whose key file and CA file count.
        let rows: [([Given<'_>; 3], [Option<&str>; 2]); 8] = [
            ([(Some("new"), None), (Some("old"), Some("/r")), (None, None)], [None, None]),
            ([(Some("new"), None), (Some("old"), Some("/r")), (Some("new"), Some("/c"))], [Some("/c"); 2]),
            ([(Some("new"), None), (None, None), (Some("old"), Some("/c"))], [None, Some("/c")]),
            ([(Some("old"), None), (Some("old"), Some("/r")), (Some("new"), Some("/c"))], [Some("/r"); 2]),
            ([(Some("new"), Some("/f")), (Some("old"), Some("/r")), (None, Some("/c"))], [Some("/f"); 2]),
            ([(Some("new"), None), (None, None), (None, Some("/c"))], [Some("/c"); 2]),
            ([(None, None), (Some("old"), Some("/r")), (Some("new"), Some("/c"))], [Some("/r"); 2]),
            ([(None, None), (None, None), (Some("new"), Some("/c"))], [Some("/c"); 2]),
        ];
        for (number, (given, [key, ca_file])) in rows.into_iter().enumerate() {
            let ([flags, recorded, configured], env) = (given.map(layer), env(&[]));
            let file = Configuration { layer: configured, ..Configuration::default() };
            let layers = Layers::new(&flags, &env, &file);
            let found = layers.key_location(&recorded, None).ok();
            assert_eq!(found, key.map(|key| KeyLocation::File(key.into())), "row {number}");
            let found = layers.merge(&recorded, None).connection.ca_file;
            assert_eq!(found, ca_file.map(PathBuf::from), "row {number}");
        }
    }

    #[test]
    fn entry_and_top_have_a_key_file_each() {
        let [entry, top] = [("https://a.example", "/a"), ("https://b.example", "/b")];
        let layer = |(url, key): (&str, &str)| {
            Layer::one("base_url", url.into()).unwrap().or(&Layer::one("api_key_file", key.into()).unwrap())
        };
        let file = Configuration { layer: layer(top), ..Configuration::default() };
        let alone = Layer::one("base_url", entry.0.into()).unwrap();
        for (url, entry, expected) in [
            ("https://a.example", layer(entry), Some("/a")),
            ("https://b.example", layer(entry), Some("/b")),
            ("https://a.example", alone, Some("/b")),
            ("https://c.example", layer(entry), None),
        ] {
            let (flags, env) = (Layer::one("base_url", url.into()).unwrap(), env(&[]));
            let layers = Layers::new(&flags, &env, &file);
            let entry = LineageEntry {
                location: Location::Directory("/c".into()),
                account: None,
                target: None,
                domains: Vec::new(),
                layer: entry,
                origins: Origins::new(),
            };
            let found = layers.key_location(&Layer::default(), Some(&entry));
            let expected = expected.map(|key| KeyLocation::File(key.into()));
            assert!(
                expected.is_some()
                    || found
                        .as_ref()
                        .is_err_and(|error| error.to_string().contains("not for https://c.example"))
            );
            assert_eq!(found.ok(), expected, "{url}");
        }
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
        let unusable: Vec<String> = layers.unusable().map(|(_, error)| error.to_string()).collect();
        assert_eq!(
            unusable,
            [
                "EDGECERT_TIMEOUT: expected a whole number of seconds above 0",
                "EDGECERT_VERIFY: expected auto, require or off"
            ]
        );
        assert!(layers.base_url().is_ok() && layers.api_key().is_err_and(|error| error.is_missing));
        assert_eq!(layers.state_dir(), Some("/state".into()));
    }
}
