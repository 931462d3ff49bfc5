//! A directory as certbot keeps it: `archive/NAME` has every version, `live/NAME` links to the newest
//! (hook-contracts.md, section 2).

use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::cert::{self, Leaf};
use crate::{Authority, Error, IssuedCert};

/// A lineage on disk.
pub(super) struct Lineage {
    /// `live/NAME`.
    pub(super) directory: PathBuf,
    /// Names that it is issued for.
    pub(super) names: Vec<String>,
    /// Fingerprint of the newest leaf.
    pub(super) fingerprint: String,
    version: u32,
    /// Whether its certificate was brought along and cannot be renewed here.
    pub(super) given: bool,
}

impl Lineage {
    /// A new one, with its first certificate.
    pub(super) fn create(files: &Path, authority: &Authority, names: &[&str]) -> Result<Self, Error> {
        let name = names.first().copied().unwrap_or("lineage").trim_start_matches("*.");
        let directory = files.join("letsencrypt/live").join(name);
        let mut lineage = Self {
            directory,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            fingerprint: String::new(),
            version: 0,
            given: false,
        };
        lineage.renew(authority)?;
        Ok(lineage)
    }

    /// One that exists; nothing is written to it.
    pub(super) fn given(directory: &Path) -> Result<Self, Error> {
        let path = directory.join("fullchain.pem");
        let fail = |source| Error::File { path: path.clone(), source };
        let leaf = read(&path)?;
        let directory = directory.canonicalize().map_err(fail)?;
        Ok(Self { directory, names: leaf.names, fingerprint: leaf.fingerprint, version: 0, given: true })
    }

    /// A new certificate with a new key for the same names; certbot's default.
    pub(super) fn renew(&mut self, authority: &Authority) -> Result<(), Error> {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        let issued = authority.issue(&names)?;
        self.version += 1;
        self.write(&issued).map_err(|source| Error::File { path: self.directory.clone(), source })?;
        self.fingerprint = read(&self.directory.join("fullchain.pem"))?.fingerprint;
        Ok(())
    }

    /// The same names in a directory that this rehearsal may renew.
    pub(super) fn adopt(&self, files: &Path, authority: &Authority) -> Result<Self, Error> {
        let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
        Self::create(files, authority, &names)
    }

    fn write(&self, issued: &IssuedCert) -> std::io::Result<()> {
        let name = self.directory.file_name().map(PathBuf::from).unwrap_or_default();
        let archive = self.directory.join("../../archive").join(&name);
        let mut private = std::fs::DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(&self.directory)?;
        private.create(&archive)?;
        let kinds = [
            ("cert", issued.cert.clone(), 0o644),
            ("privkey", issued.key.clone(), 0o600),
            ("chain", issued.chain.clone(), 0o644),
            ("fullchain", issued.fullchain(), 0o644),
        ];
        for (kind, text, mode) in kinds {
            let file = format!("{kind}{}.pem", self.version);
            let mut options = std::fs::OpenOptions::new();
            let mut out = options.write(true).create_new(true).mode(mode).open(archive.join(&file))?;
            std::io::Write::write_all(&mut out, text.as_bytes())?;
            let link = self.directory.join(format!("{kind}.pem"));
            if link.is_symlink() {
                std::fs::remove_file(&link)?;
            }
            symlink(Path::new("../../archive").join(&name).join(file), link)?;
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<Leaf, Error> {
    let fail = |source| Error::File { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(fail)?;
    cert::read(&text).map_err(|reason| fail(std::io::Error::other(reason)))
}
