//! All settings, each a field with its documentation. Flags, variables, keys of the file and state files follow from it.
//!
//! The doc comments are the help. The structs have none: clap would take it for the summary of every command that has
//! these flags.

#![expect(clippy::doc_markdown, reason = "help is plain text")]

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, Command, ValueHint};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::trust_anchors::is_keyword;
use super::value::{parse_switch, quiet, switch, verify};
use super::{BaseUrl, EdgeAddresses, ProxySetting, RecordName, Seconds, Verify};
use crate::file::recorded_path::{self, serialize as as_path};

const HEADING: &str = "Settings (flag, variable or file)";

// All that `certs` and `sites` take.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[group(skip)]
#[command(next_help_heading = HEADING)]
#[serde(default)]
#[allow(rustdoc::bare_urls, reason = "help is plain text")]
pub(crate) struct Connection {
    /// Base URL of the service, for example https://api.example.net [env: EDGECERT_BASE_URL]
    #[arg(long, value_name = "URL", value_parser = quiet::<BaseUrl>())]
    #[serde(deserialize_with = "text", serialize_with = "as_text", skip_serializing_if = "Option::is_none")]
    pub(crate) base_url: Option<BaseUrl>,
    /// File that holds the API key; EDGECERT_API_KEY holds the key itself [env: EDGECERT_API_KEY_FILE]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[serde(deserialize_with = "path", serialize_with = "as_path", skip_serializing_if = "Option::is_none")]
    pub(crate) api_key_file: Option<PathBuf>,
    /// CA certificates to trust for requests to the service [default: the system's trust store] [env: EDGECERT_CA_FILE]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[serde(deserialize_with = "path", serialize_with = "as_path", skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Proxy for requests to the service, without credentials; `off` uses none [default: the variables that curl reads]
    /// [env: EDGECERT_PROXY]
    #[arg(long, value_name = "URL", value_parser = quiet::<ProxySetting>())]
    #[serde(deserialize_with = "text", serialize_with = "as_text", skip_serializing_if = "Option::is_none")]
    pub(crate) proxy: Option<ProxySetting>,
    /// Deadline for the whole run [default: 90] [env: EDGECERT_TIMEOUT]
    #[arg(long, value_name = "SECS", value_parser = quiet::<Seconds<1>>(), allow_negative_numbers = true)]
    #[serde(deserialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<Seconds<1>>,
}

// All that `status` takes.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[group(skip)]
#[command(next_help_heading = HEADING)]
#[serde(default)]
pub(crate) struct Local {
    /// Directory of the state files [env: EDGECERT_STATE_DIR]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[serde(deserialize_with = "path", serialize_with = "as_path", skip_serializing_if = "Option::is_none")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Edges to verify, separated by commas [default: the site's cname, port 443] [env: EDGECERT_EDGE_ADDRESS]
    #[arg(long, value_name = "HOST:PORT", value_parser = quiet::<EdgeAddresses>())]
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub(crate) edge_address: Option<EdgeAddresses>,
}

// The settings from one source; `None` if unset there.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[group(skip)]
#[command(next_help_heading = HEADING)]
#[serde(default)]
pub(crate) struct Layer {
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) connection: Connection,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) local: Local,
    /// Wait up to SECS for the edge to serve the certificate; 0 does not wait [default: 30] [env: EDGECERT_WAIT]
    #[arg(long, value_name = "SECS", value_parser = quiet::<Seconds>(), allow_negative_numbers = true)]
    #[serde(deserialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub(crate) wait: Option<Seconds>,
    /// Verify the result by TLS handshakes with the edge [default: auto] [env: EDGECERT_VERIFY]
    #[arg(long, value_name = "MODE", value_parser = verify())]
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub(crate) verify: Option<Verify>,
    /// How often `sync` checks what the edge serves for an unchanged lineage; 0 disables the check [default: 86400]
    /// [env: EDGECERT_VERIFY_EVERY]
    #[arg(long, value_name = "SECS", value_parser = quiet::<Seconds>(), allow_negative_numbers = true)]
    #[serde(deserialize_with = "number", skip_serializing_if = "Option::is_none")]
    pub(crate) verify_every: Option<Seconds>,
    /// Refuse chains that do not lead to a root in FILE, or of the system if it is `system`; `off` disables the check
    /// [default: a warning, with the system's roots] [env: EDGECERT_TRUST_ANCHORS]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[serde(deserialize_with = "path", serialize_with = "as_path", skip_serializing_if = "Option::is_none")]
    pub(crate) trust_anchors: Option<PathBuf>,
    /// Name of the records in the service [default: chosen by the service] [env: EDGECERT_NAME]
    #[arg(long, value_name = "NAME", value_parser = quiet::<RecordName>())]
    #[serde(deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<RecordName>,
    /// Rebind covered sites that are bound to another record [env: EDGECERT_REBIND]
    #[arg(long, value_name = "BOOL", value_parser = switch(), num_args = 0..=1,
        require_equals = true, default_missing_value = "yes")]
    #[serde(deserialize_with = "yes_or_no", skip_serializing_if = "Option::is_none")]
    pub(crate) rebind: Option<bool>,
    /// Allow certificates from test, staging and self-signed issuers [env: EDGECERT_ALLOW_UNTRUSTED]
    #[arg(long, value_name = "BOOL", value_parser = switch(), num_args = 0..=1,
        require_equals = true, default_missing_value = "yes")]
    #[serde(deserialize_with = "yes_or_no", skip_serializing_if = "Option::is_none")]
    pub(crate) allow_untrusted: Option<bool>,
    /// Succeed if no site is covered [env: EDGECERT_SKIP_UNMATCHED]
    #[arg(long, value_name = "BOOL", value_parser = switch(), num_args = 0..=1,
        require_equals = true, default_missing_value = "yes")]
    #[serde(deserialize_with = "yes_or_no", skip_serializing_if = "Option::is_none")]
    pub(crate) skip_unmatched: Option<bool>,
}

