//! The configuration file: its contents, where it is searched for, and how it is parsed.
//!
//! An error names file, line and key and never repeats the line: a secret may be in it by mistake.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use glob::Pattern;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::{Connection, HeartbeatUrl, Layer, Program, SettingsError};
use super::{layer, on_failure};
use crate::env::Env;
use crate::file;
use crate::names::{Domain, NotADomain};
use crate::text::{self, sanitize};

/// The variable that names the file.
pub(super) const VARIABLE: &str = "EDGECERT_CONFIG";

/// The first default path.
const SYSTEM: &str = "/etc/edgecert/config.toml";

/// Maximum size of the file, enough for a thousand lineages. Parsing takes a hundred times as much memory.
const MAX_BYTES: u64 = 256 << 10;

/// The configuration file in effect: the valid part of its contents. Empty if there is none.
#[derive(Default)]
pub(crate) struct Configuration {
    pub(crate) path: Option<PathBuf>,
    /// Settings for all lineages.
    pub(crate) layer: Layer,
    /// Where each setting, `on_failure` and `heartbeat_url` is set.
    pub(super) origins: Origins,
    /// The `[[lineage]]` entries, in order.
    pub(crate) lineages: Vec<LineageEntry>,
    /// Program to run after a failure. It is known even if the rest of the file is invalid: that is a failure, too.
    pub(crate) on_failure: Option<Program>,
    /// URL to call after each `sync`. Like `on_failure`, it is known even if other lines of the file are invalid.
    pub(crate) heartbeat_url: Option<HeartbeatUrl>,
    /// The errors, in the order of the file.
    pub(super) faults: Vec<SettingsError>,
}

/// The settings that a source has, valid or not, by their keys.
pub(super) type Origins = BTreeMap<String, Origin>;

/// Where a setting is.
pub(super) struct Origin {
    /// The flag, variable or line.
    pub(super) place: String,
    /// Why it cannot be used.
    pub(super) error: Option<SettingsError>,
}

/// A `[[lineage]]` entry.
pub(crate) struct LineageEntry {
    pub(crate) location: Location,
    /// The account, if the entry names another one than the rest of the file.
    pub(crate) account: Option<String>,
    /// Tells the entries for one lineage apart: the account, with a number if several entries name it. Part of the name
    /// of the state file.
    pub(crate) target: Option<String>,
    /// Sites to deploy to; every covered site if empty.
    pub(crate) domains: Vec<Domain>,
    /// Settings for this lineage only.
    pub(crate) layer: Layer,
    pub(super) origins: Origins,
}

/// Where a lineage is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Directory(PathBuf),
    /// All that match, as [`glob`] defines it.
    Pattern(Pattern),
    Files {
        cert: PathBuf,
        key: PathBuf,
    },
}

impl Configuration {
    /// The file itself, or the first reason why it cannot be used.
    pub(crate) fn require_valid(&self) -> Result<&Self, SettingsError> {
        self.faults.first().map_or(Ok(self), |fault| Err(fault.clone()))
    }

    /// Whether a setting seems to be missing only because the file, which may hold it, is invalid.
    pub(crate) fn may_hold(&self, error: &SettingsError) -> bool {
        error.is_missing && !self.faults.is_empty()
    }
}

impl LineageEntry {
    /// The path or pattern that the entry names.
    pub(crate) fn path(&self) -> &Path {
        match &self.location {
            Location::Directory(path) => path,
            Location::Pattern(pattern) => Path::new(pattern.as_str()),
            Location::Files { cert, .. } => cert,
        }
    }
}

/// Reads the named file, or the first default file that exists.
pub(crate) fn read(named: Option<&Path>, env: &Env) -> Configuration {
    let named = named.map(Path::to_owned).or_else(|| env.path(VARIABLE));
    let Some(path) = named.or_else(|| default_paths(env).find(|path| exists(path))) else {
        return Configuration::default();
    };
    match file::read_text(&path, MAX_BYTES, file::default_deadline()) {
        Ok(text) => parse(&path, &text),
        Err(error) => {
            let faults = vec![error.into()];
            Configuration { path: Some(path), faults, ..Configuration::default() }
        }
    }
}

