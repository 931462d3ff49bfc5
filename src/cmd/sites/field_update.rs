//! The fields that `create` and `update` send, from `--from`, `--origin` and `--set`. Fields of known type are checked
//! before anything is sent.

use std::io::Read as _;
use std::num::NonZeroU16;
use std::path::Path;

use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use crate::cli::FieldArgs;
use crate::error::{CommandError, ErrorKind, Result, read_hint};
use crate::{fields, file, text};

/// Names and values to save.
pub(super) type Fields = Map<String, Value>;

/// Maximum size of a file of fields.
const MAX_BYTES: u64 = 1 << 20;

/// Collects the fields that only the file sets, and those that the command line names, without checking them.
pub(super) fn read(args: &FieldArgs) -> Result<(Fields, Fields)> {
    let mut of_file = args.from.as_deref().map(read_file).transpose()?.unwrap_or_default();
    let mut named = Fields::new();
    named.extend(args.assignments.iter().cloned());
    add_origins(&args.origins, &mut named, &of_file)?;
    of_file.retain(|name, _| !named.contains_key(name));
    Ok((of_file, named))
}

/// Checks the fields of known type.
pub(super) fn check(fields: &Fields) -> Result<()> {
    let wrong: Vec<String> =
        fields.iter().filter_map(|(name, value)| fields::check(name, value).err()).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let message = format_args!("{}; nothing was sent", wrong.join("; "));
    Err(CommandError::new(ErrorKind::Refused, message).hint(
        r#"give each field a value of its type, for example --set force_https=true or --set 'origins=[{"addr":"192.0.2.10","weight":1,"status":true}]'"#,
    ))
}

/// Reads an object of fields, or the output of `sites get --json`.
fn read_file(path: &Path) -> Result<Fields> {
    let text = match path.to_str() {
        Some("-") => {
            let mut text = Zeroizing::new(String::new());
            std::io::stdin().lock().take(MAX_BYTES).read_to_string(&mut text).map_err(|error| {
                let message = format_args!("cannot read standard input: {}", file::reason(&error));
                CommandError::new(ErrorKind::NoInput, message).hint("pipe an object of fields in JSON to it")
            })?;
            text
        }
        _ => file::read_text(path, MAX_BYTES, file::default_deadline())
            .map_err(|error| CommandError::new(ErrorKind::NoInput, &error).hint(read_hint(error.kind)))?,
    };
    let refused = |message: &str| {
        let message = format_args!("{}{message}; nothing was sent", text::path(path));
        CommandError::new(ErrorKind::Refused, message)
            .hint(r#"write an object of fields, for example {"force_https": true}"#)
    };
    // Some editors write a byte order mark.
    let json = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| refused(&format!(":{}: not JSON", error.line())))?;
    match json {
        Value::Object(object) => Ok(match object.get("site") {
            Some(Value::Object(site)) => site.clone(),
            _ => object,
        }),
        _ => Err(refused(" holds no JSON object")),
    }
}

/// Adds origins, and the field of the site that holds their common port.
fn add_origins(origins: &[(Value, Option<NonZeroU16>)], named: &mut Fields, of_file: &Fields) -> Result<()> {
    let misused =
        |message: &str, hint: &'static str| Err(CommandError::new(ErrorKind::Usage, message).hint(hint));
    let [(_, port), others @ ..] = origins else { return Ok(()) };
    if others.iter().any(|(_, other)| other != port) {
        let hint = "give every --origin the same port, or none";
        return misused("a site has one port for all of its origins; --origin names several", hint);
    }
    let mut added = Fields::new();
    if let Some(port) = port {
        let protocol = named.get("origin_protocol").or_else(|| of_file.get("origin_protocol"));
        let Some(protocol @ ("http" | "https")) = protocol.and_then(Value::as_str) else {
            return misused(
                "--origin has a port, but the protocol of the origins is unknown",
                "add --set origin_protocol=http or https; for follow, set origin_http_port and origin_https_port",
            );
        };
        added.insert(format!("origin_{protocol}_port"), json!(port));
    }
    added.insert("origins".into(), origins.iter().map(|(origin, _)| origin.clone()).collect());
    if let Some(field) = added.keys().find(|field| named.contains_key(*field)) {
        return misused(&format!("--origin and --set {field}=VALUE set the same field"), "use one of them");
    }
    named.extend(added);
    Ok(())
}
