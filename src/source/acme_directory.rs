//! Reads the URL of the ACME directory from the client's own files; it reveals staging environments.
//!
//! The URL is only a hint, so a file that is missing or cannot be parsed is not an error.

use std::path::Path;

use zeroize::Zeroizing;

use super::AcmeClient;
use crate::bundle::Files;
use crate::file;

/// Reads a client's own file; none is larger than this.
pub(super) fn read_text(path: &Path) -> Option<Zeroizing<String>> {
    file::read_text(path, 256 << 10, file::default_deadline()).ok()
}

/// The URL that the client's files give, if any.
pub(super) fn read(client: AcmeClient, files: &Files) -> Option<String> {
    match client {
        AcmeClient::Certbot => certbot(files.cert.parent()?),
        AcmeClient::AcmeSh => value_in(&files.key.as_ref()?.with_extension("conf"), "Le_API="),
        AcmeClient::Lego => lego(&files.cert.with_extension("json")),
        // Named after the URL: `certificates/ISSUER/NAME/NAME.crt`, `SERVER/ACCOUNT/ORDER/fullchain.cer`.
        AcmeClient::Caddy => directory_name(files.cert.ancestors().nth(2)?),
        AcmeClient::PoshAcme => directory_name(files.cert.ancestors().nth(3)?),
        _ => None,
    }
}

/// The name of a directory begins with the host of the URL.
fn directory_name(path: &Path) -> Option<String> {
    Some(format!("https://{}", path.file_name()?.to_str()?))
}

/// `renewal/NAME.conf` belongs to `live/NAME` and has `server = URL`.
fn certbot(lineage: &Path) -> Option<String> {
    let name = format!("{}.conf", lineage.file_name()?.to_str()?);
    value_in(&lineage.parent()?.parent()?.join("renewal").join(name), "server =")
}

/// `NAME.json` has `certUrl`, which is on the host of the directory.
fn lego(path: &Path) -> Option<String> {
    let json: serde_json::Value = serde_json::from_str(&read_text(path)?).ok()?;
    json.get("certUrl")?.as_str().map(str::to_owned)
}

/// The value after a prefix at the start of a line, without quotes.
fn value_in(path: &Path, prefix: &str) -> Option<String> {
    let text = read_text(path)?;
    let value = text.lines().find_map(|line| line.trim_start().strip_prefix(prefix))?;
    Some(value.trim().trim_matches('\'').to_owned())
}
