//! Lists the settings in effect, each with its value and where that comes from.
//!
//! A value is shown as it would be written, but only the length of the API key, a proxy without its credentials, and no
//! invalid value, because it may be a misplaced secret.

use std::path::Path;

use serde_json::{Map, Value};

use super::api_key::{self, KeyLocation};
use super::layer::variable;
use super::{
    ConfigurationFile, Layer, Layers, LineageEntry, Proxy, SettingsError, default_text, heartbeat_url,
    on_failure,
};
use crate::env::Env;
use crate::file::recorded_path;
use crate::text::{count, path};

const CONFIG_VARIABLE: &str = "EDGECERT_CONFIG";
const PROXY: &str = "proxy";
const STATE_DIRECTORY: &str = "STATE_DIRECTORY";

/// A setting in effect.
#[derive(Clone, Debug)]
pub(crate) struct EffectiveSetting {
    /// Key in the configuration file; also `config`, `api_key` and `proxy`.
    pub(crate) key: String,
    /// The lineage whose `[[lineage]]` entry has the setting; `None` for the whole run.
    pub(crate) lineage: Option<String>,
    /// `None` if it is unset without a default, or invalid.
    pub(crate) value: Option<String>,
    /// The flag, variable, file or line that has it; `None` if nothing sets it.
    pub(crate) origin: Option<String>,
    /// Why it is invalid, or missing although it is required.
    pub(crate) error: Option<SettingsError>,
}

/// Lists every setting, then those of `[[lineage]]` entries. `config` is the value of `--config`. Reads the API key,
/// which may be in a pipe.
pub(crate) fn effective(
    flags: &Layer,
    config: Option<&Path>,
    env: &Env,
    file: &ConfigurationFile,
) -> Vec<EffectiveSetting> {
    let layers = Layers::new(flags, env, &file.valid);
    let list = List { flags: flags.values(), environment: layers.environment.values(), file, layers };
    let mut settings = vec![list.config_file(config)];
    settings.extend(Layer::keys().iter().filter(|key| *key != PROXY).map(|key| list.setting(key)));
    settings.extend([list.api_key(), list.proxy(), list.on_failure(), list.heartbeat_url()]);
    settings.extend(file.valid.lineages.iter().flat_map(|entry| list.entry(entry)));
    settings
}

/// The sources of the settings.
struct List<'a> {
    flags: Map<String, Value>,
    environment: Map<String, Value>,
    file: &'a ConfigurationFile,
    layers: Layers<'a>,
}

