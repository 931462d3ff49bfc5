//! Layouts of a lineage's directory, or its certificate file, for `--lineage PATH`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::hook::is_stale;
use super::{AcmeClient, Source, SourceError, acme_directory};
use crate::bundle::Files;

impl Source {
    /// The lineage in a directory, or of a certificate file.
    pub(crate) fn at(path: &Path) -> Result<Self, SourceError> {
        // Most paths are directories.
        let directory = match Directory::list(path) {
            Err(_) if path.is_file() => return certificate_file(path),
            listed => listed?,
        };
        let mut source = directory.source()?;
        // lego's `--path` is the parent directory.
        if source.is_none() && directory.has("certificates") {
            source = Directory::list(&path.join("certificates"))?.source()?;
        }
        let reason = "it contains no fullchain.pem, fullchain.cer, NAME.crt or tls.crt";
        let source = source.ok_or_else(|| SourceError::not_a_lineage(path, reason))?;
        Ok(Self { directory: Some(path.to_owned()), ..source })
    }
}

/// A directory, with the names of its files in order.
struct Directory<'a> {
    path: &'a Path,
    names: Vec<String>,
}

impl<'a> Directory<'a> {
    fn list(path: &'a Path) -> Result<Self, SourceError> {
        let entries = fs::read_dir(path).map_err(|error| SourceError::unreadable(path, &error))?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        Ok(Self { path, names })
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|other| other == name)
    }

    /// The lineage of the first layout that fits. Several lineages are an error.
    fn source(&self) -> Result<Option<Source>, SourceError> {
        use AcmeClient as C;
        let has = |name: &str| self.has(name);
        if has("tls.crt") || has("tls.key") {
            return Ok(Some(Source::of_secret(&kubernetes_version(self.path))));
        }
        // The place of its key is unmistakable, whatever else is beside the certificate.
        if let Some(source) = self.uacme() {
            return Ok(Some(source));
        }
        let pairs = self.lineages("*.crt", "*.key");
        // `tailscale cert` writes into any directory.
        let is_tailnet = !pairs.is_empty() && pairs.iter().all(|name| name.ends_with(".ts.net"));
        let is_posh = has("fullchain.cer") && (has("order.json") || has("fullchain.pfx"));
        let is_getssl = has("getssl.cfg") || has("chain.crt") && has("fullchain.crt");
        let has_certbot_files = has("fullchain.pem") || has("privkey.pem");
        let is_step = self.path.ends_with("step/certs") || self.path.ends_with(".step/certs");
        // Certificate and key, with `*` for the name of the lineage, of each client that has left its mark: a file beside
        // them, or their names.
        let layouts = [
            (C::PoshAcme, "fullchain.cer", "cert.key", is_posh && has("cert.key")),
            (C::SimpleAcme, "*-chain.pem", "*-key.pem", true),
            (C::Acmed, "*.crt.pem", "*.pk.pem", true),
            // Apache prefers the first of `MDPrivateKeys`; without a list, that is RSA.
            (C::ModMd, "pubcert.pem", "privkey.pem", has("pubcert.pem") && has("privkey.pem")),
            (C::ModMd, "pubcert.*.pem", "privkey.*.pem", true),
            (C::Getssl, "*.crt", "*.key", is_getssl),
            (C::Tailscale, "*.crt", "*.key", has("acme-account.key.pem") || is_tailnet),
            (C::Caddy, "*.crt", "*.key", pairs.iter().any(|name| self.is_of_caddy(name))),
            (C::Step, "*.crt", "*.key", is_step),
            (self.certbot_or_dehydrated(), "fullchain.pem", "privkey.pem", has_certbot_files),
            (C::AcmeSh, "*.cer", "*.key", true),
            (C::Lego, "*.crt", "*.key", true),
            // traefik-certs-dumper with a directory for each domain.
            (C::Files, "certificate.crt", "privatekey.key", has("certificate.crt") && has("privatekey.key")),
        ];
        for (client, cert, key, _) in layouts.into_iter().filter(|(.., is_marked)| *is_marked) {
            let name = match self.lineages(cert, key).as_slice() {
                _ if !key.contains('*') => "",
                [] => continue,
                [name] => name,
                several => {
                    let names = several.iter().map(|name| crate::text::sanitize(name)).collect();
                    return Err(SourceError::SeveralLineages { directory: self.path.to_owned(), names });
                }
            };
            let file = |pattern: &str| self.path.join(pattern.replace('*', name));
            let files = Files { cert: file(cert), issuers: None, key: Some(file(key)) };
            let files = match client {
                C::AcmeSh if is_stale(&file("fullchain.cer"), &files.cert) => {
                    Files { issuers: Some(file("ca.cer")), ..files }
                }
                C::AcmeSh => Files { cert: file("fullchain.cer"), ..files },
                C::Getssl => Files { cert: file("fullchain.crt"), ..files },
                C::Lego => Files { issuers: Some(file("*.issuer.crt")), ..files },
                _ => files,
            };
            return Ok(Some(Source::new(client, files)));
        }
        Ok(None)
    }

    /// Each name that `*` stands for in the names of two files.
    fn lineages(&self, cert: &str, key: &str) -> Vec<&str> {
        let (before, after) = key.split_once('*').unwrap_or((key, ""));
        let names = self.names.iter().filter_map(|name| name.strip_prefix(before)?.strip_suffix(after));
        names.filter(|name| self.has(&cert.replace('*', name))).collect()
    }

    /// Whether `NAME.json` is one of Caddy's.
    fn is_of_caddy(&self, name: &str) -> bool {
        let json = acme_directory::read_text(&self.path.join(format!("{name}.json")));
        json.is_some_and(|json| json.contains("\"sans\"") && json.contains("\"issuer_data\""))
    }

    /// Distinguishes two clients with the same file names: dehydrated's links point to `privkey-TIMESTAMP.pem` in the
    /// same directory.
    fn certbot_or_dehydrated(&self) -> AcmeClient {
        let has_target = self.names.iter().any(|name| name.starts_with("privkey-"));
        let target = has_target.then(|| fs::read_link(self.path.join("privkey.pem")).ok()).flatten();
        let name = target.as_deref().and_then(Path::file_name).map(OsStr::to_string_lossy);
        let is_dehydrated = name.is_some_and(|name| name.starts_with("privkey-"));
        if is_dehydrated { AcmeClient::Dehydrated } else { AcmeClient::Certbot }
    }

    /// `CONFDIR/NAME/cert.pem`, with the key in `CONFDIR/private/NAME/key.pem`.
    fn uacme(&self) -> Option<Source> {
        let key = self.path.parent()?.join("private").join(self.path.file_name()?).join("key.pem");
        let is_uacme = self.has("cert.pem") && key.exists();
        let files = Files { cert: self.path.join("cert.pem"), issuers: None, key: Some(key) };
        is_uacme.then(|| Source::new(AcmeClient::Uacme, files))
    }
}

