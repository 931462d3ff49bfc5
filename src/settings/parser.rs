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

use super::configuration::{ConfigurationFile, KeyLines};
use super::layer::Layer;
use super::{
    Configuration, Connection, FileFault, HeartbeatUrl, LineageEntry, Location, Program, SettingsError,
    damaged, heartbeat_url, on_failure,
};
use crate::names::{Domain, NotADomain};
use crate::text::{self, sanitize};

/// Keys of the file other than settings.
const GLOBAL_KEYS: &[&str] = &[on_failure::KEY, heartbeat_url::KEY, "lineage"];
/// The setting that is read even if the rest of the file is invalid.
const STATE_DIR: &str = "state_dir";
/// Keys of a `[[lineage]]` other than settings.
const LINEAGE_KEYS: &[&str] = &["path", "cert", "key", "domains"];

/// Parses the text.
pub(super) fn parse(path: &Path, text: &str) -> ConfigurationFile {
    let mut parser = DocumentParser { path, text, faults: Vec::new() };
    let table = DeTable::parse(text).map_or_else(
        |error| {
            parser.faults.push(syntax_fault(text, &error));
            damaged::read(text, &[on_failure::KEY, heartbeat_url::KEY, STATE_DIR])
        },
        Spanned::into_inner,
    );
    let valid = parser.configuration(&table);
    let (on_failure, heartbeat_url) = (parser.on_failure(&table), parser.heartbeat_url(&table));
    let mut faults = parser.faults;
    faults.sort_by_key(|(offset, _)| *offset);
    // Counts each line once, however many faults there are.
    let (mut line, mut counted) = (1, 0);
    let at_line = |(offset, fault)| {
        line += text.bytes().skip(counted).take(offset - counted).filter(|byte| *byte == b'\n').count();
        counted = offset;
        SettingsError::File { path: path.to_owned(), line, fault }
    };
    let faults = faults.into_iter().map(at_line).collect();
    ConfigurationFile { path: Some(path.to_owned()), valid, faults, on_failure, heartbeat_url }
}

/// The directory that paths in a file are relative to.
fn directory(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

/// Collects the faults of a file, with their offsets.
struct DocumentParser<'a> {
    path: &'a Path,
    text: &'a str,
    faults: Vec<(usize, FileFault)>,
}

