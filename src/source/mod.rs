//! Whose hook this is, and which files that client renewed.
//!
//! Each client's contract is a function of its variables; names of sites never come from here, only from the leaf.

mod acme_directory;
pub(crate) mod dehydrated;
mod layout;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::bundle::{self, Files};
use crate::env::Env;
use crate::file;

/// The program that renewed the certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Client {
    #[serde(rename = "certbot")]
    Certbot,
    #[serde(rename = "acme.sh")]
    AcmeSh,
    #[serde(rename = "lego")]
    Lego,
    #[serde(rename = "dehydrated")]
    Dehydrated,
    #[serde(rename = "kubernetes")]
    Kubernetes,
    /// The files were named one by one.
    #[serde(rename = "files")]
    Files,
}

impl Client {
    const ALL: [Self; 6] =
        [Self::Certbot, Self::AcmeSh, Self::Lego, Self::Dehydrated, Self::Kubernetes, Self::Files];

    /// The word of the JSON object.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Certbot => "certbot",
            Self::AcmeSh => "acme.sh",
            Self::Lego => "lego",
            Self::Dehydrated => "dehydrated",
            Self::Kubernetes => "kubernetes",
            Self::Files => "files",
        }
    }
}

/// A renewed certificate to deploy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) client: Client,
    pub(crate) files: Files,
    /// The lineage's directory, as it was named or as the files' place tells.
    pub(crate) directory: Option<PathBuf>,
    /// The ACME directory, where the client tells; it betrays staging environments.
    pub(crate) acme_directory: Option<String>,
}

/// Why there is no certificate to look at.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("no certificate is named, and no ACME client's variables are set")]
    NoSource,
    #[error("{} is not a lineage: {reason}", crate::text::path(directory))]
    NotALineage { directory: PathBuf, reason: String },
    #[error("{} holds {} lineages: {}", crate::text::path(directory), names.len(), crate::text::list(names))]
    SeveralLineages { directory: PathBuf, names: Vec<String> },
}

/// What the command line says about the certificate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Named {
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) lineage: Option<PathBuf>,
}

/// The first that applies: the files named, the directory named, the hook's environment.
pub(crate) fn find(named: &Named, env: &Env) -> Result<Source, Error> {
    if let Some(cert) = &named.cert {
        let files = Files { cert: cert.clone(), issuers: None, key: named.key.clone() };
        return Ok(Source::new(Client::Files, files));
    }
    if let Some(directory) = &named.lineage {
        let source = layout::read(directory)?;
        return Ok(Source { directory: Some(directory.clone()), ..source });
    }
    from_env(env).ok_or(Error::NoSource)
}

/// The lineage that an ACME client's variables name; `None` where none of them is set.
pub(crate) fn from_env(env: &Env) -> Option<Source> {
    certbot(env).or_else(|| acme_sh(env)).or_else(|| lego(env))
}

/// A lineage that was deployed before: where the client writes other files than then, they are found again.
pub(crate) fn remembered(client: &str, files: Files, directory: Option<PathBuf>) -> Source {
    let client = Client::ALL.into_iter().find(|known| known.word() == client).unwrap_or(Client::Files);
    let moves = matches!(client, Client::Kubernetes | Client::AcmeSh);
    if let Some(found) = directory.as_ref().filter(|_| moves).and_then(|place| layout::read(place).ok()) {
        return Source { directory, ..found };
    }
    Source { directory, ..Source::new(client, files) }
}

impl Source {
    /// The same lineage as its client keeps it now, which may have written other files since this was found.
    pub(crate) fn refresh(&self) -> Self {
        remembered(self.client.word(), self.files.clone(), self.directory.clone())
    }

    /// A path that stays the same when the lineage is renewed: a mounted secret's files move from directory to directory,
    /// and acme.sh's full chain is not always the file to take.
    pub(crate) fn place(&self) -> PathBuf {
        match (self.client, &self.directory, &self.files.key) {
            (Client::Kubernetes, Some(directory), _) => directory.join("tls.crt"),
            (Client::AcmeSh, _, Some(key)) => key.clone(),
            _ => self.files.cert.clone(),
        }
    }

    /// Where the certificate really is: two names for one file are one lineage. Of a link that is moved at each renewal it
    /// is the link.
    pub(crate) fn real_place(&self) -> PathBuf {
        let cert = &self.files.cert;
        let directory = cert.parent().and_then(|directory| directory.canonicalize().ok());
        match (directory, cert.file_name()) {
            (Some(directory), Some(name)) => directory.join(name),
            _ => std::path::absolute(cert).unwrap_or_else(|_| cert.clone()),
        }
    }

    fn new(client: Client, files: Files) -> Self {
        let directory = files.cert.parent().map(Path::to_owned);
        let acme_directory = acme_directory::acme_directory(client, &files);
        Self { client, files, directory, acme_directory }
    }

