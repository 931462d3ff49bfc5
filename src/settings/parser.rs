//! Parses the configuration file.
//!
//! An error names file, line and key and never repeats the line: a secret may be in it by mistake.

use std::collections::HashMap;
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};

use glob::Pattern;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::configuration::{ConfigurationFile, KeyLines};
use super::layer::{Layer, Reader, SETTINGS, Setting};
use super::value::Value;
use super::{
    Configuration, FileFault, HeartbeatUrl, LineageEntry, Location, Program, SettingsError, damaged,
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

/// Parses the text.
pub(super) fn parse(path: &Path, text: &str) -> ConfigurationFile {
    let mut parser = DocumentParser { path, text, faults: Vec::new() };
    let (valid, on_failure, heartbeat_url) = match DeTable::parse(text) {
        Ok(document) => {
            let table = document.get_ref();
            (parser.configuration(table), parser.on_failure(table), parser.heartbeat_url(table))
        }
        Err(error) => {
            parser.faults.push(syntax_fault(text, &error));
            parser.damaged()
        }
    };
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
    /// The settings that are read even from invalid TOML.
    fn damaged(&self) -> (Configuration, Option<Program>, Option<HeartbeatUrl>) {
        let program =
            damaged::find(self.text, on_failure::KEY, |value| Program::from_toml(value, self.path).ok());
        let heartbeat =
            damaged::find(self.text, heartbeat_url::KEY, |value| HeartbeatUrl::from_toml(value).ok());
        let state_dir =
            damaged::find(self.text, STATE_DIR, |value| Value::from_toml(value, directory(self.path)).ok());
        let places = [
            (on_failure::KEY, program.as_ref().map(|found| found.1)),
            (heartbeat_url::KEY, heartbeat.as_ref().map(|found| found.1)),
            (STATE_DIR, state_dir.as_ref().map(|found| found.1)),
        ];
        let lines =
            places.into_iter().filter_map(|(key, offset)| Some((key, line_of(self.text, offset?)))).collect();
        let layer = Layer { state_dir: state_dir.map(|found| found.0), ..Layer::default() };
        let valid = Configuration { layer, lines, ..Configuration::default() };
        (valid, program.map(|found| found.0), heartbeat.map(|found| found.0))
    }

    fn configuration(&mut self, table: &DeTable<'_>) -> Configuration {
        let layer = self.layer(table, GLOBAL_KEYS, |_| true);
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
        tell_apart(&mut lineages, &layer);
        Configuration { layer, lines: self.lines(table), lineages }
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
        let layer = self.layer(table, LINEAGE_KEYS, |setting| setting.is_per_lineage);
        let domains = self.domains(table);
        let [path, cert, key] = ["path", "cert", "key"].map(|name| self.value(table, name));
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
        Some(LineageEntry { location, account: None, target: None, domains, layer, lines: self.lines(table) })
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
        let Some(value) = table.get("domains") else { return Vec::new() };
        let expected = FileFault::WrongType { key: "domains", expected: "a list of domain names" };
        let Some(names) = value.get_ref().as_array() else {
            self.fault(value.span(), expected);
            return Vec::new();
        };
        let mut domains = Vec::new();
        for name in names {
            match name.get_ref().as_str().map(str::parse) {
                Some(Ok(domain)) => domains.push(domain),
                Some(Err(NotADomain)) => {
                    let reason = NotADomain.to_string();
                    self.fault(name.span(), FileFault::Invalid { key: "domains", reason });
                }
                None => self.fault(name.span(), expected.clone()),
            }
        }
        domains
    }

    /// Reads the settings of a table that are `allowed` there, and reports unknown keys.
    fn layer(
        &mut self,
        table: &DeTable<'_>,
        other_keys: &[&'static str],
        allowed: fn(&Setting) -> bool,
    ) -> Layer {
        let names = SETTINGS.iter().filter(|setting| allowed(setting)).map(|setting| setting.name);
        let known: Vec<&'static str> = names.chain(other_keys.iter().copied()).collect();
        for key in table.keys().filter(|key| !known.contains(&key.get_ref().as_ref())) {
            let fault = FileFault::UnknownKey { key: sanitize(key.get_ref()), known: known.clone() };
            self.fault(key.span(), fault);
        }
        Layer::read(&mut TableReader { parser: self, table, allowed })
    }

    /// The lines of the settings in a table, and of `on_failure` and `heartbeat_url`.
    fn lines(&self, table: &DeTable<'_>) -> KeyLines {
        let keys = SETTINGS.iter().map(|setting| setting.name).chain([on_failure::KEY, heartbeat_url::KEY]);
        let line = |key| Some((key, line_of(self.text, table.get(key)?.span().start)));
        keys.filter_map(line).collect()
    }

    fn value<T: Value>(&mut self, table: &DeTable<'_>, key: &'static str) -> Option<T> {
        let value = table.get(key)?;
        T::from_toml(value.get_ref(), directory(self.path))
            .map_err(|error| {
                let reason = error.describe(self.text.get(value.span()).unwrap_or_default());
                self.fault(value.span(), FileFault::Invalid { key, reason });
            })
            .ok()
    }

    /// Returns a checked value, or reports why it is invalid.
    fn check<T>(
        &mut self,
        table: &DeTable<'_>,
        key: &'static str,
        checked: Result<T, impl Display>,
    ) -> Option<T> {
        let reason = match checked {
            Ok(value) => return Some(value),
            Err(error) => error.to_string(),
        };
        let span = table.get(key).map(Spanned::span).unwrap_or_default();
        self.fault(span, FileFault::Invalid { key, reason });
        None
    }

    fn fault(&mut self, span: Range<usize>, fault: FileFault) {
        self.faults.push((span.start, fault));
    }
}

/// Names the account of each entry that has its own, and numbers further entries for one lineage and account that
/// name other sites. Without a difference the first entry counts.
fn tell_apart(entries: &mut [LineageEntry], global: &Layer) {
    let mut known: HashMap<(PathBuf, Option<String>), Vec<Vec<Domain>>> = HashMap::new();
    for entry in entries {
        let LineageEntry { layer, domains, .. } = &*entry;
        let base_url = layer.base_url.as_ref().filter(|own| global.base_url.as_ref() != Some(own));
        let key = layer.api_key_file.as_ref().filter(|own| global.api_key_file.as_ref() != Some(own));
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

/// Reads the settings of a table.
struct TableReader<'p, 'a, 't> {
    parser: &'p mut DocumentParser<'a>,
    table: &'t DeTable<'t>,
    allowed: fn(&Setting) -> bool,
}

impl Reader for TableReader<'_, '_, '_> {
    fn read<T: Value>(&mut self, setting: &'static Setting) -> Option<T> {
        if (self.allowed)(setting) { self.parser.value(self.table, setting.name) } else { None }
    }
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
    fn error_names_line_key_and_value() {
        let rows = [
            (
                "base_url = \"x.y\"\nbasurl = \"secret\"\n",
                "1: `base_url`: expected a URL such as https://HOST, not \"x.y\"",
            ),
            ("wait = 1\nbasurl = \"secret\"\n", "2: unknown key `basurl`"),
            (
                "\nbase_url = \"http://a.example\"\n",
                "2: `base_url`: expected https, not \"http://a.example\": plain http is for loopback addresses only, because requests contain the private key",
            ),
            ("edge_address = \"secret_0123456789\"\n", "1: `edge_address`: expected HOST:PORT"),
            ("[lineage]\npath = \"a\"\n", "1: expected `[[lineage]]`, in double brackets"),
            ("lineage = [1]\n", "1: expected `[[lineage]]`, in double brackets"),
            ("api_key = \"secret\"\n", "1: unknown key `api_key`"),
            (
                "\ntimeout = \"soon\"\n",
                "2: `timeout`: expected a whole number of seconds above 0, not \"soon\"",
            ),
            ("timeout = -1\n", "1: `timeout`: expected a whole number of seconds above 0, not -1"),
            ("timeout = 0\n", "1: `timeout`: expected a whole number of seconds above 0, not 0"),
            ("wait = -1\n", "1: `wait`: expected a whole number of seconds, not -1"),
            ("verify = 'on'\n", "1: `verify`: expected auto, require or off, not 'on'"),
            ("verify_every = \"1h\"\n", "1: `verify_every`: expected a whole number of seconds, not \"1h\""),
            (
                "trust_anchors = true\n",
                "1: `trust_anchors`: expected a path, \"system\" or \"off\", not true",
            ),
            ("ca_file = 1\n", "1: `ca_file`: expected a path in quotes, not 1"),
            ("state_dir = \"\"\n", "1: `state_dir`: expected a path in quotes, not \"\""),
            (
                "[[lineage]]\npath = \"a\"\nrebind = 2\n",
                "3: `rebind`: expected yes or no, true or false, on or off, 1 or 0, not 2",
            ),
            ("[[lineage]]\npath = \"a\"\nstate_dir = \"b\"\n", "3: unknown key `state_dir`"),
            (
                "[[lineage]]\npath = \"a\"\nname = 1\n",
                "3: `name`: expected text without control characters, not 1",
            ),
            ("[[lineage]]\npth = \"a\"\n", "2: unknown key `pth`"),
            ("[[lineage]]\npath = 1\n", "2: `path`: expected a path in quotes, not 1"),
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
        assert_eq!(file.layer.api_key_file, Some("/etc/edgecert/key".into()));
        let location = Location::Files { cert: "/etc/edgecert/c.pem".into(), key: "/k.pem".into() };
        assert_eq!(file.lineages[0].location, location);
        assert_eq!(file.layer.trust_anchors, Some(TrustAnchors::File("/etc/edgecert/ca.pem".into())));
        let layer = &file.lineages[0].layer;
        assert_eq!((layer.wait, layer.verify_every), (Some(5), Some(0)));
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
