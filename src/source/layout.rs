//! Layouts of a lineage's directory, or its certificate file, for `--lineage PATH`.

use std::fs;
use std::path::{Path, PathBuf};

use super::hook::is_stale;
use super::{AcmeClient, Source, SourceError};
use crate::bundle::Files;
use crate::file;

/// Maximum size of a client's own file.
const MAX_BYTES: u64 = 256 << 10;

/// Recognises the layout by the files in the directory.
pub(crate) fn read(directory: &Path) -> Result<Source, SourceError> {
    if directory.is_file() {
        return certificate_file(directory);
    }
    let names = list(directory)?;
    let has = |name: &str| names.iter().any(|other| other == name);
    if has("tls.crt") || has("tls.key") {
        return Ok(Source::of_secret(&kubernetes_version(directory)));
    }
    if let Some(source) = marked(directory, &names)? {
        return Ok(source);
    }
    if has("fullchain.pem") || has("privkey.pem") {
        let client = certbot_or_dehydrated(directory);
        return Ok(Source::in_directory(client, directory, "fullchain.pem", "privkey.pem"));
    }
    if let Some(source) = acme_sh(directory, &names)? {
        return Ok(source);
    }
    if let Some(source) = lego(directory, &names)? {
        return Ok(source);
    }
    // traefik-certs-dumper with a directory for each domain.
    if has("certificate.crt") && has("privatekey.key") {
        let client = AcmeClient::Files;
        return Ok(Source::in_directory(client, directory, "certificate.crt", "privatekey.key"));
    }
    // lego's `--path` is the parent directory.
    let certificates = directory.join("certificates");
    if has("certificates")
        && let Some(source) = lego(&certificates, &list(&certificates)?)?
    {
        return Ok(source);
    }
    let reason = "it contains no fullchain.pem, fullchain.cer, NAME.crt or tls.crt";
    Err(SourceError::not_a_lineage(directory, reason))
}

/// Recognises the layouts that carry a client's own marks: a file beside the certificate, a suffix, or the place of the
/// key.
fn marked(directory: &Path, names: &[String]) -> Result<Option<Source>, SourceError> {
    let has = |name: &str| names.iter().any(|other| other == name);
    let found = |client, cert: &str, key: &str| Ok(Some(Source::in_directory(client, directory, cert, key)));
    if has("cert.key") && has("fullchain.cer") && (has("order.json") || has("fullchain.pfx")) {
        return found(AcmeClient::PoshAcme, "fullchain.cer", "cert.key");
    }
    for (client, suffix, key_suffix) in
        [(AcmeClient::SimpleAcme, "-chain.pem", "-key.pem"), (AcmeClient::Acmed, ".crt.pem", ".pk.pem")]
    {
        if let Some(stem) = only(directory, &stems(names, suffix, key_suffix))? {
            return found(client, &format!("{stem}{suffix}"), &format!("{stem}{key_suffix}"));
        }
    }
    if let Some(source) = mod_md(directory, names)?.or_else(|| uacme(directory, names)) {
        return Ok(Some(source));
    }
    let stems = stems(names, ".crt", ".key");
    let is_getssl = has("getssl.cfg") || has("chain.crt") && has("fullchain.crt");
    let client = if is_getssl { Some(AcmeClient::Getssl) } else { own_mark(directory, names, &stems) };
    match (client, only(directory, &stems)) {
        (Some(AcmeClient::Getssl), Ok(Some(stem))) => {
            found(AcmeClient::Getssl, "fullchain.crt", &format!("{stem}.key"))
        }
        (Some(client), Ok(Some(stem))) => found(client, &format!("{stem}.crt"), &format!("{stem}.key")),
        (Some(_), Err(error)) => Err(error),
        _ => Ok(None),
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
fn stems<'a>(names: &'a [String], suffix: &str, key_suffix: &str) -> Vec<&'a str> {
    let stems = names.iter().filter_map(|name| name.strip_suffix(key_suffix));
    stems.filter(|stem| names.contains(&format!("{stem}{suffix}"))).collect()
}

