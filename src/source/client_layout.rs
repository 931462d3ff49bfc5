//! Layouts that carry a client's own marks: a file beside the certificate, a suffix, or the place of the key. What has
//! none of them is for `layout` to recognise.

use std::path::Path;

use super::layout::only;
use super::{AcmeClient, Source, SourceError};
use crate::bundle::Files;
use crate::file;

/// Maximum size of a client's own file.
const MAX_BYTES: u64 = 256 << 10;

/// Recognises the layout of a directory with these files.
pub(super) fn read(directory: &Path, names: &[String]) -> Result<Option<Source>, SourceError> {
    let has = |name: &str| names.iter().any(|other| other == name);
    let found = |client, cert: &str, key: &str| Ok(Some(Source::in_directory(client, directory, cert, key)));
    if has("cert.key") && has("fullchain.cer") && (has("order.json") || has("fullchain.pfx")) {
        return found(AcmeClient::PoshAcme, "fullchain.cer", "cert.key");
    }
    for (suffix, key_suffix) in [("-chain.pem", "-key.pem"), (".crt.pem", ".pk.pem")] {
        let stems = stems(names, suffix, key_suffix);
        if let Some(stem) = only(directory, &stems)? {
            let client = if suffix == ".crt.pem" { AcmeClient::Acmed } else { AcmeClient::SimpleAcme };
            return found(client, &format!("{stem}{suffix}"), &format!("{stem}{key_suffix}"));
        }
    }
    if let Some(source) = mod_md(directory, names)? {
        return Ok(Some(source));
    }
    if let Some(source) = uacme(directory, names) {
        return Ok(Some(source));
    }
    let stems = stems(names, ".crt", ".key");
    let is_getssl = has("getssl.cfg") || has("chain.crt") && has("fullchain.crt");
    if is_getssl && let Some(stem) = only(directory, &stems)? {
        return found(AcmeClient::Getssl, "fullchain.crt", &format!("{stem}.key"));
    }
    let Some(client) = own_mark(directory, names, &stems) else { return Ok(None) };
    match only(directory, &stems)? {
        Some(stem) => found(client, &format!("{stem}.crt"), &format!("{stem}.key")),
        None => Ok(None),
    }
}

/// The client of `NAME.crt` and `NAME.key`, if they are not lego's.
fn own_mark(directory: &Path, names: &[String], stems: &[&str]) -> Option<AcmeClient> {
    let is_step = directory.ends_with("step/certs") || directory.ends_with(".step/certs");
    if names.iter().any(|name| name == "acme-account.key.pem") || is_tailnet(stems) {
        return Some(AcmeClient::Tailscale);
    }
    let is_caddy = stems.iter().any(|stem| {
        let json =
            file::read_text(&directory.join(format!("{stem}.json")), MAX_BYTES, file::default_deadline());
        json.is_ok_and(|json| json.contains("\"sans\"") && json.contains("\"issuer_data\""))
    });
    if is_caddy { Some(AcmeClient::Caddy) } else { is_step.then_some(AcmeClient::Step) }
}

/// Whether all names are those of machines in a tailnet; `tailscale cert` writes into any directory.
fn is_tailnet(stems: &[&str]) -> bool {
    !stems.is_empty() && stems.iter().all(|stem| stem.ends_with(".ts.net"))
}

/// `pubcert.pem` with `privkey.pem`, and for further types of keys `pubcert.TYPE.pem` with `privkey.TYPE.pem`.
fn mod_md(directory: &Path, names: &[String]) -> Result<Option<Source>, SourceError> {
    let kinds = names.iter().filter_map(|name| name.strip_prefix("pubcert")?.strip_suffix("pem"));
    let kinds: Vec<&str> = kinds.filter(|kind| names.contains(&format!("privkey{kind}pem"))).collect();
    // Apache prefers the first of `MDPrivateKeys`; without a list, that is RSA.
    let kind = if kinds.contains(&".") { Some(".") } else { only(directory, &kinds)? };
    Ok(kind.map(|kind| {
        let (cert, key) = (format!("pubcert{kind}pem"), format!("privkey{kind}pem"));
        Source::in_directory(AcmeClient::ModMd, directory, &cert, &key)
    }))
}

/// `CONFDIR/NAME/cert.pem`, with the key in `CONFDIR/private/NAME/key.pem`.
fn uacme(directory: &Path, names: &[String]) -> Option<Source> {
    let key = directory.parent()?.join("private").join(directory.file_name()?).join("key.pem");
    let is_uacme = names.iter().any(|name| name == "cert.pem") && key.exists();
    let files = Files { cert: directory.join("cert.pem"), issuers: None, key: Some(key) };
    is_uacme.then(|| Source::new(AcmeClient::Uacme, files))
}

/// Each `NAME` for which both files exist.
pub(super) fn stems<'a>(names: &'a [String], suffix: &str, key_suffix: &str) -> Vec<&'a str> {
    let stems = names.iter().filter_map(|name| name.strip_suffix(key_suffix));
    stems.filter(|stem| names.contains(&format!("{stem}{suffix}"))).collect()
}
