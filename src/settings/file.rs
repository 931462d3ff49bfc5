//! The configuration file (TOML): the settings again, and the lineages that `sync` looks after.
//!
//! Every error names the file, the line and the key, and never repeats the line: a key may stand in it by mistake.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::on_failure::Program;
use super::{BaseUrl, Error, Layer, Verify, check_edge_address};
use crate::env::Env;
use crate::file;
use crate::names::Domain;
use crate::text::sanitize;

/// Where the file is looked for when it is not named.
const SYSTEM: &str = "/etc/edgecert/config.toml";

/// A configuration file that was understood.
#[derive(Default)]
pub(crate) struct Configuration {
    /// The settings of the whole file.
    pub(crate) layer: Layer,
    /// The lineages, in order.
    pub(crate) lineages: Vec<LineageEntry>,
    /// What is told of a failure; `None`: nothing.
    pub(crate) on_failure: Option<Program>,
}

/// One `[[lineage]]`.
pub(crate) struct LineageEntry {
    pub(crate) place: Location,
    /// Sites to deploy to; empty: every covered one.
    pub(crate) domains: Vec<Domain>,
    /// Settings that hold for this lineage only.
    pub(crate) layer: Layer,
}

/// Where a lineage is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Directory(PathBuf),
    Files { cert: PathBuf, key: PathBuf },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    base_url: Option<toml::Spanned<String>>,
    api_key_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    state_dir: Option<PathBuf>,
    timeout: Option<u64>,
    wait: Option<u64>,
    verify: Option<Verify>,
    edge_address: Option<toml::Spanned<String>>,
    rebind: Option<bool>,
    allow_untrusted: Option<bool>,
    skip_unmatched: Option<bool>,
    on_failure: Option<toml::Spanned<toml::Value>>,
    #[serde(default)]
    lineage: Vec<toml::Spanned<Lineage>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lineage {
    #[serde(rename = "name")]
    _name: Option<String>,
    path: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    #[serde(default)]
    domains: Vec<toml::Spanned<String>>,
    wait: Option<u64>,
    verify: Option<Verify>,
    edge_address: Option<String>,
    rebind: Option<bool>,
    allow_untrusted: Option<bool>,
    skip_unmatched: Option<bool>,
}

/// Reads the file that was named, or the first of the default ones that exists.
pub(super) fn read(named: Option<&Path>, env: &Env) -> Result<Configuration, Error> {
    if let Some(path) = named.map(Path::to_owned).or_else(|| env.path("EDGECERT_CONFIG")) {
        return parse(&path, &file::read_text(&path, MAX_BYTES)?);
    }
    let home = env.path("XDG_CONFIG_HOME").or_else(|| env.path("HOME").map(|home| home.join(".config")));
    let defaults = [Some(PathBuf::from(SYSTEM)), home.map(|home| home.join("edgecert/config.toml"))];
    match defaults.into_iter().flatten().find(|path| is_there(path)) {
        Some(path) => parse(&path, &file::read_text(&path, MAX_BYTES)?),
        None => Ok(Configuration::default()),
    }
}

/// Whether a default file exists. One in a home that is not ours (`HOME` is inherited) is none of ours either.
fn is_there(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            log::warn!("{} is left out: its directory cannot be searched", crate::text::path(path));
            false
        }
        Err(_) => false,
    }
}

/// No configuration is larger: a thousand lineages fit. Reading it takes a hundred times its size in memory.
const MAX_BYTES: u64 = 256 << 10;

