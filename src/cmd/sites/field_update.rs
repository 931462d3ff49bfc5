//! The fields that a create or an update sends: those of a file, then origins, then single settings, each of known type
//! looked at before anything is sent.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use super::change::holds;
use super::decided;
use crate::cli::{FieldArgs, Origin};
use crate::error::{CommandError, ErrorKind};
use crate::{fields, file};

/// What is to be saved.
pub(super) struct FieldUpdate {
    pub(super) fields: Map<String, Value>,
    /// Those of them that stand in the file alone.
    of_file: BTreeSet<String>,
}

/// No file of fields is larger.
const MAX_BYTES: u64 = 1 << 20;

impl FieldUpdate {
    /// Gathers the fields; nothing is looked at yet.
    pub(super) fn read(args: &FieldArgs) -> Result<Self, CommandError> {
        let mut fields = args.from.as_deref().map(read_file).transpose()?.unwrap_or_default();
        let mut named = Map::new();
        for setting in &args.settings {
            named.insert(setting.field.clone(), setting.value.clone());
        }
        add_origins(&args.origins, &mut named, &fields)?;
        fields.extend(named.clone());
        let of_file = fields.keys().filter(|name| !named.contains_key(*name)).cloned().collect();
        Ok(Self { fields, of_file })
    }

    /// Leaves out what stands in the file and is so already: a file may be the whole site with one field edited.
    pub(super) fn leave_out_what_is_so(&mut self, now: &Map<String, Value>) {
        self.fields.retain(|name, wanted| {
            let is_so = now.get(name).is_some_and(|found| holds(found, wanted) && holds(wanted, found));
            !(is_so && self.of_file.contains(name))
        });
    }

    /// Looks at every field before anything is sent.
    pub(super) fn check(&self) -> Result<(), CommandError> {
        let wrong = self.fields.iter().filter_map(|(name, value)| fields::check(name, value).err());
        let wrong: Vec<String> = wrong.map(|wrong| wrong.to_string()).collect();
        if wrong.is_empty() {
            return Ok(());
        }
        let message = format!("{}; nothing was sent", wrong.join("; "));
        let hint = r#"give each field the type that it has, for example --set force_https=true or --set 'origins=[{"addr":"192.0.2.10","weight":1,"status":true}]'"#;
        Err(decided(ErrorKind::Refused, message, hint))
    }

    /// Unknown fields that look like known ones, in words.
    pub(super) fn typo_warnings(&self) -> Vec<String> {
        self.fields.keys().filter_map(|name| super::change::suggestion(name)).collect()
    }

    /// Whether a file was read. What stands in it can only be judged beside the site.
    pub(super) fn has_file(&self) -> bool {
        !self.of_file.is_empty()
    }
}

/// An object of fields, or the report of `sites get --json`.
fn read_file(path: &Path) -> Result<Map<String, Value>, CommandError> {
    let text = if path == Path::new("-") { read_input()? } else { file::read_text(path, MAX_BYTES)? };
    let shown = crate::text::path(path);
    let hint = r#"write an object of fields, for example {"force_https": true}"#;
    let bad = |what: String| decided(ErrorKind::Refused, format!("{shown} {what}; nothing was sent"), hint);
    let json: Value =
        // Editors of another system put a mark before the text.
        serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| bad(format!("is not JSON in line {}", error.line())))?;
    match json {
        Value::Object(mut map) => match map.remove("site") {
            Some(Value::Object(site)) => Ok(site),
            Some(other) => {
                map.insert("site".into(), other);
                Ok(map)
            }
            None => Ok(map),
        },
        _ => Err(bad("holds no JSON object".into())),
    }
}

fn read_input() -> Result<Zeroizing<String>, CommandError> {
    let mut text = Zeroizing::new(String::new());
    let read = std::io::stdin().lock().take(MAX_BYTES).read_to_string(&mut text);
    read.map(|_| text).map_err(|error| {
        let message = format!("cannot read standard input: {}", file::reason(&error));
        decided(ErrorKind::NoInput, message, "pipe an object of fields in JSON into it")
    })
}

/// Origins as the site has them (section 2.3). Their port is a field of the site.
fn add_origins(
    origins: &[Origin],
    named: &mut Map<String, Value>,
    file: &Map<String, Value>,
) -> Result<(), CommandError> {
    if origins.is_empty() {
        return Ok(());
    }
    let usage = |message: &str, hint: &str| Err(decided(ErrorKind::Usage, message, hint));
    if named.contains_key("origins") {
        return usage("--origin and --set origins=… say the same thing twice", "use one of them");
    }
    let mut ports: Vec<u16> = origins.iter().filter_map(|origin| origin.port).collect();
    ports.dedup();
    let list = origins
        .iter()
        .map(|origin| json!({"addr": origin.addr, "weight": origin.weight.unwrap_or(1), "status": true}));
    let list = list.collect();
    match ports.as_slice() {
        [] => {}
        [port] if origins.iter().all(|origin| origin.port.is_some()) => {
            let protocol = named.get("origin_protocol").or_else(|| file.get("origin_protocol"));
            let field = match protocol.and_then(Value::as_str) {
                Some("http") => "origin_http_port",
                Some("https") => "origin_https_port",
                _ => {
                    return usage(
                        "which protocol the port of --origin is for is not known",
                        "add --set origin_protocol=http or https; for follow set origin_http_port and origin_https_port",
                    );
                }
            };
            if named.insert(field.into(), json!(port)).is_some() {
                return usage("--origin has a port, and --set says another time which", "use one of them");
            }
        }
        _ => {
            return usage(
                "a site has one port for all of its origins, and --origin names several",
                "give every --origin the same port",
            );
        }
    }
    named.insert("origins".into(), list);
    Ok(())
}