/// Whether a default file exists. `HOME` may be inherited from another user; a file that cannot be reached there is
/// ignored.
fn exists(path: &Path) -> bool {
    let found = path.symlink_metadata();
    if found.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        log::warn!("ignoring {}: cannot search its directory", text::path(path));
    }
    found.is_ok()
}

/// The places of the configuration file, unless one is named.
pub(crate) fn default_paths(env: &Env) -> impl Iterator<Item = PathBuf> {
    let home = env.path("XDG_CONFIG_HOME").or_else(|| env.path("HOME").map(|home| home.join(".config")));
    [Some(PathBuf::from(SYSTEM)), home.map(|home| home.join("edgecert/config.toml"))].into_iter().flatten()
}

/// The setting that is read even if the rest of the file is invalid, and that no `[[lineage]]` has.
const STATE_DIR: &str = "state_dir";
const SINGLE_BRACKETS: &str = "expected `[[lineage]]`, in double brackets";

/// The keys of the file, except `lineage`, and those of a `[[lineage]]`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Keys {
    #[serde(flatten)]
    layer: Layer,
    #[serde(deserialize_with = "on_failure::deserialize")]
    on_failure: Option<Program>,
    #[serde(deserialize_with = "layer::text")]
    heartbeat_url: Option<HeartbeatUrl>,
    #[serde(deserialize_with = "layer::path")]
    path: Option<PathBuf>,
    #[serde(deserialize_with = "layer::path")]
    cert: Option<PathBuf>,
    #[serde(deserialize_with = "layer::path")]
    key: Option<PathBuf>,
    #[serde(deserialize_with = "domains")]
    domains: Vec<Domain>,
}

pub(super) const HEARTBEAT_URL: &str = "heartbeat_url";
/// Keys of the file other than settings.
const GLOBAL_KEYS: [&str; 3] = [on_failure::KEY, HEARTBEAT_URL, "lineage"];
/// Keys of a `[[lineage]]` other than settings.
const LINEAGE_KEYS: [&str; 4] = ["path", "cert", "key", "domains"];

fn domains<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Domain>, D::Error> {
    let expected = || D::Error::custom("expected a list of domain names");
    let names = Value::deserialize(from)?;
    let domain = |(at, name): (usize, &Value)| {
        let domain = name.as_str().ok_or_else(expected)?.parse();
        domain.map_err(|error: NotADomain| D::Error::custom(format_args!("name {}: {error}", at + 1)))
    };
    names.as_array().ok_or_else(expected)?.iter().enumerate().map(domain).collect()
}

/// Parses the text.
pub(super) fn parse(path: &Path, text: &str) -> Configuration {
    let starts_of_lines = text.match_indices('\n').map(|(offset, _)| offset + 1).collect();
    let settings = Layer::keys();
    let directory = path.parent().unwrap_or(Path::new(""));
    let mut parser = Parser { path, directory, starts_of_lines, settings: &settings, faults: Vec::new() };
    let mut table = match DeTable::parse(text) {
        Ok(table) => table.into_inner(),
        Err(error) => {
            parser.syntax_fault(text, &error);
            // A run needs these even then: whom to notify of the failure, and where to record it.
            let keys = [on_failure::KEY, HEARTBEAT_URL, STATE_DIR].into_iter();
            keys.filter_map(|key| Some((Spanned::new(0..0, key.into()), find(text, key)?))).collect()
        }
    };
    let known: Vec<&str> = settings.iter().map(String::as_str).chain(GLOBAL_KEYS).collect();
    let entries = table.remove("lineage");
    let (Keys { layer, on_failure, heartbeat_url, .. }, origins) = parser.table(&table, &known);
    let mut lineages = entries.map(|entries| parser.lineages(&entries)).unwrap_or_default();
    tell_apart(&mut lineages, &layer.connection);
    let mut faults = parser.faults;
    faults.sort_by_key(|(offset, _)| *offset);
    Configuration {
        path: Some(path.to_owned()),
        layer,
        origins,
        lineages,
        on_failure: on_failure.map(|program| program.named_in(path)),
        heartbeat_url,
        faults: faults.into_iter().map(|(_, fault)| fault).collect(),
    }
}