// Guards that a run overrides, for the certificate of that run only. No doc comment: clap would take it for the summary
// of every command that has these flags.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[group(skip)]
#[command(next_help_heading = "Guard overrides")]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "four separate guards")]
pub(crate) struct Guards {
    /// Replace a record even if another site bound to it loses coverage
    #[arg(long)]
    pub(crate) allow_shrink: bool,
    /// Replace a certificate that was issued later than this one
    #[arg(long)]
    pub(crate) allow_older: bool,
    /// Replace a record that the service issues and renews itself (type lets)
    #[arg(long)]
    pub(crate) replace_lets: bool,
    /// Replace a record even if the service's listing is incomplete; other sites may lose coverage
    #[arg(long)]
    pub(crate) allow_partial: bool,
}

impl Layer {
    /// Reads one setting. A key that is unknown sets nothing.
    pub(super) fn one(key: &str, value: Value) -> Result<Self, serde_json::Error> {
        serde_json::from_value(Value::Object(Map::from_iter([(key.to_owned(), value)])))
    }

    /// The keys of all settings, in the order of the help.
    pub(super) fn keys() -> Vec<String> {
        Self::augment_args(Command::new("")).get_arguments().map(|flag| flag.get_id().to_string()).collect()
    }

    /// The settings that are set, as state files have them.
    pub(super) fn values(&self) -> Map<String, Value> {
        serde_json::to_value(self).ok().and_then(|values| values.as_object().cloned()).unwrap_or_default()
    }

    /// Resolves the paths against a directory.
    pub(super) fn relative_to(mut self, directory: &Path) -> Self {
        let Connection { api_key_file, ca_file, .. } = &mut self.connection;
        let anchors = self.trust_anchors.as_mut().filter(|value| !is_keyword(value));
        let paths = [api_key_file.as_mut(), ca_file.as_mut(), self.local.state_dir.as_mut(), anchors];
        for path in paths.into_iter().flatten() {
            *path = directory.join(&path);
        }
        self
    }

    /// Fills unset settings from a layer of lower priority.
    pub(crate) fn or(&self, lower: &Self) -> Self {
        let mut values = lower.values();
        values.extend(self.values());
        serde_json::from_value(Value::Object(values)).unwrap_or_else(|_| self.clone())
    }
}

/// The environment variable of a setting, such as `EDGECERT_BASE_URL`.
pub(super) fn variable(key: &str) -> String {
    format!("EDGECERT_{}", key.to_ascii_uppercase())
}

/// Reads text; anything else is as invalid as empty text. serde's own errors would repeat the value.
pub(super) fn text<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    let value = Value::deserialize(from)?;
    value.as_str().unwrap_or_default().trim().parse().map(Some).map_err(D::Error::custom)
}

/// Reads a number, in quotes or not.
fn number<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    bare(from)?.parse().map(Some).map_err(D::Error::custom)
}

fn yes_or_no<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    parse_switch(&bare(from)?).map(Some).map_err(D::Error::custom)
}

/// The text of a value that needs no quotes.
fn bare<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => text.trim().to_owned(),
        bare @ (Value::Number(_) | Value::Bool(_)) => bare.to_string(),
        _ => String::new(),
    })
}

