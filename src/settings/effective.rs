//! Lists the settings in effect, each with its value and where that comes from.
//!
//! A value is shown as it would be written, but only the length of the API key, a proxy without its credentials, and no
//! invalid value, because it may be a misplaced secret.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::api_key::{self, KeyLocation};
use super::configuration::{self, Origins};
use super::{Layer, Layers, Proxy, SettingsError, default_text, on_failure};
use crate::file::recorded_path;
use crate::text::{count, path};

const STATE_DIRECTORY: &str = "STATE_DIRECTORY";

/// A setting in effect.
#[derive(Clone, Debug)]
pub(crate) struct EffectiveSetting {
    /// Key in the configuration file; also `config` and `api_key`.
    pub(crate) key: String,
    /// The lineage whose `[[lineage]]` entry has the setting; `None` for the whole run.
    pub(crate) lineage: Option<String>,
    /// `None` if it is unset without a default, or invalid.
    pub(crate) value: Option<String>,
    /// The flag, variable, file or line that has it, or `default`.
    pub(crate) origin: String,
    /// Why it is invalid, or missing although it is required.
    pub(crate) error: Option<SettingsError>,
}

impl EffectiveSetting {
    fn new(key: &str, value: Result<Option<String>, SettingsError>, origin: Option<String>) -> Self {
        let (value, error) = value.map_or_else(|error| (None, Some(error)), |value| (value, None));
        let origin = origin.unwrap_or_else(|| "default".to_owned());
        Self { key: key.to_owned(), lineage: None, value, origin, error }
    }
}

/// Lists every setting, then those of `[[lineage]]` entries. `config` is the value of `--config`. Reads the API key,
/// which may be in a pipe.
pub(crate) fn effective(layers: &Layers<'_>, config: Option<&Path>) -> Vec<EffectiveSetting> {
    let (file, keys) = (layers.file, Layer::keys());
    let mut settings: Vec<_> = keys.iter().map(|key| setting(key, layers)).collect();
    settings.push(api_key(layers));
    // There may be a secret among the arguments.
    let program = file.on_failure.as_ref().map(|program| path(&program.name));
    let url = file.heartbeat_url.as_ref().map(|_| "set, not shown".to_owned());
    settings.extend([(on_failure::KEY, program), (configuration::HEARTBEAT_URL, url)].map(|(key, value)| {
        let found = find(key, &file.layer, &file.origins);
        EffectiveSetting { value, ..found.unwrap_or_else(|| EffectiveSetting::new(key, Ok(None), None)) }
    }));
    for entry in &file.lineages {
        // The others are overridden.
        let own = keys.iter().filter(|key| given(key, layers).is_none());
        let own = own.filter_map(|key| find(key, &entry.layer, &entry.origins));
        let lineage = Some(path(entry.path()));
        settings.extend(own.map(|setting| EffectiveSetting { lineage: lineage.clone(), ..setting }));
    }
    for setting in &mut settings {
        setting.error.take_if(|error| file.may_hold(error));
    }
    // The others are shown with their settings, unless a flag or a variable overrides these.
    let is_shown = |fault| settings.iter().any(|setting| setting.error.as_ref() == Some(fault));
    let mut faults = file.faults.iter().chain(layers.unusable().map(|(_, error)| error));
    let error = faults.find(|fault| !is_shown(fault)).cloned();
    let variable = || layers.env.raw(configuration::VARIABLE).map(|_| of_variable(configuration::VARIABLE));
    let origin = config.map(|_| "flag --config".into()).or_else(variable);
    let config = EffectiveSetting::new("config", Ok(file.path.as_deref().map(path)), origin);
    settings.insert(0, EffectiveSetting { error, ..config });
    settings
}