/// Collects the faults of a file.
struct Parser<'a> {
    /// The file.
    path: &'a Path,
    /// The directory that paths in it are relative to.
    directory: &'a Path,
    /// Offsets of all lines but the first.
    starts_of_lines: Vec<usize>,
    /// The keys of all settings.
    settings: &'a [String],
    /// With their offsets.
    faults: Vec<(usize, SettingsError)>,
}

impl Parser<'_> {
    /// Reads a table key by key: a derive stops at the first fault, and has no lines.
    fn table(&mut self, table: &DeTable<'_>, known: &[&str]) -> (Keys, Origins) {
        let (mut valid, mut origins) = (Map::new(), Origins::new());
        for (name, value) in table {
            let (key, span) = (name.get_ref().as_ref(), value.span());
            if !known.contains(&key) {
                let hint = match key {
                    "api_key" => "write the key to a file of its own and set `api_key_file`".to_owned(),
                    _ => format!("known keys: {}", known.join(", ")),
                };
                let error = SettingsError::new(format_args!("unknown key `{}`", sanitize(key)));
                self.fault(name.span(), error.hint(hint));
                continue;
            }
            let entry = Map::from_iter([(key.to_owned(), recorded(value.get_ref()))]);
            let place = format!("{} line {}", text::path(self.path), self.line(span.start));
            let reason = Keys::deserialize(Value::Object(entry.clone())).err();
            let error = reason.map(|reason| SettingsError::new(format_args!("`{key}`: {reason}")));
            let error = error.map(|error| self.fault(span, error));
            valid.extend(entry.into_iter().filter(|_| error.is_none()));
            origins.insert(key.to_owned(), Origin { place, error });
        }
        let keys = Keys::deserialize(Value::Object(valid)).unwrap_or_default();
        (Keys { layer: keys.layer.relative_to(self.directory), ..keys }, origins)
    }

    fn lineages(&mut self, value: &Spanned<DeValue<'_>>) -> Vec<LineageEntry> {
        let DeValue::Array(entries) = value.get_ref() else {
            self.fault(value.span(), SettingsError::new(SINGLE_BRACKETS));
            return Vec::new();
        };
        entries.iter().filter_map(|entry| self.entry(entry)).collect()
    }

    fn entry(&mut self, entry: &Spanned<DeValue<'_>>) -> Option<LineageEntry> {
        let DeValue::Table(table) = entry.get_ref() else {
            self.fault(entry.span(), SettingsError::new(SINGLE_BRACKETS));
            return None;
        };
        let faults = self.faults.len();
        let settings = self.settings.iter().map(String::as_str).filter(|key| *key != STATE_DIR);
        let known: Vec<&str> = settings.chain(LINEAGE_KEYS).collect();
        let (Keys { layer, path, cert, key, domains, .. }, origins) = self.table(table, &known);
        let directory = self.directory;
        let location = match (path, cert, key) {
            (Some(path), None, None) => {
                let span = table.get("path").map(Spanned::span).unwrap_or_default();
                let location = location(directory, &path);
                location
                    .map_err(|reason| self.fault(span, SettingsError::new(format_args!("`path`: {reason}"))))
                    .ok()?
            }
            (None, Some(cert), Some(key)) => {
                Location::Files { cert: directory.join(cert), key: directory.join(key) }
            }
            _ => {
                // A misspelled key or a wrong type is the more useful error.
                if self.faults.len() == faults {
                    let message = "a `[[lineage]]` needs either `path`, or `cert` and `key`";
                    self.fault(entry.span(), SettingsError::new(message));
                }
                return None;
            }
        };
        Some(LineageEntry { location, account: None, target: None, domains, layer, origins })
    }

    /// Notes a TOML syntax error, with the key of the line if it has one.
    fn syntax_fault(&mut self, text: &str, error: &toml::de::Error) {
        let span = error.span().unwrap_or_default();
        let line = text.lines().nth(self.line(span.start) - 1).unwrap_or_default();
        let key = line.split_once('=').map(|(key, _)| format!("`{}`: ", sanitize(key))).unwrap_or_default();
        let reason = error.message().lines().next().unwrap_or_default();
        self.fault(span, SettingsError::new(format_args!("{key}{reason}")));
    }

    /// Notes an error, with its place.
    fn fault(&mut self, span: Range<usize>, error: SettingsError) -> SettingsError {
        let message = format!("{}:{}: {error}", text::path(self.path), self.line(span.start));
        let error = SettingsError { message, ..error };
        self.faults.push((span.start, error.clone()));
        error
    }

    fn line(&self, offset: usize) -> usize {
        self.starts_of_lines.partition_point(|start| *start <= offset) + 1
    }
}

