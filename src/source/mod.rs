//! Detects which ACME client runs the hook, and locates the renewed files.
//!
//! Each client's contract is a function of its variables or arguments. Nothing here selects sites: the leaf's names do.

mod acme_directory;
pub(crate) mod dehydrated;
mod hook;
mod layout;

use std::io;
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser as _};
use clap::{Args, ValueHint};
use serde::{Deserialize, Serialize};

pub(crate) use self::hook::is_certbot_post_hook;
use crate::bundle::Files;
use crate::env::Env;
use crate::file::recorded_path;
use crate::text::{display_as_serialized, shell_word};

/// The ACME client that renewed the certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AcmeClient {
    Certbot,
    #[serde(rename = "acme.sh")]
    AcmeSh,
    Lego,
    Dehydrated,
    Acmed,
    #[serde(rename = "Caddy")]
    Caddy,
    Getssl,
    #[serde(rename = "mod_md")]
    ModMd,
    #[serde(rename = "Posh-ACME")]
    PoshAcme,
    SimpleAcme,
    Step,
    Tailscale,
    Uacme,
    Kubernetes,
    /// No client is known: the files were named individually, or a later release recorded the client.
    #[default]
    #[serde(other)]
    Files,
}

display_as_serialized!(AcmeClient);

/// A lineage to deploy. State files record it with absolute paths; every run reads the files again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Source {
    pub(crate) client: AcmeClient,
    #[serde(flatten)]
    pub(crate) files: Files,
    /// The lineage's directory: the one that was named, else that of the certificate.
    #[serde(with = "recorded_path")]
    pub(crate) directory: Option<PathBuf>,
    /// The `[[lineage]]` entry to deploy it for, if that differs from the lineage itself: see `LineageEntry::target`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target: Option<String>,
    /// URL of the ACME directory, if a variable of the hook gives it.
    #[serde(skip)]
    acme_directory: Option<String>,
}

/// Why no lineage was found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("no certificate is named, and no ACME client's variables are set")]
    NoSource,
    #[error(
        "certbot runs edgecert as a post hook, which does not name the renewed lineages; use --deploy-hook, not --post-hook"
    )]
    CertbotPostHook,
    /// One of them calls the hook, the other's variables are inherited; it is unknown which.
    #[error(
        "the variables of {} name {}, those of {} name {}",
        .0[0].client, crate::text::path(&.0[0].files.cert), .0[1].client, crate::text::path(&.0[1].files.cert)
    )]
    SeveralClients(Box<[Source; 2]>),
    #[error("{} is not a lineage: {reason}", crate::text::path(directory))]
    NotALineage { directory: PathBuf, reason: String, is_denied: bool },
    #[error("{} holds {} lineages: {}", crate::text::path(directory), names.len(), crate::text::list(names))]
    SeveralLineages { directory: PathBuf, names: Vec<String> },
}

impl SourceError {
    /// A file or directory that cannot be read.
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        let (directory, is_denied) = (path.to_owned(), error.kind() == io::ErrorKind::PermissionDenied);
        Self::NotALineage { directory, reason: crate::file::reason(error), is_denied }
    }

    fn not_a_lineage(path: &Path, reason: &str) -> Self {
        Self::NotALineage { directory: path.to_owned(), reason: reason.to_owned(), is_denied: false }
    }
}

// Files or directory that the command line names; empty in a hook. No doc comment: clap would take it for the summary of
// every command that has these flags.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Certificate")]
pub(crate) struct Named {
    /// Certificate chain in PEM, leaf first; - is standard input, which may also hold the key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
        value_parser = PathBufValueParser::new().map(standard_input))]
    cert: Option<PathBuf>,

    /// Private key in PEM; - is standard input
    #[arg(long, value_name = "FILE", requires = "cert", value_hint = ValueHint::FilePath,
        value_parser = PathBufValueParser::new().map(standard_input))]
    key: Option<PathBuf>,

    /// Directory of an ACME client (certbot, acme.sh, lego, Caddy, ...), or a mounted Kubernetes secret
    #[arg(long, value_name = "DIR", conflicts_with_all = ["cert", "key"], value_hint = ValueHint::DirPath)]
    lineage: Option<PathBuf>,
}

/// The path of standard input, which `-` stands for.
const STANDARD_INPUT: &str = "/dev/stdin";

fn standard_input(path: PathBuf) -> PathBuf {
    if path == Path::new("-") { STANDARD_INPUT.into() } else { path }
}

impl Named {
    /// Whether the command line names a certificate.
    pub(crate) fn is_given(&self) -> bool {
        self.cert.is_some() || self.lineage.is_some()
    }
}

/// Finds the lineage: the first of the named files, the named directory, the hook's variables.
pub(crate) fn find(Named { cert, key, lineage }: &Named, env: &Env) -> Result<Source, SourceError> {
    match (cert, lineage) {
        (Some(cert), _) => Ok(Source::of_files(cert.clone(), key.clone())),
        (None, Some(path)) => Source::at(path),
        (None, None) => {
            let mut sources = hook::detect(env).into_iter();
            let source = sources.next().ok_or(SourceError::NoSource)?;
            match sources.find(|other| other.real_path() != source.real_path()) {
                None => Ok(source),
                Some(other) => Err(SourceError::SeveralClients(Box::new([source, other]))),
            }
        }
    }
}