impl DocumentParser<'_> {
    fn configuration(&mut self, table: &DeTable<'_>) -> Configuration {
        let (layer, lines) = self.layer(table, GLOBAL_KEYS, &[]);
        let mut lineages = match table.get("lineage").map(|value| (value.span(), value.get_ref())) {
            Some((_, DeValue::Array(entries))) => {
                entries.iter().filter_map(|entry| self.entry(entry)).collect()
            }
            Some((span, _)) => {
                self.fault(span, FileFault::SingleBrackets);
                Vec::new()
            }
            None => Vec::new(),
        };
        tell_apart(&mut lineages, &layer.connection);
        Configuration { layer, lines, lineages }
    }

    fn on_failure(&mut self, table: &DeTable<'_>) -> Option<Program> {
        let program = Program::from_toml(table.get(on_failure::KEY)?.get_ref(), self.path);
        self.check(table, on_failure::KEY, program)
    }

    fn heartbeat_url(&mut self, table: &DeTable<'_>) -> Option<HeartbeatUrl> {
        let url = HeartbeatUrl::from_toml(table.get(heartbeat_url::KEY)?.get_ref());
        self.check(table, heartbeat_url::KEY, url)
    }

    fn entry(&mut self, entry: &Spanned<DeValue<'_>>) -> Option<LineageEntry> {
        let DeValue::Table(table) = entry.get_ref() else {
            self.fault(entry.span(), FileFault::SingleBrackets);
            return None;
        };
        let faults = self.faults.len();
        let (layer, lines) = self.layer(table, LINEAGE_KEYS, &[STATE_DIR]);
        let domains = self.domains(table);
        let [path, cert, key] = ["path", "cert", "key"].map(|name| self.file_path(table, name));
        let location = match (path, cert, key) {
            (Some(path), None, None) => self.directory_or_pattern(path, table)?,
            (None, Some(cert), Some(key)) => Location::Files { cert, key },
            _ => {
                // A misspelled key or a wrong type is the more useful error.
                if self.faults.len() == faults {
                    self.fault(entry.span(), FileFault::NoLocation);
                }
                return None;
            }
        };
        Some(LineageEntry { location, account: None, target: None, domains, layer, lines })
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
            self.invalid(value.span(), "domains", EXPECTED);
            return Vec::new();
        };
        let mut domains = Vec::new();
        for name in names {
            match name.get_ref().as_str().map(str::parse) {
                Some(Ok(domain)) => domains.push(domain),
                Some(Err(NotADomain)) => self.invalid(name.span(), "domains", NotADomain),
                None => self.invalid(name.span(), "domains", EXPECTED),
            }
        }
        domains
    }

    /// Reads the settings of a table, with their lines, and reports keys that are neither settings nor `others`.
    fn layer(&mut self, table: &DeTable<'_>, others: &[&str], refused: &[&str]) -> (Layer, KeyLines) {
        let (mut layer, mut lines) = (Layer::default(), KeyLines::new());
        for (name, value) in table {
            let (key, span) = (name.get_ref().as_ref(), value.span());
            let is_setting = !others.contains(&key) && !refused.contains(&key);
            let read =
                if is_setting { Layer::one(key, recorded(value.get_ref())) } else { Ok(Layer::default()) };
            if read.as_ref().is_ok_and(|read| *read == Layer::default()) && !others.contains(&key) {
                let known = Layer::keys().into_iter().filter(|key| !refused.contains(&key.as_str()));
                let known = known.chain(others.iter().map(ToString::to_string)).collect();
                self.fault(name.span(), FileFault::UnknownKey { key: sanitize(key), known });
                continue;
            }
            // Those of other keys are not shown with them.
            if is_setting || [on_failure::KEY, heartbeat_url::KEY].contains(&key) {
                lines.insert(key.to_owned(), line_of(self.text, span.start));
            }
            match read {
                Ok(read) => layer = layer.or(read),
                Err(error) => self.invalid(span, key, error),
            }
        }
        (layer.relative_to(directory(self.path)), lines)
    }

    /// Reads a path that is not a setting.
    fn file_path(&mut self, table: &DeTable<'_>, key: &'static str) -> Option<PathBuf> {
        let path = table.get(key)?.get_ref().as_str().filter(|path| !path.is_empty());
        let path = path.map(|path| directory(self.path).join(path));
        self.check(table, key, path.ok_or("expected a path in quotes"))
    }

    /// Returns a checked value, or reports why it is invalid.
    fn check<T>(
        &mut self,
        table: &DeTable<'_>,
        key: &'static str,
        checked: Result<T, impl Display>,
    ) -> Option<T> {
        checked
            .map_err(|error| self.invalid(table.get(key).map(Spanned::span).unwrap_or_default(), key, error))
            .ok()
    }

    fn invalid(&mut self, span: Range<usize>, key: &str, reason: impl Display) {
        self.fault(span, FileFault::Invalid { key: key.to_owned(), reason: reason.to_string() });
    }

    fn fault(&mut self, span: Range<usize>, fault: FileFault) {
        self.faults.push((span.start, fault));
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

/// Converts a TOML syntax error to a fault with its offset.
fn syntax_fault(text: &str, error: &toml::de::Error) -> (usize, FileFault) {
    let offset = error.span().map_or(0, |span| span.start);
    let line = text.lines().nth(line_of(text, offset) - 1).unwrap_or_default();
    let key = line.split_once('=').map(|(key, _)| sanitize(key));
    let message = error.message().lines().next().unwrap_or_default().to_owned();
    (offset, FileFault::Syntax { key, message })
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
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
            faults.iter().map(|fault| fault.to_string()[FILE.len()..].to_owned()).collect();
        let starts: Vec<&str> = lines.iter().map(|line| &line[..3]).collect();
        assert_eq!(starts, [":4:", ":5:", ":7:"], "{lines:?}");
    }

    fn error(text: &str) -> String {
        parse(Path::new(FILE), text).contents().err().unwrap().to_string()
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
        let file = file.contents().unwrap();
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