/// A certificate whose key has the same name in the same directory (nginx), has it in the directory `private` beside
/// (traefik-certs-dumper), or is in the same file (`HAProxy`).
fn certificate_file(path: &Path) -> Result<Source, SourceError> {
    if !matches!(path.extension().and_then(OsStr::to_str), Some("crt" | "cer" | "pem")) {
        return Err(SourceError::not_a_lineage(path, "its name does not end with .crt, .cer or .pem"));
    }
    let beside = path.with_extension("key");
    let private = path.parent().and_then(Path::parent).zip(beside.file_name());
    let private = private.map(|(parent, key)| parent.join("private").join(key));
    let key = [Some(beside), private].into_iter().flatten().find(|key| key.is_file());
    if key.is_none() {
        let text = fs::read(path).map_err(|error| SourceError::unreadable(path, &error))?;
        if memchr::memmem::find(&text, b"PRIVATE KEY-----").is_none() {
            let reason = "there is no key for it, neither in the file nor beside it";
            return Err(SourceError::not_a_lineage(path, reason));
        }
    }
    Ok(Source::of_files(path.to_owned(), key))
}

/// The current version of a mounted secret. Kubernetes switches both files at once by replacing the link `..data`;
/// resolving it once ensures that both are of the same version.
fn kubernetes_version(directory: &Path) -> PathBuf {
    fs::read_link(directory.join("..data"))
        .map_or_else(|_| directory.to_owned(), |version| directory.join(version))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn path_may_be_a_certificate_file() {
        let directory = tempfile::TempDir::new().unwrap();
        let [cert, key] = ["a.crt", "a.key"].map(|name| directory.path().join(name));
        assert!(matches!(Source::at(&cert), Err(SourceError::NotALineage { .. })));
        for path in [&cert, &key] {
            fs::write(path, "").unwrap();
        }
        assert_eq!(Source::at(&cert).unwrap().files.key, Some(key));
    }

    #[test]
    fn link_tells_dehydrated_from_certbot() {
        for (target, file, client) in [
            ("privkey-1700000000.pem", "privkey-1700000000.pem", AcmeClient::Dehydrated),
            ("../../archive/a/privkey1.pem", "privkey-rsa.pem", AcmeClient::Certbot),
        ] {
            let directory = tempfile::TempDir::new().unwrap();
            for name in ["fullchain.pem", file] {
                fs::write(directory.path().join(name), "").unwrap();
            }
            symlink(target, directory.path().join("privkey.pem")).unwrap();
            assert_eq!(Source::at(directory.path()).unwrap().client, client);
        }
    }
}