/// A certificate whose key has the same name in the same directory (nginx), has it in the directory `private` beside
/// (traefik-certs-dumper), or is in the same file (`HAProxy`).
fn certificate_file(path: &Path) -> Result<Source, SourceError> {
    let is_certificate =
        matches!(path.extension().and_then(|ending| ending.to_str()), Some("crt" | "cer" | "pem"));
    let (Some(stem), Some(directory), true) = (path.file_stem(), path.parent(), is_certificate) else {
        return Err(SourceError::not_a_lineage(path, "its name does not end with .crt, .cer or .pem"));
    };
    let mut key = stem.to_owned();
    key.push(".key");
    let beside = directory.join(&key);
    let private = directory.parent().map(|parent| parent.join("private").join(&key));
    let key = [Some(beside), private].into_iter().flatten().find(|key| key.is_file());
    if key.is_none() {
        let text = fs::read(path).map_err(|error| SourceError::unreadable(path, &error))?;
        if memchr::memmem::find(&text, b"PRIVATE KEY-----").is_none() {
            let reason = "there is no key for it, neither in the file nor beside it";
            return Err(SourceError::not_a_lineage(path, reason));
        }
    }
    Ok(Source::new(AcmeClient::Files, Files { cert: path.to_owned(), issuers: None, key }))
}

fn list(directory: &Path) -> Result<Vec<String>, SourceError> {
    let entries = fs::read_dir(directory).map_err(|error| SourceError::unreadable(directory, &error))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    Ok(names)
}

/// The current version of a mounted secret. Kubernetes switches both files at once by replacing the link `..data`;
/// resolving it once ensures that both are of the same version.
fn kubernetes_version(directory: &Path) -> PathBuf {
    fs::read_link(directory.join("..data"))
        .map_or_else(|_| directory.to_owned(), |version| directory.join(version))
}

/// Distinguishes two clients with the same file names: dehydrated's links point to `privkey-TIMESTAMP.pem` in the same
/// directory.
fn certbot_or_dehydrated(directory: &Path) -> AcmeClient {
    match fs::read_link(directory.join("privkey.pem")) {
        Ok(target)
            if target.file_name().is_some_and(|name| name.to_string_lossy().starts_with("privkey-")) =>
        {
            AcmeClient::Dehydrated
        }
        _ => AcmeClient::Certbot,
    }
}

/// Finds `DOMAIN.key`, `DOMAIN.cer`, `ca.cer` and `fullchain.cer`; the full chain may be stale.
fn acme_sh(directory: &Path, names: &[String]) -> Result<Option<Source>, SourceError> {
    let Some(domain) = only(directory, &stems(names, ".cer", ".key"))? else { return Ok(None) };
    let leaf = directory.join(format!("{domain}.cer"));
    let full_chain = directory.join("fullchain.cer");
    let key = Some(directory.join(format!("{domain}.key")));
    let files = if is_stale(&full_chain, &leaf) {
        Files { cert: leaf, issuers: Some(directory.join("ca.cer")), key }
    } else {
        Files { cert: full_chain, issuers: None, key }
    };
    Ok(Some(Source::new(AcmeClient::AcmeSh, files)))
}

/// Finds `NAME.crt`, `NAME.key` and possibly `NAME.issuer.crt`.
fn lego(directory: &Path, names: &[String]) -> Result<Option<Source>, SourceError> {
    let Some(stem) = only(directory, &stems(names, ".crt", ".key"))? else { return Ok(None) };
    let file = |ending: &str| directory.join(format!("{stem}.{ending}"));
    let files = Files { cert: file("crt"), issuers: Some(file("issuer.crt")), key: Some(file("key")) };
    Ok(Some(Source::new(AcmeClient::Lego, files)))
}

/// Returns the lineage found, if any; several are an error.
fn only<'a>(directory: &Path, found: &[&'a str]) -> Result<Option<&'a str>, SourceError> {
    match found {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => Err(SourceError::SeveralLineages {
            directory: directory.to_owned(),
            names: several.iter().map(|name| crate::text::sanitize(name)).collect(),
        }),
    }
}
