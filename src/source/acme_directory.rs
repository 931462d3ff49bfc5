//! The ACME directory that a client keeps on record beside a lineage; it betrays staging environments.
//!
//! Read for that alone: a record that is missing or strange is no error.

use std::path::Path;

use super::Client;
use crate::bundle::Files;
use crate::file;

/// No record is larger.
const MAX_BYTES: u64 = 256 << 10;

/// What the client's own record names, where it has one.
pub(super) fn acme_directory(client: Client, files: &Files) -> Option<String> {
    match client {
        Client::Certbot => certbot(files.cert.parent()?),
        Client::AcmeSh => value_in(&files.key.as_ref()?.with_extension("conf"), "Le_API="),
        Client::Lego => lego(&files.cert.with_extension("json")),
        Client::Dehydrated | Client::Kubernetes | Client::Files => None,
    }
}

/// `live/NAME` has its record in `renewal/NAME.conf`, as `server = URL`.
fn certbot(lineage: &Path) -> Option<String> {
    let record = format!("{}.conf", lineage.file_name()?.to_str()?);
    value_in(&lineage.parent()?.parent()?.join("renewal").join(record), "server =")
}

/// `certUrl` leads to the host of the directory.
fn lego(record: &Path) -> Option<String> {
    let text = file::read_text(record, MAX_BYTES).ok()?;
    let record: serde_json::Value = serde_json::from_str(&text).ok()?;
    record.get("certUrl")?.as_str().map(str::to_owned)
}

/// The value behind a name at the beginning of a line, without quotes.
fn value_in(record: &Path, name: &str) -> Option<String> {
    let text = file::read_text(record, MAX_BYTES).ok()?;
    let value = text.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
    Some(value.trim().trim_matches('\'').to_owned())
}