/// A path that exists is not a pattern: acme.sh names directories after wildcards.
fn location(directory: &Path, path: &Path) -> Result<Location, String> {
    let (named, text) = (directory.join(path), path.to_str().unwrap_or_default());
    if !text.contains(['*', '?', '[']) || named.symlink_metadata().is_ok() {
        return Ok(Location::Directory(named));
    }
    if text.contains("**") {
        // A walk would follow links without end.
        return Err("`**` is not supported; write a `*` for each level".to_owned());
    }
    let directory = Pattern::escape(&directory.to_string_lossy());
    let pattern = Pattern::new(&Path::new(&directory).join(path).to_string_lossy());
    pattern.map(Location::Pattern).map_err(|error| format!("not a pattern: {}", error.msg))
}

/// Names the account of each entry that has its own, and numbers further entries for one lineage and account that
/// name other sites. Without a difference the first entry counts.
fn tell_apart(entries: &mut [LineageEntry], global: &Connection) {
    let mut known: HashMap<(PathBuf, Option<String>), Vec<Vec<Domain>>> = HashMap::new();
    for entry in entries {
        let own = &entry.layer.connection;
        let base_url = own.base_url.as_ref().filter(|own| global.base_url.as_ref() != Some(own));
        let key = own.api_key_file.as_ref().filter(|own| global.api_key_file.as_ref() != Some(own));
        // Without `.` and repeated slashes. Links stay: what they lead to changes.
        let key = key.map(|path| text::path(&path.components().collect::<PathBuf>()));
        let parts = [base_url.map(ToString::to_string), key];
        let mut parts: Vec<String> = parts.into_iter().flatten().collect();
        entry.account = (!parts.is_empty()).then(|| parts.join(" "));
        let sites = known.entry((entry.path().to_owned(), entry.account.clone())).or_default();
        if !sites.contains(&entry.domains) {
            sites.push(entry.domains.clone());
            parts.extend((sites.len() > 1).then(|| format!("#{}", sites.len())));
        }
        entry.target = (!parts.is_empty()).then(|| parts.join(" "));
    }
}

/// Converts a value to JSON. Tables become null, because state files spell a path that is not UTF-8 as an object.
fn recorded(value: &DeValue<'_>) -> Value {
    if matches!(value, DeValue::Table(_)) {
        return Value::Null;
    }
    let value = ValueDeserializer::from(Spanned::new(0..0, value.clone()));
    Value::deserialize(value).unwrap_or_default()
}

