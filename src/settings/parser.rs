//! Parses the configuration file.
//!
//! An error names file, line and key and never repeats the line: a secret may be in it by mistake.

use std::collections::HashMap;
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};

use glob::Pattern;
use serde::Deserialize as _;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::configuration::{Fault, Origin, Origins};
use super::layer::Layer;
use super::{
    Configuration, Connection, HeartbeatUrl, LineageEntry, Location, Program, SettingsError, damaged,
    heartbeat_url, on_failure,
};
use crate::names::{Domain, NotADomain};
use crate::text::{self, sanitize};

/// Keys of the file other than settings.
const GLOBAL_KEYS: &[&str] = &[on_failure::KEY, heartbeat_url::KEY, "lineage"];
/// The setting that is read even if the rest of the file is invalid.
const STATE_DIR: &str = "state_dir";
/// Keys of a `[[lineage]]` other than settings.
const LINEAGE_KEYS: &[&str] = &["path", "cert", "key", "domains"];
const SINGLE_BRACKETS: &str = "expected `[[lineage]]`, in double brackets";

/// Parses the text.
pub(super) fn parse(path: &Path, text: &str) -> Configuration {
    let starts_of_lines = text.match_indices('\n').map(|(offset, _)| offset + 1).collect();
    let mut parser = Parser { path, starts_of_lines, settings: Layer::keys(), faults: Vec::new() };
    let table = DeTable::parse(text).map_or_else(
        |error| {
            parser.faults.push(parser.syntax_fault(text, &error));
            damaged::read(text, &[on_failure::KEY, heartbeat_url::KEY, STATE_DIR])
        },
        Spanned::into_inner,
    );
    let (layer, mut origins) = parser.settings(&table, GLOBAL_KEYS, &[]);
    let read = |value: &DeValue<'_>| Program::from_toml(value, path);
    let on_failure = parser.setting(&table, on_failure::KEY, read, &mut origins);
    let read = HeartbeatUrl::from_toml;
    let heartbeat_url = parser.setting(&table, heartbeat_url::KEY, read, &mut origins);
    let mut lineages = parser.lineages(&table);
    tell_apart(&mut lineages, &layer.connection);
    let mut faults = parser.faults;
    faults.sort_by_key(|fault| fault.offset);
    Configuration { path: Some(path.to_owned()), layer, origins, lineages, on_failure, heartbeat_url, faults }
}

/// The directory that paths in a file are relative to.
fn directory(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

/// Collects the faults of a file.
struct Parser<'a> {
    path: &'a Path,
    /// Offsets of all lines but the first.
    starts_of_lines: Vec<usize>,
    /// The keys of all settings.
    settings: Vec<String>,
    faults: Vec<Fault>,
}