/// A setting of the run.
fn setting(key: &str, layers: &Layers<'_>) -> EffectiveSetting {
    let found = given(key, layers).or_else(|| find(key, &layers.file.layer, &layers.file.origins));
    found.unwrap_or_else(|| {
        let (value, variable) = match key {
            "base_url" => (Err(SettingsError::no_base_url()), None),
            "proxy" => match layers.base_url().map(|url| Proxy::find(&url.0, None, layers.env)) {
                Ok(Ok(Some(proxy))) => (Ok(Some(proxy.text())), proxy.variable),
                Ok(Err(error)) => (Err(error), None),
                Ok(Ok(None)) | Err(_) => (Ok(None), None),
            },
            "state_dir" => {
                let variable = layers.env.raw(STATE_DIRECTORY).map(|_| STATE_DIRECTORY);
                (Ok(layers.state_dir().as_deref().map(path)), variable)
            }
            _ => (Ok(default_text(key)), None),
        };
        EffectiveSetting::new(key, value, variable.map(of_variable))
    })
}

/// A setting from a flag or a variable.
fn given(key: &str, layers: &Layers<'_>) -> Option<EffectiveSetting> {
    match text(key, layers.flags) {
        None => find(key, &layers.given, &layers.origins),
        flag => Some(EffectiveSetting::new(key, Ok(flag), Some(format!("flag --{}", key.replace('_', "-"))))),
    }
}

/// A setting from variables or a table of the file.
fn find(key: &str, layer: &Layer, origins: &Origins) -> Option<EffectiveSetting> {
    let origin = origins.get(key)?;
    let value = origin.error.clone().map_or_else(|| Ok(text(key, layer)), Err);
    Some(EffectiveSetting::new(key, value, Some(origin.place.clone())))
}

fn api_key(layers: &Layers<'_>) -> EffectiveSetting {
    let key = layers.api_key().map(|key| Some(count(key.expose().chars().count(), "character")));
    let location = layers.key_location(&Layer::default(), None).ok();
    let origin = location.map(|location| match location {
        KeyLocation::File(file) => format!("file {}", path(&file)),
        KeyLocation::Variable => of_variable(api_key::VARIABLE),
        KeyLocation::Credential(file) => format!("credential {}", path(&file)),
    });
    EffectiveSetting::new("api_key", key, origin)
}

fn of_variable(name: &str) -> String {
    format!("variable {name}")
}

/// A value as a variable would have it, safe to print.
fn text(key: &str, layer: &Layer) -> Option<String> {
    match layer.values().get(key)? {
        bare @ (Value::Bool(_) | Value::Number(_)) => Some(bare.to_string()),
        // Any text is a path, too.
        value => recorded_path::deserialize(value).ok().map(|value: PathBuf| path(&value)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::env::Env;
    use crate::settings::configuration::parse;

    const FILE: &str = "/etc/edgecert/config.toml";

    /// One line for each setting: key, value or error, origin.
    fn lines(flags: &Layer, variables: &[(&str, &str)], text: &str) -> Vec<String> {
        let env: Env = variables.iter().copied().collect();
        let file = parse(Path::new(FILE), text);
        let line = |setting: EffectiveSetting| {
            let lineage = setting.lineage.map(|lineage| format!("{lineage}: ")).unwrap_or_default();
            let error = setting.error.map(|error| format!("error: {error}"));
            let both: Vec<String> = setting.value.into_iter().chain(error).collect();
            let value = if both.is_empty() { "unset".to_owned() } else { both.join("; ") };
            format!("{lineage}{} = {value} ({})", setting.key, setting.origin)
        };
        effective(&Layers::new(flags, &env, &file), None).into_iter().map(line).collect()
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
            "proxy = http://proxy.example:3128, with credentials (variable https_proxy)",
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
            "on_failure = mail (/etc/edgecert/config.toml line 5)",
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
    fn overridden_faults_are_shown_with_the_file() {
        let flags = Layer::one("wait", 5.into()).unwrap();
        let rows = [
            ("", "wait = 'soon'\n", "error: /etc/edgecert/config.toml:1: `wait`: "),
            ("", "[[lineage]]\nwait = 'soon'\n", "error: /etc/edgecert/config.toml:2: `wait`: "),
            ("soon", "", "error: EDGECERT_WAIT: "),
        ];
        for (variable, text, expected) in rows {
            let variables = [("EDGECERT_WAIT", variable)];
            let config = lines(&flags, &variables, text).swap_remove(0);
            assert!(config.starts_with("config = ") && config.contains(expected), "{config}");
        }
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