/// Finds a key in a file that is not valid TOML. Its first line, and the lines that its value takes, must be valid by
/// themselves.
fn find<'t>(text: &'t str, key: &str) -> Option<Spanned<DeValue<'t>>> {
    let is_key = |line: &&str| {
        line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let before: usize = text.split_inclusive('\n').take_while(|line| !is_key(line)).map(str::len).sum();
    let rest = text.get(before..)?;
    let (document, errors) = DeTable::parse_recoverable(rest);
    let value = document.into_inner().remove(key)?;
    let (start, end) = (before + value.span().start, value.span().end);
    let end_of_line = rest.get(end..)?.find('\n').map_or(rest.len(), |at| end + at);
    let is_damaged = errors.iter().any(|error| error.span().is_none_or(|span| span.start <= end_of_line));
    (!is_damaged).then(|| Spanned::new(start..before + end, value.into_inner()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
                "2: `base_url`: expected https: plain http is for loopback addresses only, because secrets are sent",
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
            ("trust_anchors = true\n", "1: `trust_anchors`: expected a path in quotes"),
            ("ca_file = 1\n", "1: `ca_file`: expected a path in quotes"),
            ("state_dir = \"\"\n", "1: `state_dir`: expected a path in quotes"),
            (
                "[[lineage]]\npath = \"a\"\nrebind = 2\n",
                "3: `rebind`: expected yes or no, true or false, on or off, 1 or 0",
            ),
            ("[[lineage]]\npath = \"a\"\nstate_dir = \"b\"\n", "3: unknown key `state_dir`"),
            ("[[lineage]]\npath = \"a\"\nname = 1\n", "3: `name`: expected text without control characters"),
            ("[[lineage]]\npth = \"a\"\n", "2: unknown key `pth`"),
            ("[[lineage]]\npath = \"a\"\n[[lineage.lineage]]\npath = \"b\"\n", "3: unknown key `lineage`"),
            ("[[lineage]]\npath = 1\n", "2: `path`: expected a path in quotes"),
            ("\n[[lineage]]\nname = \"x\"\n", "2: a `[[lineage]]` needs either `path`, or `cert` and `key`"),
            (
                "[[lineage]]\npath = \"a\"\ndomains = [\"a\",\n\"b c\"]\n",
                "3: `domains`: name 2: not a domain name",
            ),
            ("[[lineage]]\npath = \"a\"\ndomains = \"a\"\n", "3: `domains`: expected a list of domain names"),
            (
                "\non_failure = []\n",
                "2: `on_failure`: expected a list of strings: the program and its arguments",
            ),
            (
                "on_failure = [\"\"]\n",
                "1: `on_failure`: expected a list of strings: the program and its arguments",
            ),
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
    fn usable_part_of_a_damaged_file_is_kept() {
        let program = "on_failure = [\"./notify\",\n\"first word\"] # comment\n";
        let heartbeat = "heartbeat_url = 'https://hc.example/secret'\n";
        let below = ["basurl = \"x\"\n", "timeout = \"x\"\n", "timeout = \n", "x = 'a\n", "[[lineage]\n"];
        let above = [
            "basurl = \"x\"\n",
            "timeout = soon\n",
            "base_url = \"https:\n",
            "base_url\n",
            "x = [1\n",
            "on_success = 1\nwait = \n",
        ];
        let below = below.into_iter().map(|fault| format!("{program}{heartbeat}{fault}"));
        for text in below.chain(above.into_iter().map(|fault| format!("{fault}{heartbeat}{program}"))) {
            let file = parse(Path::new(FILE), &text);
            assert!(!file.faults.is_empty() && file.heartbeat_url.is_some(), "{text}");
            let program = file.on_failure.unwrap();
            assert_eq!(program.arguments, ["first word"], "{text}");
        }
        // No list of words: which program is meant is not certain.
        for value in
            ["5", "\"./notify\"", "[\"./notify\"", "[\"./notify\", x]", "[\"./notify\"] x", "[\"./notify]"]
        {
            let file = parse(Path::new(FILE), &format!("{heartbeat}on_failure = {value}\ntimeout = 1\n"));
            assert!(!file.faults.is_empty() && file.on_failure.is_none(), "{value}");
            assert!(file.heartbeat_url.is_some(), "{value}");
        }
    }

    #[test]
    fn syntax_error_shows_no_value() {
        assert!(error("timeout = secret secret\n").starts_with(&format!("{FILE}:1: `timeout`: ")));
        for text in [
            "timeout = secret secret\n",
            "api_key_file = secret\n",
            "\nsecret\n",
            "heartbeat_url = https://hc.example/secret?a=b\n",
            "heartbeat_url = \"https://hc.example/secret\n",
        ] {
            assert!(!error(text).contains("secret"), "{text}");
        }
        let heartbeat = error("heartbeat_url = [\"https://hunter2\"]\n");
        assert!(
            heartbeat.contains("expected a URL such as https://HOST") && !heartbeat.contains("hunter2"),
            "{heartbeat}"
        );
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
        assert_eq!(file.layer.trust_anchors, Some("/etc/edgecert/ca.pem".into()));
        let layer = &file.lineages[0].layer;
        assert_eq!((layer.wait, layer.verify_every), ("5".parse().ok(), "0".parse().ok()));
        assert_eq!(layer.trust_anchors, Some("off".into()));
        for (name, expected) in
            [("./tell", "/etc/edgecert/./tell"), ("/bin/tell", "/bin/tell"), ("tell", "tell")]
        {
            let text = format!("on_failure = [\"{name}\", \"a/b\"]\n");
            let program = parse(Path::new(FILE), &text).on_failure.unwrap();
            assert_eq!((program.name, program.arguments), (expected.into(), vec!["a/b".to_owned()]));
        }
    }
}