/// Understands the text; paths in it are relative to the file's directory.
fn parse(path: &Path, text: &str) -> Result<Configuration, Error> {
    let document: Document = toml::from_str(text).map_err(|error| explain(path, text, &error))?;
    let directory = path.parent().unwrap_or(Path::new(""));
    let beside = |path: PathBuf| directory.join(path);
    let lineages = document
        .lineage
        .into_iter()
        .map(|lineage| {
            let start = lineage.span().start;
            entry(lineage.into_inner(), &beside, &|at, reason| {
                at_line(path, line_of(text, at.unwrap_or(start)), reason)
            })
        })
        .collect::<Result<_, _>>()?;
    let valid =
        |value: Option<toml::Spanned<String>>, key: &str, check: &dyn Fn(&str) -> Result<(), Error>| {
            let Some(value) = value else { return Ok::<_, Error>(None) };
            check(value.get_ref()).map_err(|error| match error {
                Error::Bad { reason, .. } => {
                    at_line(path, line_of(text, value.span().start), format!("`{key}`: {reason}"))
                }
                other => other,
            })?;
            Ok(Some(value.into_inner()))
        };
    let is_url = |text: &str| text.parse::<BaseUrl>().map(|_| ());
    let is_address = |text: &str| check_edge_address(text, "edge_address");
    let layer = Layer {
        base_url: valid(document.base_url, "base_url", &is_url)?,
        api_key_file: document.api_key_file.map(beside),
        ca_file: document.ca_file.map(beside),
        state_dir: document.state_dir.map(beside),
        timeout: document.timeout,
        wait: document.wait,
        verify: document.verify,
        edge_address: valid(document.edge_address, "edge_address", &is_address)?,
        rebind: document.rebind,
        allow_untrusted: document.allow_untrusted,
        skip_unmatched: document.skip_unmatched,
    };
    let program = |value: toml::Spanned<toml::Value>| {
        Program::parse(path, value.get_ref()).map_err(|reason| {
            at_line(path, line_of(text, value.span().start), format!("`on_failure`: {reason}"))
        })
    };
    let on_failure = document.on_failure.map(program).transpose()?;
    Ok(Configuration { layer, lineages, on_failure })
}

fn entry(
    lineage: Lineage,
    beside: &dyn Fn(PathBuf) -> PathBuf,
    error: &dyn Fn(Option<usize>, String) -> Error,
) -> Result<LineageEntry, Error> {
    let place = match (lineage.path, lineage.cert, lineage.key) {
        (Some(path), None, None) => Location::Directory(beside(path)),
        (None, Some(cert), Some(key)) => Location::Files { cert: beside(cert), key: beside(key) },
        _ => {
            return Err(error(None, "a `[[lineage]]` has either `path`, or `cert` and `key`".into()));
        }
    };
    let domains = lineage
        .domains
        .iter()
        .map(|name| {
            name.get_ref()
                .parse()
                .map_err(|reason| error(Some(name.span().start), format!("`domains`: {reason}")))
        })
        .collect::<Result<_, _>>()?;
    let layer = Layer {
        wait: lineage.wait,
        verify: lineage.verify,
        edge_address: lineage.edge_address,
        rebind: lineage.rebind,
        allow_untrusted: lineage.allow_untrusted,
        skip_unmatched: lineage.skip_unmatched,
        ..Layer::default()
    };
    Ok(LineageEntry { place, domains, layer })
}

/// A parser's error as file, line, key and reason; the known keys apart, for the hint.
fn explain(path: &Path, text: &str, error: &toml::de::Error) -> Error {
    let start = error.span().map_or(0, |span| span.start);
    let line = line_of(text, start);
    let message = error.message();
    if let Some((unknown, known)) =
        message.strip_prefix("unknown field ").and_then(|rest| rest.split_once(", expected "))
    {
        let known = known.trim_start_matches("one of ").to_owned();
        return Error::File {
            path: path.to_owned(),
            line,
            reason: format!("unknown key {}", sanitize(unknown)),
            known: Some(known),
        };
    }
    let at = text.lines().nth(line - 1).unwrap_or_default();
    let key = at.split_once('=').map(|(key, _)| sanitize(key));
    let reason = match (key, message.split_once(", expected ")) {
        (_, Some((_, "a sequence"))) if !at.contains('=') => {
            "`[[lineage]]` is wanted, in double brackets".to_owned()
        }
        (Some(key), Some((_, wanted))) => {
            format!("`{key}`: {} is wanted", wanted.replace("u64", "a whole number"))
        }
        (Some(key), None) => format!("`{key}`: {}", message.lines().next().unwrap_or_default()),
        (None, _) => message.lines().next().unwrap_or_default().to_owned(),
    };
    at_line(path, line, reason)
}