impl List<'_> {
    fn config_file(&self, flag: Option<&Path>) -> EffectiveSetting {
        let origin = match (flag, self.layers.env.raw(CONFIG_VARIABLE)) {
            (Some(_), _) => Some("flag --config".into()),
            (None, Some(_)) => Some(of_variable(CONFIG_VARIABLE)),
            (None, None) => None,
        };
        // Faults in lines of settings are shown with these.
        let is_known = |fault: &&SettingsError| match fault {
            SettingsError::File { line, .. } => !self.file.valid.has_line(*line),
            _ => true,
        };
        let error = self.file.faults.iter().find(is_known).cloned();
        let value = self.file.path.as_deref().map(path);
        EffectiveSetting { key: "config".into(), lineage: None, value, origin, error }
    }

    fn setting(&self, key: &str) -> EffectiveSetting {
        let variable = variable(key);
        let (value, origin, error) = if let Some(value) = text(&self.flags, key) {
            (Some(value), Some(format!("flag --{}", key.replace('_', "-"))), None)
        } else if self.layers.env.raw(&variable).is_some() {
            let error = self.layers.unusable.iter().find(|error| error.name() == Some(&variable));
            (text(&self.environment, key), Some(of_variable(&variable)), error.cloned())
        } else if let Some(line) = self.file.valid.lines.get(key) {
            (text(&self.file.valid.layer.values(), key), self.line(*line), self.fault_at(*line))
        } else {
            self.default(key)
        };
        EffectiveSetting { key: key.to_owned(), lineage: None, value, origin, error }
    }

    fn default(&self, key: &str) -> (Option<String>, Option<String>, Option<SettingsError>) {
        match key {
            "base_url" => (None, None, self.missing(SettingsError::NoBaseUrl)),
            "state_dir" => {
                let origin = self.layers.env.raw(STATE_DIRECTORY).map(|_| of_variable(STATE_DIRECTORY));
                (self.layers.state_dir().as_deref().map(path), origin, None)
            }
            _ => (default_text(key), None, None),
        }
    }

    fn api_key(&self) -> EffectiveSetting {
        let (value, error) = match self.layers.api_key() {
            Ok(key) => (Some(count(key.expose().chars().count(), "character")), None),
            Err(SettingsError::NoApiKey) => (None, self.missing(SettingsError::NoApiKey)),
            Err(error) => (None, Some(error)),
        };
        let origin = match self.layers.key_location() {
            Some(KeyLocation::File(file)) => Some(format!("file {}", path(&file))),
            Some(KeyLocation::Variable) => Some(of_variable(api_key::VARIABLE)),
            Some(KeyLocation::Credential(file)) => Some(format!("credential {}", path(&file))),
            None => None,
        };
        EffectiveSetting { key: "api_key".into(), lineage: None, value, origin, error }
    }

    /// The proxy for requests to the base URL.
    fn proxy(&self) -> EffectiveSetting {
        let setting = self.setting(PROXY);
        if setting.origin.is_some() {
            return setting;
        }
        let url = self.layers.of_run().connection.base_url;
        let (value, origin, error) = match url.map(|url| Proxy::find(&url, None, self.layers.env)) {
            Some(Ok(Some(proxy))) => (Some(proxy.text()), proxy.variable.map(of_variable), None),
            Some(Err(error)) => (None, error.name().map(of_variable), Some(error)),
            Some(Ok(None)) | None => (None, None, None),
        };
        EffectiveSetting { key: PROXY.into(), lineage: None, value, origin, error }
    }

    /// The program, without its arguments: there may be a secret among them.
    fn on_failure(&self) -> EffectiveSetting {
        let value = self.file.on_failure.as_ref().map(|program| match program.arguments.len() {
            0 => path(&program.name),
            arguments => format!("{} ({})", path(&program.name), count(arguments, "argument")),
        });
        self.only_in_file(on_failure::KEY, value)
    }

    /// Whether there is a heartbeat URL, which is a secret.
    fn heartbeat_url(&self) -> EffectiveSetting {
        let value = self.file.heartbeat_url.as_ref().map(|_| "set, not shown".to_owned());
        self.only_in_file(heartbeat_url::KEY, value)
    }

    fn only_in_file(&self, key: &str, value: Option<String>) -> EffectiveSetting {
        let line = self.file.valid.lines.get(key);
        let origin = line.and_then(|line| self.line(*line));
        let error = line.and_then(|line| self.fault_at(*line));
        EffectiveSetting { key: key.to_owned(), lineage: None, value, origin, error }
    }

    /// The settings that an entry has of its own, and that neither a flag nor a variable overrides.
    fn entry(&self, entry: &LineageEntry) -> Vec<EffectiveSetting> {
        let values = entry.layer.values();
        let setting = |key: String| {
            let line = *entry.lines.get(&key)?;
            let is_overridden = self.flags.contains_key(&key) || self.environment.contains_key(&key);
            let (value, lineage, error) =
                (text(&values, &key), Some(path(entry.path())), self.fault_at(line));
            let row = EffectiveSetting { key, lineage, value, origin: self.line(line), error };
            (!is_overridden).then_some(row)
        };
        Layer::keys().into_iter().filter_map(setting).collect()
    }

    fn line(&self, line: usize) -> Option<String> {
        Some(format!("{} line {line}", path(self.file.path.as_deref()?)))
    }

    fn fault_at(&self, wanted: usize) -> Option<SettingsError> {
        let is_there =
            |fault: &&SettingsError| matches!(fault, SettingsError::File { line, .. } if *line == wanted);
        self.file.faults.iter().find(is_there).cloned()
    }

    /// A setting is not missing if the file that may hold it is invalid.
    fn missing(&self, error: SettingsError) -> Option<SettingsError> {
        self.file.faults.is_empty().then_some(error)
    }
}

fn of_variable(name: &str) -> String {
    format!("variable {name}")
}

