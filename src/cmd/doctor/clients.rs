//! Finds the lineages that ACME clients keep on this host, whether edgecert manages them or not.

use std::io;
use std::path::{Path, PathBuf};

use super::finding::{DoctorFinding, Subject};
use super::host::{Host, entries};
use crate::source::Source;
use crate::text;

/// Directories of certbot and dehydrated with a subdirectory for each lineage.
const DIRECTORIES: [&str; 2] = ["/etc/letsencrypt/live", "/var/lib/dehydrated/certs"];

/// Finds lineages, and reports directories that cannot be searched.
pub(super) fn find(host: &Host<'_>) -> (Vec<Source>, Vec<DoctorFinding>) {
    let acme_sh = host.env.path("LE_CONFIG_HOME").or_else(|| host.env.path("LE_WORKING_DIR"));
    let acme_sh = acme_sh.or_else(|| host.env.path("HOME").map(|home| home.join(".acme.sh")));
    let lego = host.env.path("LEGO_PATH").map(|path| path.join("certificates"));
    let parents: Vec<PathBuf> = DIRECTORIES.iter().map(|path| host.at(path)).chain(acme_sh).collect();
    let denied = parents.iter().chain(&lego).filter_map(|path| permission_denied(path)).collect();
    let directories = parents.iter().flat_map(|path| entries(path)).filter(|path| path.is_dir());
    let files = lego.iter().flat_map(|path| entries(path));
    let certificates = files.filter(|path| path.extension().is_some_and(|ending| ending == "crt"));
    (directories.chain(certificates).filter_map(|path| Source::at(&path).ok()).collect(), denied)
}

fn permission_denied(directory: &Path) -> Option<DoctorFinding> {
    let error = std::fs::read_dir(directory).err()?;
    let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
    let detail = format!("cannot search {} for lineages: permission denied", text::path(directory));
    let remedy = "run edgecert as the user that the ACME client runs as";
    is_denied.then(|| Subject::Lineage.warn(detail, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;

    #[test]
    fn lineages_of_each_client_are_found() {
        let root = tempfile::TempDir::new().unwrap();
        let at = |path: &str| root.path().join(path);
        for path in [
            "etc/letsencrypt/live/README",
            "etc/letsencrypt/live/a.example/fullchain.pem",
            "etc/letsencrypt/live/a.example/privkey.pem",
            "var/lib/dehydrated/certs/b.example/fullchain.pem",
            "home/.acme.sh/*.c.example_ecc/fullchain.cer",
            "home/.acme.sh/*.c.example_ecc/*.c.example.cer",
            "home/.acme.sh/*.c.example_ecc/*.c.example.key",
            "home/.acme.sh/ca/account.json",
            "lego/certificates/d.example.crt",
            "lego/certificates/d.example.issuer.crt",
            "lego/certificates/d.example.key",
            "lego/certificates/e.example.crt",
            "lego/certificates/e.example.key",
        ] {
            std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            std::fs::write(at(path), "").unwrap();
        }
        let env: Env = [("HOME", at("home")), ("LEGO_PATH", at("lego"))].into_iter().collect();
        let (found, denied) = find(&Host::new(root.path().to_owned(), &env));
        let line = |source: &Source| {
            let cert = source.files.cert.strip_prefix(root.path()).unwrap();
            format!("{} {}", source.client, cert.display())
        };
        assert_eq!(
            found.iter().map(line).collect::<Vec<_>>(),
            [
                "certbot etc/letsencrypt/live/a.example/fullchain.pem",
                "certbot var/lib/dehydrated/certs/b.example/fullchain.pem",
                "acme.sh home/.acme.sh/*.c.example_ecc/fullchain.cer",
                "files lego/certificates/d.example.crt",
                "files lego/certificates/e.example.crt",
            ]
        );
        assert!(denied.is_empty());
    }
}