fn at_line(path: &Path, line: usize, reason: String) -> Error {
    Error::File { path: path.to_owned(), line, reason, known: None }
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse(Path::new("/etc/edgecert/config.toml"), text).err().unwrap().to_string()
    }

    #[test]
    fn an_error_names_file_line_and_key_and_not_the_value() {
        let rows = [
            ("base_url = \"x\"\nbasurl = \"secret\"\n", "/etc/edgecert/config.toml:2: unknown key `basurl`"),
            (
                "\nbase_url = \"http://secret.example\"\n",
                "/etc/edgecert/config.toml:2: `base_url`: plain http is for loopback addresses only; the private key travels in the request",
            ),
            (
                "edge_address = \"secret\"\n",
                "/etc/edgecert/config.toml:1: `edge_address`: HOST:PORT is wanted",
            ),
            (
                "[lineage]\npath = \"a\"\n",
                "/etc/edgecert/config.toml:1: `[[lineage]]` is wanted, in double brackets",
            ),
            ("api_key = \"secret\"\n", "/etc/edgecert/config.toml:1: unknown key `api_key`"),
            ("\ntimeout = \"secret\"\n", "/etc/edgecert/config.toml:2: `timeout`: a whole number is wanted"),
            (
                "[[lineage]]\npath = \"a\"\nrebind = 1\n",
                "/etc/edgecert/config.toml:3: `rebind`: a boolean is wanted",
            ),
            (
                "\n[[lineage]]\nname = \"x\"\n",
                "/etc/edgecert/config.toml:2: a `[[lineage]]` has either `path`, or `cert` and `key`",
            ),
            (
                "[[lineage]]\npath = \"a\"\ndomains = [\"a\",\n\"b c\"]\n",
                "/etc/edgecert/config.toml:4: `domains`: not a domain name",
            ),
            ("\non_failure = []\n", "/etc/edgecert/config.toml:2: `on_failure`: it names no program"),
            ("on_failure = [\"\"]\n", "/etc/edgecert/config.toml:1: `on_failure`: it names no program"),
            (
                "on_failure = \"secret\"\n",
                "/etc/edgecert/config.toml:1: `on_failure`: a list of strings is wanted: the program and its arguments",
            ),
            (
                "on_failure = [\n\"mail\",\n1]\n",
                "/etc/edgecert/config.toml:1: `on_failure`: a list of strings is wanted: the program and its arguments",
            ),
            (
                "[[lineage]]\npath = \"a\"\non_failure = [\"mail\"]\n",
                "/etc/edgecert/config.toml:3: unknown key `on_failure`",
            ),
        ];
        for (text, wanted) in rows {
            assert_eq!(refused(text), wanted);
        }
        assert!(refused("timeout = secret secret\n").starts_with("/etc/edgecert/config.toml:1: `timeout`: "));
        assert!(!refused("api_key_file = secret\n").contains("secret"));
        assert!(!refused("\u{1b}[2J = 1\n").contains('\u{1b}'));
        assert!(!refused("\"\\u001b[2J\" = 1\n").contains('\u{1b}'));
        assert!(refused(&format!("{} = 1\n", "a.".repeat(9000))).len() < 300);
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let text = "api_key_file = \"key\"\n[[lineage]]\ncert = \"c.pem\"\nkey = \"/k.pem\"\nwait = 5\n";
        let file = parse(Path::new("/etc/edgecert/config.toml"), text).unwrap();
        assert_eq!(file.layer.api_key_file, Some("/etc/edgecert/key".into()));
        assert_eq!(
            file.lineages[0].place,
            Location::Files { cert: "/etc/edgecert/c.pem".into(), key: "/k.pem".into() }
        );
        assert_eq!(file.lineages[0].layer.wait, Some(5));
        for (name, wanted) in
            [("./tell", "/etc/edgecert/./tell"), ("/bin/tell", "/bin/tell"), ("tell", "tell")]
        {
            let text = format!("on_failure = [\"{name}\", \"a/b\"]\n");
            let program = parse(Path::new("/etc/edgecert/config.toml"), &text).unwrap().on_failure.unwrap();
            assert_eq!((program.name, program.arguments), (wanted.into(), vec!["a/b".to_owned()]));
        }
    }
}
