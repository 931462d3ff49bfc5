//! The fields that `create` and `update` send, from `--from`, `--origin` and `--set`. Fields of known type are checked
//! before anything is sent.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use super::change::{contains, suggestion};
use crate::cli::{FieldArgs, Origin};
use crate::error::{CommandError, Diagnostic, ErrorKind, read_hint};
use crate::file::{self, ReadError};
use crate::hint::Hint;
use crate::{fields, text};

/// Fields to save.
pub(super) struct FieldUpdate {
    pub(super) fields: Map<String, Value>,
    /// Names of the fields that only the file sets.
    from_file: BTreeSet<String>,
}

/// Why fields cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum FieldUpdateError {
    #[error("{}; nothing was sent", wrong.join("; "))]
    WrongType { wrong: Vec<String> },
    #[error("{}:{line}: not JSON; nothing was sent", text::path(path))]
    NotJson { path: PathBuf, line: usize },
    #[error("{} holds no JSON object; nothing was sent", text::path(.0))]
    NotAnObject(PathBuf),
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    #[error("cannot read standard input: {reason}")]
    Stdin { reason: String },
    #[error("--origin and --set origins=VALUE set the same field")]
    OriginsTwice,
    #[error("--origin has a port, but the protocol of the origins is unknown")]
    UnknownProtocol,
    #[error("--origin and --set set the same port")]
    PortTwice,
    #[error("a site has one port for all of its origins; --origin names several")]
    SeveralPorts,
}

impl Diagnostic for FieldUpdateError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::WrongType { .. } | Self::NotJson { .. } | Self::NotAnObject(_) => ErrorKind::Refused,
            Self::Unreadable(_) | Self::Stdin { .. } => ErrorKind::NoInput,
            Self::OriginsTwice | Self::UnknownProtocol | Self::PortTwice | Self::SeveralPorts => {
                ErrorKind::Usage
            }
        }
    }

    fn hint(&self) -> Option<Hint> {
        let hint = match self {
            Self::WrongType { .. } => {
                r#"give each field a value of its type, for example --set force_https=true or --set 'origins=[{"addr":"192.0.2.10","weight":1,"status":true}]'"#
            }
            Self::NotJson { .. } | Self::NotAnObject(_) => {
                r#"write an object of fields, for example {"force_https": true}"#
            }
            Self::Unreadable(error) => read_hint(error.kind),
            Self::Stdin { .. } => "pipe an object of fields in JSON to it",
            Self::OriginsTwice | Self::PortTwice => "use one of them",
            Self::UnknownProtocol => {
                "add --set origin_protocol=http or https; for follow, set origin_http_port and origin_https_port"
            }
            Self::SeveralPorts => "give every --origin the same port",
        };
        Some(hint.into())
    }
}

/// Maximum size of a file of fields.
const MAX_BYTES: u64 = 1 << 20;

impl FieldUpdate {
    /// Collects the fields without checking them.
    pub(super) fn read(args: &FieldArgs) -> Result<Self, CommandError> {
        let mut fields = args.from.as_deref().map(read_file).transpose()?.unwrap_or_default();
        let mut named = Map::new();
        for assignment in &args.assignments {
            named.insert(assignment.field.clone(), assignment.value.clone());
        }
        add_origins(&args.origins, &mut named, &fields)?;
        fields.extend(named.clone());
        let from_file = fields.keys().filter(|name| !named.contains_key(*name)).cloned().collect();
        Ok(Self { fields, from_file })
    }

    /// Omits fields of the file whose values the site already has: the file may be the whole site with one field
    /// edited.
    pub(super) fn omit_unchanged(&mut self, current: &Map<String, Value>) {
        self.fields.retain(|name, wanted| {
            let is_equal = |found: &Value| contains(found, wanted) && contains(wanted, found);
            !(self.from_file.contains(name) && current.get(name).is_some_and(is_equal))
        });
    }

    /// Checks the fields of known type.
    pub(super) fn check(&self) -> Result<(), FieldUpdateError> {
        let errors = self.fields.iter().filter_map(|(name, value)| fields::check(name, value).err());
        let wrong: Vec<String> = errors.map(|error| error.to_string()).collect();
        if wrong.is_empty() { Ok(()) } else { Err(FieldUpdateError::WrongType { wrong }) }
    }

    /// The record that `cert_id` is set to, 0 for none; `None` if it is not set.
    pub(super) fn cert_id(&self) -> Option<u64> {
        self.fields.get("cert_id").map(|value| value.as_u64().unwrap_or_default())
    }

    /// Returns a warning for each unknown field that resembles a known one.
    pub(super) fn typo_warnings(&self) -> Vec<String> {
        self.fields.keys().filter_map(|name| suggestion(name)).collect()
    }

    /// Whether a file sets fields. Those can only be checked once the site is known.
    pub(super) fn has_file(&self) -> bool {
        !self.from_file.is_empty()
    }
}

/// Reads an object of fields, or the output of `sites get --json`.
fn read_file(path: &Path) -> Result<Map<String, Value>, CommandError> {
    let text = match path.to_str() {
        Some("-") => read_stdin()?,
        _ => file::read_text(path, MAX_BYTES).map_err(FieldUpdateError::from)?,
    };
    // Some editors write a byte order mark.
    let json = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| FieldUpdateError::NotJson { path: path.to_owned(), line: error.line() })?;
    let Value::Object(mut object) = json else {
        return Err(FieldUpdateError::NotAnObject(path.to_owned()).into());
    };
    match object.remove("site") {
        Some(Value::Object(site)) => Ok(site),
        Some(other) => {
            object.insert("site".into(), other);
            Ok(object)
        }
        None => Ok(object),
    }
}

fn read_stdin() -> Result<Zeroizing<String>, FieldUpdateError> {
    let mut text = Zeroizing::new(String::new());
    let read = std::io::stdin().lock().take(MAX_BYTES).read_to_string(&mut text);
    read.map(|_| text).map_err(|error| FieldUpdateError::Stdin { reason: file::reason(&error) })
}

/// Adds origins in the form of section 2.3. Their common port is a field of the site.
fn add_origins(
    origins: &[Origin],
    named: &mut Map<String, Value>,
    from_file: &Map<String, Value>,
) -> Result<(), FieldUpdateError> {
    if origins.is_empty() {
        return Ok(());
    }
    if named.contains_key("origins") {
        return Err(FieldUpdateError::OriginsTwice);
    }
    let mut ports: Vec<u16> = origins.iter().filter_map(|origin| origin.port).collect();
    ports.dedup();
    match ports.as_slice() {
        [] => {}
        [port] if origins.iter().all(|origin| origin.port.is_some()) => {
            let protocol = named.get("origin_protocol").or_else(|| from_file.get("origin_protocol"));
            let field = port_field(protocol.and_then(Value::as_str))?;
            if named.insert(field.into(), json!(port)).is_some() {
                return Err(FieldUpdateError::PortTwice);
            }
        }
        _ => return Err(FieldUpdateError::SeveralPorts),
    }
    let origin =
        |origin: &Origin| json!({"addr": origin.addr, "weight": origin.weight.unwrap_or(1), "status": true});
    named.insert("origins".into(), origins.iter().map(origin).collect());
    Ok(())
}

/// The field that holds the port of the origins.
fn port_field(protocol: Option<&str>) -> Result<&'static str, FieldUpdateError> {
    match protocol {
        Some("http") => Ok("origin_http_port"),
        Some("https") => Ok("origin_https_port"),
        _ => Err(FieldUpdateError::UnknownProtocol),
    }
}