/// Whether the variables of an ACME client's hook are set.
pub(crate) fn is_hook(env: &Env) -> bool {
    !hook::detect(env).is_empty()
}

impl Source {
    /// The same lineage, to be deployed for an entry with this target.
    pub(crate) fn for_target(self, target: Option<String>) -> Self {
        Self { target, ..self }
    }

    /// Locates the files again, which some clients move at a renewal.
    pub(crate) fn refresh(&self) -> Self {
        let moves_files = matches!(self.client, AcmeClient::Kubernetes | AcmeClient::AcmeSh);
        let named = self.directory.as_ref().filter(|_| moves_files);
        let found = named.and_then(|directory| Self::at(directory).ok());
        let found = found.unwrap_or_else(|| Self::new(self.client, self.files.clone()));
        Self { directory: self.directory.clone(), target: self.target.clone(), ..found }
    }

    /// The lineage as state files record it.
    pub(crate) fn to_absolute(&self) -> Self {
        let Files { cert, issuers, key } = &self.files;
        let (issuers, key) = (issuers.as_deref().map(absolute), key.as_deref().map(absolute));
        let directory = self.directory.as_deref().map(absolute);
        let files = Files { cert: absolute(cert), issuers, key };
        Self { files, directory, acme_directory: None, ..self.clone() }
    }

    /// Whether a later run could read its files again.
    pub(crate) fn is_on_disk(&self) -> bool {
        let Files { cert, key, .. } = &self.files;
        !std::iter::once(cert).chain(key).any(|path| path == Path::new(STANDARD_INPUT))
    }

    /// A path that stays the same when the lineage is renewed. The files of a mounted secret move to another directory,
    /// and acme.sh's full chain is not always the file to deploy.
    pub(crate) fn stable_path(&self) -> PathBuf {
        match (self.client, &self.directory, &self.files.key) {
            (AcmeClient::Kubernetes, Some(directory), _) => directory.join("tls.crt"),
            (AcmeClient::AcmeSh, _, Some(key)) => key.clone(),
            _ => self.files.cert.clone(),
        }
    }

    /// The certificate's path with links in its directory resolved: two names for one file are one lineage. The file
    /// itself may be a link that the client moves at each renewal.
    pub(crate) fn real_path(&self) -> PathBuf {
        let cert = &self.files.cert;
        let directory = cert.parent().and_then(|directory| directory.canonicalize().ok());
        match (directory, cert.file_name()) {
            (Some(directory), Some(name)) => directory.join(name),
            _ => absolute(cert),
        }
    }

    /// The flags that name the lineage for a shell in any directory.
    pub(crate) fn flags(&self) -> String {
        use AcmeClient as C;
        let word = |path: &Path| shell_word(&crate::text::path(&absolute(path)));
        // The directories of these clients may hold several lineages.
        let is_shared =
            matches!(self.client, C::Files | C::Lego | C::Acmed | C::SimpleAcme | C::Step | C::Tailscale);
        match (&self.directory, &self.files.key) {
            (Some(directory), _) if !is_shared => format!("--lineage {}", word(directory)),
            (_, Some(key)) => format!("--cert {} --key {}", word(&self.files.cert), word(key)),
            (_, None) => format!("--cert {}", word(&self.files.cert)),
        }
    }

    /// A secret of type `kubernetes.io/tls` whose files are in this directory, or were provided under it.
    pub(crate) fn of_secret(directory: &Path) -> Self {
        Self::in_directory(AcmeClient::Kubernetes, directory, "tls.crt", "tls.key")
    }

    /// The lineage in a certificate file and that of its key.
    pub(crate) fn of_files(cert: PathBuf, key: Option<PathBuf>) -> Self {
        Self::new(AcmeClient::Files, Files { cert, issuers: None, key })
    }

    /// The source for files that were found, or named one by one.
    pub(crate) fn new(client: AcmeClient, files: Files) -> Self {
        let directory = files.cert.parent().map(Path::to_owned);
        Self { client, files, directory, target: None, acme_directory: None }
    }

    /// The source for a certificate with its key in one directory.
    fn in_directory(client: AcmeClient, directory: &Path, cert: &str, key: &str) -> Self {
        let key = Some(directory.join(key));
        Self::new(client, Files { cert: directory.join(cert), issuers: None, key })
    }

    /// The URL of the ACME directory, if the client gives it; it reveals staging environments. A variable is more recent
    /// than the client's own files, which are read only here: an unchanged lineage does not need them.
    pub(crate) fn acme_directory(&self) -> Option<String> {
        self.acme_directory.clone().or_else(|| acme_directory::read(self.client, &self.files))
    }

    fn with_acme_directory(self, env: &Env, variable: &str) -> Self {
        Self { acme_directory: env.text(variable).ok().flatten().map(str::to_owned), ..self }
    }
}

/// The absolute path; as it is if there is no current directory.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
impl Source {
    /// The source for a certificate without a known client.
    pub(crate) fn of_file(cert: &str) -> Self {
        Self::of_files(cert.into(), None)
    }
}