/// A value as a variable would have it, safe to print.
fn text(values: &Map<String, Value>, key: &str) -> Option<String> {
    match values.get(key)? {
        bare @ (Value::Bool(_) | Value::Number(_)) => Some(bare.to_string()),
        // Any text is a path, too.
        value => recorded_path::deserialize(value).ok().map(|value| path(&value)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::settings::parser;

    const FILE: &str = "/etc/edgecert/config.toml";

    /// One line for each setting: key, value or error, origin.
    fn lines(flags: &Layer, variables: &[(&str, &str)], text: &str) -> Vec<String> {
        let env: Env = variables.iter().copied().collect();
        let file = parser::parse(Path::new(FILE), text);
        let line = |setting: EffectiveSetting| {
            let lineage = setting.lineage.map(|lineage| format!("{lineage}: ")).unwrap_or_default();
            let error = setting.error.map(|error| format!("error: {error}"));
            let both: Vec<String> = setting.value.into_iter().chain(error).collect();
            let value = if both.is_empty() { "unset".to_owned() } else { both.join("; ") };
            format!("{lineage}{} = {value} ({})", setting.key, setting.origin.as_deref().unwrap_or("default"))
        };
        effective(flags, None, &env, &file).into_iter().map(line).collect()
    }

    #[test]
    fn every_setting_has_an_origin() {
        let flags = Layer::one("wait", 5.into()).unwrap();
        let variables = [
            ("EDGECERT_WAIT", "7"),
            ("EDGECERT_TIMEOUT", "60"),
            ("EDGECERT_API_KEY", "0123456789"),
            ("STATE_DIRECTORY", "/run/state"),
            ("https_proxy", "http://user:hunter2@proxy.example:3128"),
        ];
        let text = "base_url = 'https://api.example.net'\n\nwait = 9\nrebind = true\n\
                    on_failure = ['mail', '-s', 'hunter2']\nheartbeat_url = 'https://hunter2/'\n\
                    [[lineage]]\npath = '/certs/a'\nverify = 'off'\nwait = 1\n";
        let expected = [
            "config = /etc/edgecert/config.toml (default)",
            "base_url = https://api.example.net (/etc/edgecert/config.toml line 1)",
            "api_key_file = unset (default)",
            "ca_file = the system's trust store (default)",
            "timeout = 60 (variable EDGECERT_TIMEOUT)",
            "state_dir = /run/state (variable STATE_DIRECTORY)",
            "edge_address = the site's cname, port 443 (default)",
            "wait = 5 (flag --wait)",
            "verify = auto (default)",
            "verify_every = 86400 (default)",
            "trust_anchors = a warning, with the system's roots (default)",
            "name = chosen by the service (default)",
            "rebind = true (/etc/edgecert/config.toml line 4)",
            "allow_untrusted = false (default)",
            "skip_unmatched = false (default)",
            "api_key = 10 characters (variable EDGECERT_API_KEY)",
            "proxy = http://proxy.example:3128, with credentials (variable https_proxy)",
            "on_failure = mail (2 arguments) (/etc/edgecert/config.toml line 5)",
            "heartbeat_url = set, not shown (/etc/edgecert/config.toml line 6)",
            "/certs/a: verify = off (/etc/edgecert/config.toml line 9)",
        ];
        assert_eq!(lines(&flags, &variables, text), expected);
    }

    #[test]
    fn invalid_values_are_listed_without_hiding_others() {
        let variables = [("EDGECERT_WAIT", "soon"), ("https_proxy", "socks5://hunter2")];
        let text = "base_url = 'https://api.example.net'\ntimeout = 0\nbasurl = 1\nverify = 'off'\n";
        let found = lines(&Layer::default(), &variables, text);
        let expected = [
            "config = /etc/edgecert/config.toml; error: /etc/edgecert/config.toml:3: unknown key `basurl` (default)",
            "timeout = error: /etc/edgecert/config.toml:2: `timeout`: expected a whole number of seconds above 0 (/etc/edgecert/config.toml line 2)",
            "wait = error: EDGECERT_WAIT: expected a whole number of seconds (variable EDGECERT_WAIT)",
            "verify = off (/etc/edgecert/config.toml line 4)",
        ];
        for expected in expected {
            assert!(found.iter().any(|line| line == expected), "{expected}\n{found:#?}");
        }
        let proxy = found.iter().find(|line| line.starts_with("proxy")).unwrap();
        assert!(proxy.starts_with("proxy = error: https_proxy: ") && !proxy.contains("hunter2"), "{proxy}");
        let broken = lines(&Layer::default(), &[], "wait = \nstate_dir = '/kept'\n");
        assert!(broken.contains(&format!("state_dir = /kept ({FILE} line 2)")), "{broken:#?}");
        assert!(broken.contains(&"base_url = unset (default)".into()), "the file may hold it: {broken:#?}");
    }

    #[test]
    fn api_key_is_a_length_and_a_place() {
        let directory = tempfile::TempDir::new().unwrap();
        let key = directory.path().join("edgecert-api-key");
        fs::write(&key, "hunter2\n").unwrap();
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        let (name, folder) = (key.to_str().unwrap(), directory.path().to_str().unwrap());
        for (key_file, origin) in [(name, "file"), ("", "credential")] {
            let variables = [("EDGECERT_API_KEY_FILE", key_file), ("CREDENTIALS_DIRECTORY", folder)];
            let found = lines(&Layer::default(), &variables, "");
            assert!(found.contains(&format!("api_key = 7 characters ({origin} {name})")), "{found:#?}");
            assert!(!found.join("\n").contains("hunter2"));
        }
    }
}
