//! The lineages that ACME clients keep on this host, whether edgecert knows them or not.

use std::io;
use std::path::{Path, PathBuf};

use super::finding::{Finding, Subject};
use super::host::{Host, entries};
use crate::source::{self, Named, Source};
use crate::text;

/// Where certbot and dehydrated keep a directory for each lineage.
const DIRECTORIES: [&str; 2] = ["/etc/letsencrypt/live", "/var/lib/dehydrated/certs"];

/// Everything that looks like a lineage, and places that cannot be searched.
pub(super) fn find(host: &Host<'_>) -> (Vec<Source>, Vec<Finding>) {
    let home = host.env.path("LE_CONFIG_HOME").or_else(|| host.env.path("LE_WORKING_DIR"));
    let home = home.or_else(|| host.env.path("HOME").map(|home| home.join(".acme.sh")));
    let lego = host.env.path("LEGO_PATH").map(|path| path.join("certificates"));
    let above: Vec<PathBuf> = DIRECTORIES.iter().map(|path| host.at(path)).chain(home).collect();
    let hidden = above.iter().chain(&lego).filter_map(|path| hidden(path)).collect();
    let directories = above.iter().flat_map(|path| entries(path)).filter(|path| path.is_dir());
    let in_directories = directories.map(|directory| Named { lineage: Some(directory), ..Named::default() });
    let pairs = lego.iter().flat_map(|path| entries(path)).filter_map(|path| pair(&path));
    let found = in_directories.chain(pairs).filter_map(|named| source::find(&named, host.env).ok());
    (found.collect(), hidden)
}

/// lego's `NAME.crt` with its `NAME.key`.
fn pair(cert: &Path) -> Option<Named> {
    let key = cert.with_extension("key");
    let is_pair = cert.extension()? == "crt" && key.is_file();
    is_pair.then(|| Named { cert: Some(cert.to_owned()), key: Some(key), lineage: None })
}

fn hidden(directory: &Path) -> Option<Finding> {
    let error = std::fs::read_dir(directory).err()?;
    let denied = error.kind() == io::ErrorKind::PermissionDenied;
    let detail = format!("{} cannot be searched for lineages", text::path(directory));
    denied.then(|| Finding::warn(Subject::Lineage, detail, "run it as the user that the ACME client runs as"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;

    #[test]
    fn lineages_are_found_where_each_client_keeps_them() {
        let root = tempfile::TempDir::new().unwrap();
        let place = |path: &str| root.path().join(path);
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
            std::fs::create_dir_all(place(path).parent().unwrap()).unwrap();
            std::fs::write(place(path), "").unwrap();
        }
        let env: Env = [("HOME", place("home")), ("LEGO_PATH", place("lego"))].into_iter().collect();
        let (found, hidden) = find(&Host { root: root.path().to_owned(), env: &env });
        let shown = |source: &Source| {
            let cert = source.files.cert.strip_prefix(root.path()).unwrap();
            format!("{} {}", source.client, cert.display())
        };
        assert_eq!(
            found.iter().map(shown).collect::<Vec<_>>(),
            [
                "certbot etc/letsencrypt/live/a.example/fullchain.pem",
                "certbot var/lib/dehydrated/certs/b.example/fullchain.pem",
                "acme.sh home/.acme.sh/*.c.example_ecc/fullchain.cer",
                "files lego/certificates/d.example.crt",
                "files lego/certificates/e.example.crt",
            ]
        );
        assert!(hidden.is_empty());
    }
}
