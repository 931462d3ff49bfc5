//! A lineage in certbot's layout: `archive/NAME` holds every version, and `live/NAME` links to the newest.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use super::POLL_INTERVAL;
use crate::cert::Leaf;
use crate::{Authority, Error, IssuedCert, clock};

/// A lineage on disk.
pub(super) struct Lineage {
    /// `live/NAME`.
    pub(super) directory: PathBuf,
    /// Names of the certificate.
    pub(super) names: Vec<String>,
    /// Fingerprint of the newest leaf.
    pub(super) fingerprint: String,
    /// When that was issued, in Unix seconds.
    not_before: i64,
    /// Number of the newest version, counted from 1; 0 if there is none.
    version: u32,
    /// Whether the user supplied the lineage, which the rehearsal then never changes.
    pub(super) is_external: bool,
}

impl Lineage {
    /// Creates a lineage below `files` with its first certificate.
    pub(super) fn create(files: &Path, authority: &Authority, names: &[&str]) -> Result<Self, Error> {
        let name = names.first().copied().unwrap_or("lineage").trim_start_matches("*.");
        let mut lineage = Self {
            directory: files.join("letsencrypt/live").join(name),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            fingerprint: String::new(),
            not_before: 0,
            version: 0,
            is_external: false,
        };
        lineage.renew(authority)?;
        Ok(lineage)
    }

    /// Opens the user's lineage.
    pub(super) fn open_external(directory: &Path) -> Result<Self, Error> {
        let leaf = read_leaf(directory)?;
        let file_error = |source| Error::File { path: directory.to_owned(), source };
        Ok(Self {
            directory: directory.canonicalize().map_err(file_error)?,
            names: leaf.names,
            fingerprint: leaf.fingerprint,
            not_before: leaf.not_before,
            version: 0,
            is_external: true,
        })
    }

    /// Adds a version with a new key for the same names, as certbot does by default. It is issued now, because the hook does
    /// not replace a certificate by an earlier one.
    pub(super) fn renew(&mut self, authority: &Authority) -> Result<(), Error> {
        self.replace(&authority.issue_now(&self.name_refs())?)
    }

    /// Adds a version that is valid between two times in hours from now.
    pub(super) fn renew_between(&mut self, authority: &Authority, hours: [i64; 2]) -> Result<(), Error> {
        self.replace(&authority.issue_between_hours(&self.name_refs(), hours)?)
    }

    fn replace(&mut self, issued: &IssuedCert) -> Result<(), Error> {
        self.version += 1;
        self.save(issued).map_err(|source| Error::File { path: self.directory.clone(), source })?;
        let leaf = read_leaf(&self.directory)?;
        (self.fingerprint, self.not_before) = (leaf.fingerprint, leaf.not_before);
        Ok(())
    }

    /// Creates a lineage below `files` for the same names. It is issued at least a second later, the resolution of
    /// dates in certificates: of two lineages for one site, the hook deploys the later one.
    pub(super) fn recreate(&self, files: &Path, authority: &Authority) -> Result<Self, Error> {
        while clock::now().as_second() == self.not_before {
            std::thread::sleep(POLL_INTERVAL);
        }
        Self::create(files, authority, &self.name_refs())
    }

    fn name_refs(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    fn save(&self, issued: &IssuedCert) -> io::Result<()> {
        let name = self.directory.file_name().map(PathBuf::from).unwrap_or_default();
        let archive = self.directory.join("../../archive").join(&name);
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(&self.directory)?;
        private.create(&archive)?;
        let fullchain = issued.fullchain();
        let files = [
            ("cert", &issued.cert, 0o644),
            ("privkey", &issued.key, 0o600),
            ("chain", &issued.chain, 0o644),
            ("fullchain", &fullchain, 0o644),
        ];
        for (kind, text, mode) in files {
            let file = format!("{kind}{}.pem", self.version);
            let mut options = OpenOptions::new();
            let mut out = options.write(true).create_new(true).mode(mode).open(archive.join(&file))?;
            out.write_all(text.as_bytes())?;
            let link = self.directory.join(format!("{kind}.pem"));
            if link.is_symlink() {
                std::fs::remove_file(&link)?;
            }
            symlink(Path::new("../../archive").join(&name).join(file), link)?;
        }
        Ok(())
    }
}

fn read_leaf(directory: &Path) -> Result<Leaf, Error> {
    let path = directory.join("fullchain.pem");
    let file_error = |source| Error::File { path: path.clone(), source };
    let text = std::fs::read_to_string(&path).map_err(file_error)?;
    Leaf::parse(&text).map_err(|reason| file_error(io::Error::other(reason)))
}