impl Parser<'_> {
    /// Reads the settings of a table, and reports keys that are neither settings nor `others`.
    fn settings(&mut self, table: &DeTable<'_>, others: &[&str], refused: &[&str]) -> (Layer, Origins) {
        let (mut layer, mut origins) = (Layer::default(), Origins::new());
        for name in table.keys() {
            let key = name.get_ref().as_ref();
            if others.contains(&key) {
                continue;
            }
            let is_known = |known: &&String| !refused.contains(&known.as_str());
            if self.settings.iter().filter(is_known).any(|known| known == key) {
                let read = |value: &DeValue<'_>| Layer::one(key, recorded(value));
                layer = layer.or(self.setting(table, key, read, &mut origins).unwrap_or_default());
                continue;
            }
            let known =
                self.settings.iter().filter(is_known).map(String::as_str).chain(others.iter().copied());
            let hint = match key {
                "api_key" => "write the key to a file of its own and set `api_key_file`".to_owned(),
                _ => format!("known keys: {}", known.collect::<Vec<_>>().join(", ")),
            };
            let fault = self.fault(name.span(), format_args!("unknown key `{}`", sanitize(key)));
            self.faults.push(Fault { error: fault.error.hint(hint), ..fault });
        }
        (layer.relative_to(directory(self.path)), origins)
    }

    /// Reads a setting with its origin.
    fn setting<T, E: Display>(
        &mut self,
        table: &DeTable<'_>,
        key: &str,
        read: impl FnOnce(&DeValue<'_>) -> Result<T, E>,
        origins: &mut Origins,
    ) -> Option<T> {
        let value = table.get(key)?;
        let place = format!("{} line {}", text::path(self.path), self.line(value.span().start));
        let (setting, error) = match read(value.get_ref()) {
            Ok(setting) => (Some(setting), None),
            Err(reason) => {
                let fault = self.invalid(value.span(), key, reason);
                let error = fault.error.clone();
                self.faults.push(Fault { is_of_setting: true, ..fault });
                (None, Some(error))
            }
        };
        origins.insert(key.to_owned(), Origin { place, error });
        setting
    }

    fn lineages(&mut self, table: &DeTable<'_>) -> Vec<LineageEntry> {
        match table.get("lineage").map(|value| (value.span(), value.get_ref())) {
            Some((_, DeValue::Array(entries))) => {
                entries.iter().filter_map(|entry| self.entry(entry)).collect()
            }
            Some((span, _)) => {
                self.faults.push(self.fault(span, SINGLE_BRACKETS));
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    fn entry(&mut self, entry: &Spanned<DeValue<'_>>) -> Option<LineageEntry> {
        let DeValue::Table(table) = entry.get_ref() else {
            self.faults.push(self.fault(entry.span(), SINGLE_BRACKETS));
            return None;
        };
        let faults = self.faults.len();
        let (layer, origins) = self.settings(table, LINEAGE_KEYS, &[STATE_DIR]);
        let domains = self.domains(table);
        let [path, cert, key] = ["path", "cert", "key"].map(|name| self.file_path(table, name));
        let location = match (path, cert, key) {
            (Some(path), None, None) => self.directory_or_pattern(path, table)?,
            (None, Some(cert), Some(key)) => Location::Files { cert, key },
            _ => {
                // A misspelled key or a wrong type is the more useful error.
                if self.faults.len() == faults {
                    let message = "a `[[lineage]]` needs either `path`, or `cert` and `key`";
                    self.faults.push(self.fault(entry.span(), message));
                }
                return None;
            }
        };
        Some(LineageEntry { location, account: None, target: None, domains, layer, origins })
    }

    /// A path that exists is not a pattern: acme.sh names directories after wildcards. Neither is the part of the path
    /// that leads to the configuration file.
    fn directory_or_pattern(&mut self, path: PathBuf, table: &DeTable<'_>) -> Option<Location> {
        let fixed = directory(self.path);
        let (fixed, rest) = match path.strip_prefix(fixed) {
            Ok(rest) if fixed.is_absolute() => (fixed.to_str(), rest),
            _ => (Some(""), path.as_path()),
        };
        let (Some(fixed), Some(rest)) = (fixed, rest.to_str()) else {
            return Some(Location::Directory(path));
        };
        if !rest.contains(['*', '?', '[']) || path.symlink_metadata().is_ok() {
            return Some(Location::Directory(path));
        }
        let text = Path::new(&Pattern::escape(fixed)).join(rest);
        let pattern = if rest.contains("**") {
            // A walk would follow links without end.
            Err("`**` is not supported; write a `*` for each level".to_owned())
        } else {
            Pattern::new(&text.to_string_lossy()).map_err(|error| format!("not a pattern: {}", error.msg))
        };
        self.check(table, "path", pattern).map(Location::Pattern)
    }

    fn domains(&mut self, table: &DeTable<'_>) -> Vec<Domain> {
        const EXPECTED: &str = "expected a list of domain names";
        let Some(value) = table.get("domains") else { return Vec::new() };
        let Some(names) = value.get_ref().as_array() else {
            self.faults.push(self.invalid(value.span(), "domains", EXPECTED));
            return Vec::new();
        };
        let mut domains = Vec::new();
        for name in names {
            match name.get_ref().as_str().map(str::parse) {
                Some(Ok(domain)) => domains.push(domain),
                Some(Err(NotADomain)) => self.faults.push(self.invalid(name.span(), "domains", NotADomain)),
                None => self.faults.push(self.invalid(name.span(), "domains", EXPECTED)),
            }
        }
        domains
    }

    /// Reads a path that is not a setting.
    fn file_path(&mut self, table: &DeTable<'_>, key: &'static str) -> Option<PathBuf> {
        let path = table.get(key)?.get_ref().as_str().filter(|path| !path.is_empty());
        let path = path.map(|path| directory(self.path).join(path));
        self.check(table, key, path.ok_or("expected a path in quotes"))
    }

    /// Returns a checked value, or reports why it is invalid.
    fn check<T>(&mut self, table: &DeTable<'_>, key: &str, checked: Result<T, impl Display>) -> Option<T> {
        let span = table.get(key).map(Spanned::span).unwrap_or_default();
        checked.map_err(|reason| self.faults.push(self.invalid(span, key, reason))).ok()
    }

    fn invalid(&self, span: Range<usize>, key: &str, reason: impl Display) -> Fault {
        self.fault(span, format_args!("`{key}`: {reason}"))
    }

    /// A TOML syntax error, with the key of the line if it has one.
    fn syntax_fault(&self, text: &str, error: &toml::de::Error) -> Fault {
        let span = error.span().unwrap_or_default();
        let line = text.lines().nth(self.line(span.start) - 1).unwrap_or_default();
        let key = line.split_once('=').map(|(key, _)| format!("`{}`: ", sanitize(key))).unwrap_or_default();
        self.fault(span, format_args!("{key}{}", error.message().lines().next().unwrap_or_default()))
    }

    fn fault(&self, span: Range<usize>, message: impl Display) -> Fault {
        let (file, line) = (text::path(self.path), self.line(span.start));
        let error = SettingsError::new(format_args!("{file}:{line}: {message}"));
        Fault { offset: span.start, error, is_of_setting: false }
    }

    fn line(&self, offset: usize) -> usize {
        self.starts_of_lines.partition_point(|start| *start <= offset) + 1
    }
}

/// Names the account of each entry that has its own, and numbers further entries for one lineage and account that
/// name other sites. Without a difference the first entry counts.
fn tell_apart(entries: &mut [LineageEntry], global: &Connection) {
    let mut known: HashMap<(PathBuf, Option<String>), Vec<Vec<Domain>>> = HashMap::new();
    for entry in entries {
        let LineageEntry { layer, domains, .. } = &*entry;
        let own = &layer.connection;
        let base_url = own.base_url.as_ref().filter(|own| global.base_url.as_ref() != Some(own));
        let key = own.api_key_file.as_ref().filter(|own| global.api_key_file.as_ref() != Some(own));
        let parts = [base_url.map(ToString::to_string), key.map(|path| text::path(&tidy(path)))];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let account = (!parts.is_empty()).then(|| parts.join(" "));
        let mut target = account.clone();
        let sites = known.entry((tidy(entry.path()), account.clone())).or_default();
        if !sites.contains(domains) {
            sites.push(domains.clone());
            if sites.len() > 1 {
                let number = format!("#{}", sites.len());
                target = Some(target.map_or(number.clone(), |account| format!("{account} {number}")));
            }
        }
        (entry.account, entry.target) = (account, target);
    }
}

/// A path without `.` and repeated slashes, so that its spelling does not matter. Links stay: what they lead to changes.
fn tidy(path: &Path) -> PathBuf {
    path.components().collect()
}

/// A value as state files have it; null if they cannot, or only a path of any bytes is spelled like it.
fn recorded(value: &DeValue<'_>) -> Value {
    if matches!(value, DeValue::Table(_)) {
        return Value::Null;
    }
    let value = ValueDeserializer::from(Spanned::new(0..0, value.clone()));
    Value::deserialize(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::TrustAnchors;

    const FILE: &str = "/etc/edgecert/config.toml";

    #[test]
    fn every_fault_has_its_line() {
        let text = "name = \"\u{fc}\"\n[[lineage]]\n\na = 1\nb = 2\n[[lineage]]\nc = 3\n";
        let faults = parse(Path::new(FILE), text).faults;
        let lines: Vec<String> =
            faults.iter().map(|fault| fault.error.to_string()[FILE.len()..].to_owned()).collect();
        let starts: Vec<&str> = lines.iter().map(|line| &line[..3]).collect();
        assert_eq!(starts, [":4:", ":5:", ":7:"], "{lines:?}");
    }

    fn error(text: &str) -> String {
        parse(Path::new(FILE), text).require_valid().err().unwrap().to_string()
    }

    #[test]
    fn error_names_line_and_key() {
        let rows = [
            (
                "base_url = \"x.y\"\nbasurl = \"secret\"\n",
                "1: `base_url`: expected a URL such as https://HOST",
            ),
            ("wait = 1\nbasurl = \"secret\"\n", "2: unknown key `basurl`"),
            (
                "\nbase_url = \"http://a.example\"\n",
                "2: `base_url`: expected https: plain http is for loopback addresses only, because requests contain the private key",
            ),
            ("edge_address = \"secret_0123456789\"\n", "1: `edge_address`: expected HOST:PORT"),
            ("[lineage]\npath = \"a\"\n", "1: expected `[[lineage]]`, in double brackets"),
            ("lineage = [1]\n", "1: expected `[[lineage]]`, in double brackets"),
            ("api_key = \"secret\"\n", "1: unknown key `api_key`"),
            ("\ntimeout = \"soon\"\n", "2: `timeout`: expected a whole number of seconds above 0"),
            ("timeout = -1\n", "1: `timeout`: expected a whole number of seconds above 0"),
            ("timeout = 0\n", "1: `timeout`: expected a whole number of seconds above 0"),
            ("wait = -1\n", "1: `wait`: expected a whole number of seconds"),
            ("verify = 'on'\n", "1: `verify`: expected auto, require or off"),
            ("verify_every = \"1h\"\n", "1: `verify_every`: expected a whole number of seconds"),
            ("trust_anchors = true\n", "1: `trust_anchors`: expected a path, \"system\" or \"off\""),
            ("ca_file = 1\n", "1: `ca_file`: expected a path in quotes"),
            ("state_dir = \"\"\n", "1: `state_dir`: expected a path in quotes"),
            (
                "[[lineage]]\npath = \"a\"\nrebind = 2\n",
                "3: `rebind`: expected yes or no, true or false, on or off, 1 or 0",
            ),
            ("[[lineage]]\npath = \"a\"\nstate_dir = \"b\"\n", "3: unknown key `state_dir`"),
            ("[[lineage]]\npath = \"a\"\nname = 1\n", "3: `name`: expected text without control characters"),
            ("[[lineage]]\npth = \"a\"\n", "2: unknown key `pth`"),
            ("[[lineage]]\npath = 1\n", "2: `path`: expected a path in quotes"),
            ("\n[[lineage]]\nname = \"x\"\n", "2: a `[[lineage]]` needs either `path`, or `cert` and `key`"),
            ("[[lineage]]\npath = \"a\"\ndomains = [\"a\",\n\"b c\"]\n", "4: `domains`: not a domain name"),
            ("[[lineage]]\npath = \"a\"\ndomains = \"a\"\n", "3: `domains`: expected a list of domain names"),
            ("\non_failure = []\n", "2: `on_failure`: it names no program"),
            ("on_failure = [\"\"]\n", "1: `on_failure`: it names no program"),
            (
                "on_failure = \"secret\"\n",
                "1: `on_failure`: expected a list of strings: the program and its arguments",
            ),
            (
                "on_failure = [\n\"mail\",\n1]\n",
                "1: `on_failure`: expected a list of strings: the program and its arguments",
            ),
            ("[[lineage]]\npath = \"a\"\non_failure = [\"mail\"]\n", "3: unknown key `on_failure`"),
        ];
        for (text, expected) in rows {
            assert_eq!(error(text), format!("{FILE}:{expected}"));
        }
    }

    #[test]
    fn pattern_has_to_be_valid() {
        for (pattern, reason) in [
            ("a/[", "not a pattern: invalid range pattern"),
            ("a/**", "`**` is not supported; write a `*` for each level"),
        ] {
            let expected = format!("{FILE}:2: `path`: {reason}");
            assert_eq!(error(&format!("[[lineage]]\npath = \"{pattern}\"\n")), expected);
        }
    }

    #[test]
    fn syntax_error_shows_no_value() {
        assert!(error("timeout = secret secret\n").starts_with(&format!("{FILE}:1: `timeout`: ")));
        for text in ["timeout = secret secret\n", "api_key_file = secret\n", "\nsecret\n"] {
            assert!(!error(text).contains("secret"), "{text}");
        }
        assert!(!error("\u{1b}[2J = 1\n").contains('\u{1b}'));
        assert!(!error("\"\\u001b[2J\" = 1\n").contains('\u{1b}'));
        assert!(error(&format!("{} = 1\n", "a.".repeat(9000))).len() < 300);
    }

    #[test]
    fn paths_are_relative_to_file() {
        let text = "api_key_file = \"key\"\ntrust_anchors = \"ca.pem\"\n[[lineage]]\ncert = \"c.pem\"\nkey = \"/k.pem\"\nwait = 5\ntrust_anchors = \"off\"\nverify_every = 0\n";
        let file = parse(Path::new(FILE), text);
        let file = file.require_valid().unwrap();
        assert_eq!(file.layer.connection.api_key_file, Some("/etc/edgecert/key".into()));
        let location = Location::Files { cert: "/etc/edgecert/c.pem".into(), key: "/k.pem".into() };
        assert_eq!(file.lineages[0].location, location);
        assert_eq!(file.layer.trust_anchors, Some(TrustAnchors::File("/etc/edgecert/ca.pem".into())));
        let layer = &file.lineages[0].layer;
        assert_eq!((layer.wait, layer.verify_every), ("5".parse().ok(), "0".parse().ok()));
        assert_eq!(layer.trust_anchors, Some(TrustAnchors::Off));
        for (name, expected) in
            [("./tell", "/etc/edgecert/./tell"), ("/bin/tell", "/bin/tell"), ("tell", "tell")]
        {
            let text = format!("on_failure = [\"{name}\", \"a/b\"]\n");
            let program = parse(Path::new(FILE), &text).on_failure.unwrap();
            assert_eq!((program.name, program.arguments), (expected.into(), vec!["a/b".to_owned()]));
        }
    }
}