#[expect(clippy::ref_option, reason = "serde passes the field")]
fn as_text<T: Display, S: Serializer>(value: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
    value.as_ref().map(ToString::to_string).serialize(to)
}

/// Reads a path as it is: it may be any bytes, with blanks at the ends.
pub(super) fn path<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
    let path = recorded_path::deserialize(from).ok().filter(|path: &PathBuf| !path.as_os_str().is_empty());
    path.map(Some).ok_or_else(|| D::Error::custom("expected a path in quotes"))
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;
    use serde_json::json;

    use super::*;
    use crate::env::Env;
    use crate::settings::configuration::{Configuration, parse as parse_file};
    use crate::settings::{Layers, default_text};

    /// Each setting with two spellings of a value, and how it is recorded.
    const ROWS: [(&str, &str, &str, &str); 15] = [
        ("base_url", "https://a.example", " https://a.example/ ", "https://a.example"),
        ("api_key_file", "/key", "/./key", "/key"),
        ("ca_file", "/ca.pem", "/./ca.pem", "/ca.pem"),
        ("proxy", "http://proxy.example:1080", " proxy.example", "http://proxy.example:1080"),
        ("timeout", "60", " 060 ", "60"),
        ("state_dir", "/state", "/./state", "/state"),
        ("edge_address", "a.example:1,[::1]:2", " a.example:1 , [::1]:2", "a.example:1,[::1]:2"),
        ("wait", "0", "00", "0"),
        ("verify", "require", " REQUIRE", "require"),
        ("verify_every", "60", "060 ", "60"),
        ("trust_anchors", "system", "system", "system"),
        ("name", "two words", " two words ", "two words"),
        ("rebind", "yes", "ON", "true"),
        ("allow_untrusted", "no", "0", "false"),
        ("skip_unmatched", "1", " True ", "true"),
    ];

    const SECONDS: [&str; 5] = ["abc", "-1", "1.5", "99999999999999999999", "30 s"];
    const POSITIVE: [&str; 6] = ["0", "abc", "-1", "1.5", "99999999999999999999", "30 s"];
    const URLS: [&str; 7] = [
        "api.example.net",
        "ftp://api.example.net",
        "http://api.example.net",
        "https://api.example.net:70000",
        "https://api.example.net:0",
        "https://api .example.net",
        "https://",
    ];
    const ADDRESSES: [&str; 6] = [
        "edge.example",
        "edge.example:",
        "edge.example:0",
        "edge.example:70000",
        "edge.example: 443",
        "edge.example:443,",
    ];
    const SWITCHES: [&str; 4] = ["perhaps", "2", "-1", "yes no"];

    /// Every setting, with texts that it refuses; the others take any. No setting takes empty text.
    const WRONG: [(&str, &[&str]); 15] = [
        ("base_url", &URLS),
        ("api_key_file", &[]),
        ("ca_file", &[]),
        ("proxy", &["socks5://proxy.example", "http://proxy.example:0"]),
        ("timeout", &POSITIVE),
        ("state_dir", &[]),
        ("edge_address", &ADDRESSES),
        ("wait", &SECONDS),
        ("verify", &["perhaps", "1"]),
        ("verify_every", &SECONDS),
        ("trust_anchors", &[]),
        ("name", &[]),
        ("rebind", &SWITCHES),
        ("allow_untrusted", &SWITCHES),
        ("skip_unmatched", &SWITCHES),
    ];

    fn from_flag(key: &str, value: &str) -> Result<Layer, clap::Error> {
        let flag = format!("--{}={value}", key.replace('_', "-"));
        let matches = Layer::augment_args(Command::new("x")).try_get_matches_from(["x", &flag])?;
        Layer::from_arg_matches(&matches)
    }

    fn from_variable(key: &str, value: &str) -> Layer {
        let (name, configuration) = (variable(key), Configuration::default());
        let env: Env = [(&*name, value)].into_iter().collect();
        Layers::new(&Layer::default(), &env, &configuration).given
    }

    fn from_file(text: &str) -> Configuration {
        parse_file(Path::new("/etc/edgecert/config.toml"), text)
    }

    #[test]
    fn each_setting_reads_alike_everywhere() {
        assert_eq!(ROWS.map(|row| row.0).to_vec(), Layer::keys());
        for (key, value, other, recorded) in ROWS {
            let expected = from_flag(key, value).unwrap();
            assert_ne!(expected, Layer::default(), "{key}");
            for value in [value, other] {
                let line = format!("{key} = {value:?}\n");
                assert_eq!(from_flag(key, value).unwrap(), expected, "{key}");
                assert_eq!(from_variable(key, value), expected, "{key}");
                assert_eq!(from_file(&line).layer, expected, "{key}");
                if key != "state_dir" {
                    let entry = from_file(&format!("[[lineage]]\npath = '/a'\n{line}"));
                    assert_eq!(entry.lineages[0].layer, expected, "{key}");
                }
            }
            // Numbers and switches are bare.
            let recorded = serde_json::from_str(recorded).unwrap_or(json!(recorded));
            let json = serde_json::to_value(&expected).unwrap();
            assert_eq!(json, json!({key: recorded}));
            assert_eq!(serde_json::from_value::<Layer>(json).unwrap(), expected, "{key}");
        }
        for (word, expected) in [("TRUE", true), ("1", true), ("No", false), ("off", false), ("false", false)]
        {
            assert_eq!(from_variable("rebind", word).rebind, Some(expected), "{word}");
        }
        let bare = from_file("timeout = 0x3C\nrebind = 1\nskip_unmatched = true\n").layer;
        let (timeout, yes) = ("60".parse().ok(), Some(true));
        let connection = Connection { timeout, ..Connection::default() };
        assert_eq!(bare, Layer { connection, rebind: yes, skip_unmatched: yes, ..Layer::default() });
    }

    #[test]
    fn upper_layer_wins() {
        let all = |of: fn(&(&'static str, &'static str, &'static str, &'static str)) -> &'static str| {
            let values = ROWS.iter().map(|row| (row.0.to_owned(), json!(of(row))));
            serde_json::from_value::<Layer>(values.collect()).unwrap()
        };
        let (empty, full) = (Layer::default(), all(|row| row.1));
        assert_eq!(full.values().len(), ROWS.len());
        assert_eq!(empty.or(&full), full);
        for (key, value, ..) in ROWS {
            let upper = Layer::one(key, json!(value)).unwrap();
            assert_eq!(upper.or(&empty), upper);
            assert_eq!(upper.or(&full), full, "{key}");
        }
    }

    /// Checks that an error names the origin and not the value. Short words are in the description of a valid one, too.
    #[track_caller]
    fn assert_hides(error: &str, origin: &str, value: &str) {
        assert!(error.contains(origin), "{origin:?} is not in {error}");
        let rest = error.replace("https://HOST", "");
        assert!(value.len() < 4 || !rest.contains(value), "{value:?} is in {error}");
    }

    #[test]
    fn wrong_values_are_refused_everywhere() {
        for (key, values) in WRONG {
            let (flag, variable) = (key.replace('_', "-"), variable(key));
            let origin = format!("'--{flag}");
            assert!(from_flag(key, "").unwrap_err().to_string().contains(&origin), "{key}");
            for value in values {
                assert_hides(&from_flag(key, value).unwrap_err().to_string(), &origin, value);
                let env: Env = [(&*variable, *value)].into_iter().collect();
                let (flags, file) = (Layer::default(), Configuration::default());
                let error = Layers::new(&flags, &env, &file).require_valid().unwrap_err();
                assert_hides(&error.to_string(), &format!("{variable}: "), value);
            }
            let bare = values.iter().filter(|value| value.parse::<f64>().is_ok());
            let bare = bare.map(|value| (*value).to_owned()).chain([
                "\"\"".into(),
                "[]".into(),
                "1.5".into(),
                "{ Unix = [47] }".into(),
            ]);
            for value in values.iter().map(|value| format!("{value:?}")).chain(bare) {
                let file = parse_file(Path::new("/config.toml"), &format!("\n{key} = {value}\n"));
                let error = file.require_valid().err().unwrap().to_string();
                assert_hides(&error, &format!("/config.toml:2: `{key}`: "), value.trim_matches('"'));
            }
        }
        assert_eq!(WRONG.map(|row| row.0).to_vec(), Layer::keys());
    }

    #[test]
    fn negative_number_is_a_value() {
        for flag in ["--wait", "--timeout", "--verify-every"] {
            let parsed = Layer::augment_args(Command::new("x")).try_get_matches_from(["x", flag, "-1"]);
            assert_hides(&parsed.unwrap_err().to_string(), &format!("invalid value for '{flag} <SECS>'"), "");
        }
    }

    #[test]
    fn help_names_variable_and_default() {
        for flag in Layer::augment_args(Command::new("")).get_arguments() {
            let (key, help) = (flag.get_id().as_str(), flag.get_help().unwrap().to_string());
            assert!(help.ends_with(&format!(" [env: {}]", variable(key))), "{help}");
            let default = default_text(key).filter(|default| default != "false");
            assert_eq!(
                help.split_once("[default: ").map(|found| found.1.split_once(']').unwrap().0),
                default.as_deref()
            );
        }
    }
}
