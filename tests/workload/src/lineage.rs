//! Lineages in certbot's layout: `live/NAME` has links into `archive/NAME`, and there is a record of the renewal.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::IssuedCert;

/// The domain of number `n`.
pub fn domain(number: usize) -> String {
    format!("s{number}.example")
}

/// A lineage on disk.
pub struct Lineage {
    /// certbot's configuration directory.
    root: PathBuf,
    name: String,
    /// Number of the files in `archive`, which grows with each renewal.
    version: usize,
}

/// The files and their modes.
const FILES: [(&str, u32); 4] = [("cert", 0o644), ("chain", 0o644), ("fullchain", 0o644), ("privkey", 0o600)];

impl Lineage {
    /// Writes a new lineage below certbot's configuration directory.
    pub fn write(root: &Path, name: &str, issued: &IssuedCert) -> Result<Self> {
        let mut lineage = Self { root: root.to_owned(), name: name.to_owned(), version: 0 };
        for directory in [lineage.live(), lineage.archive(), root.join("renewal")] {
            fs::create_dir_all(directory)?;
        }
        lineage.renew(issued)?;
        fs::write(root.join("renewal").join(format!("{name}.conf")), lineage.renewal_record())?;
        Ok(lineage)
    }

    /// Writes the next version and moves the links to it, as `certbot renew` does.
    pub fn renew(&mut self, issued: &IssuedCert) -> Result<()> {
        self.version += 1;
        let texts = [issued.cert.clone(), issued.chain.clone(), issued.fullchain(), issued.key.clone()];
        for ((file, mode), text) in FILES.iter().zip(texts) {
            let name = format!("{file}{}.pem", self.version);
            let path = self.archive().join(&name);
            fs::write(&path, text)?;
            fs::set_permissions(path, fs::Permissions::from_mode(*mode))?;
            let link = self.live().join(format!("{file}.pem"));
            let target = Path::new("../../archive").join(&self.name).join(name);
            let temporary = link.with_extension("new");
            symlink(target, &temporary)?;
            fs::rename(temporary, link)?;
        }
        Ok(())
    }

    /// The directory that certbot passes to the hook.
    pub fn live(&self) -> PathBuf {
        self.root.join("live").join(&self.name)
    }

    /// A file of the directory that certbot passes to the hook, such as `fullchain`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.live().join(format!("{name}.pem"))
    }

    /// The directory's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn archive(&self) -> PathBuf {
        self.root.join("archive").join(&self.name)
    }

    fn renewal_record(&self) -> String {
        let files = FILES.map(|(file, _)| format!("{file} = {}\n", self.file(file).display())).concat();
        format!(
            "# renew_before_expiry = 30 days\nversion = 2.1.0\narchive_dir = {}\n{files}\n\
             # Options used in the renewal process\n[renewalparams]\naccount = 5d41402abc4b2a76b9719d911017c592\n\
             authenticator = webroot\nwebroot_path = /var/www/html,\n\
             server = https://acme-v02.api.letsencrypt.org/directory\nkey_type = ecdsa\n\
             renew_hook = /usr/local/bin/edgecert\n[[webroot_map]]\n{} = /var/www/html\n",
            self.archive().display(),
            self.name,
        )
    }
}