    /// What the client says itself beats its record.
    fn told(self, env: &Env, variable: &'static str) -> Self {
        let told = env.text(variable).ok().flatten().map(str::to_owned);
        Self { acme_directory: told.or(self.acme_directory), ..self }
    }
}

/// certbot's deploy hook: a directory of four links.
fn certbot(env: &Env) -> Option<Source> {
    let lineage = env.path("RENEWED_LINEAGE")?;
    Some(Source::new(Client::Certbot, pair(&lineage, "fullchain.pem", "privkey.pem")))
}

/// acme.sh's `--reloadcmd`. The full chain is rewritten only when the CA sent one, so it may be that of an earlier
/// certificate; where it does not begin with the leaf in `CERT_PATH`, that file and the issuers' are right.
fn acme_sh(env: &Env) -> Option<Source> {
    let key = env.path("CERT_KEY_PATH")?;
    let leaf = env.path("CERT_PATH");
    let full_chain = env.path("CERT_FULLCHAIN_PATH");
    let (cert, issuers) = match (full_chain, leaf) {
        (Some(full_chain), Some(leaf)) if is_stale(&full_chain, &leaf) => (leaf, env.path("CA_CERT_PATH")),
        (Some(full_chain), _) => (full_chain, None),
        (None, Some(leaf)) => (leaf, env.path("CA_CERT_PATH")),
        (None, None) => return None,
    };
    let files = Files { cert, issuers, key: Some(key) };
    Some(Source::new(Client::AcmeSh, files).told(env, "ACME_DIRECTORY"))
}

/// Whether a full chain is missing or lacks the leaf that stands in a file of its own.
fn is_stale(full_chain: &Path, leaf: &Path) -> bool {
    let text = |path: &Path| file::read_text(path, bundle::MAX_BYTES);
    match (text(full_chain), text(leaf)) {
        (Err(_), leaf) => leaf.is_ok(),
        (Ok(full_chain), Ok(leaf)) => !full_chain.contains(leaf.trim()),
        (Ok(_), Err(_)) => false,
    }
}

/// lego's hook, version 5 before version 4.
fn lego(env: &Env) -> Option<Source> {
    ["LEGO_HOOK_", "LEGO_"].iter().find_map(|prefix| {
        let path = |name: &str| env.path(&format!("{prefix}{name}"));
        let files = Files {
            cert: path("CERT_PATH")?,
            issuers: path("ISSUER_CERT_PATH"),
            key: Some(path("CERT_KEY_PATH")?),
        };
        Some(Source::new(Client::Lego, files).told(env, "LEGO_HOOK_ACCOUNT_SERVER"))
    })
}

/// A certificate and its key in one directory.
fn pair(directory: &Path, cert: &str, key: &str) -> Files {
    Files { cert: directory.join(cert), issuers: None, key: Some(directory.join(key)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(variables: &[(&str, &str)]) -> Option<(Client, String, Option<String>, String)> {
        let source = from_env(&variables.iter().copied().collect())?;
        let shown = |path: PathBuf| path.to_string_lossy().into_owned();
        Some((
            source.client,
            shown(source.files.cert),
            source.files.issuers.map(shown),
            shown(source.files.key?),
        ))
    }

    #[test]
    fn each_client_is_recognised_by_its_variables() {
        let found = |client, cert: &str, issuers: Option<&str>, key: &str| {
            Some((client, cert.into(), issuers.map(Into::into), key.into()))
        };
        assert_eq!(files(&[]), None);
        assert_eq!(
            files(&[("RENEWED_LINEAGE", "/l/a"), ("RENEWED_DOMAINS", "a b")]),
            found(Client::Certbot, "/l/a/fullchain.pem", None, "/l/a/privkey.pem")
        );
        assert_eq!(
            files(&[("CERT_KEY_PATH", "/k"), ("CERT_FULLCHAIN_PATH", "/f"), ("Le_Domain", "a")]),
            found(Client::AcmeSh, "/f", None, "/k")
        );
        assert_eq!(
            files(&[("CERT_KEY_PATH", "/k"), ("CERT_PATH", "/c"), ("CA_CERT_PATH", "/ca")]),
            found(Client::AcmeSh, "/c", Some("/ca"), "/k")
        );
        assert_eq!(
            files(&[("LEGO_CERT_PATH", "c"), ("LEGO_CERT_KEY_PATH", "k")]),
            found(Client::Lego, "c", None, "k")
        );
        assert_eq!(
            files(&[
                ("LEGO_HOOK_CERT_PATH", "c"),
                ("LEGO_HOOK_CERT_KEY_PATH", "k"),
                ("LEGO_HOOK_ISSUER_CERT_PATH", "i")
            ]),
            found(Client::Lego, "c", Some("i"), "k")
        );
        assert_eq!(files(&[("RENEWED_LINEAGE", "")]), None, "an empty variable is no hook");
        assert_eq!(files(&[("CERT_KEY_PATH", "/k")]), None, "a key alone is no certificate");
    }
}
