//! The README and the hooks in the packages: their links lead to what is shipped, and a new user who follows them gets a
//! certificate that is renewed and served.

use std::path::Path;

use tempfile::TempDir;

use crate::first_hour::{Installation, follow_readme};
use crate::harness::step;
use crate::readme::{README, REFERENCE, assert_links, root};

use super::{output, package};

/// The content of the Debian package.
fn deb() -> TempDir {
    let directory = TempDir::new().unwrap();
    output("dpkg-deb", &["--extract", package(".deb").to_str().unwrap(), directory.path().to_str().unwrap()]);
    directory
}

/// The content of the archive for this machine.
fn archive() -> TempDir {
    let directory = TempDir::new().unwrap();
    let (file, to) = (package(ARCHIVE), directory.path().to_str().unwrap());
    output("tar", &["-xzf", file.to_str().unwrap(), "-C", to, "--strip-components=1"]);
    directory
}

const ARCHIVE: &str = "-gnu.tar.gz";
const SHARED: &str = "usr/share/edgecert";

#[test]
fn packages_ship_hooks_and_what_links_lead_to() {
    let (deb, archive) = (deb(), archive());

    step("shipped_links_lead_to_shipped_files");
    for tree in [deb.path().join(SHARED), archive.path().to_owned()] {
        for document in [README, REFERENCE] {
            assert_links(&tree.canonicalize().unwrap(), document);
        }
    }

    step("packages_ship_all_hooks");
    let wanted = hooks(root());
    assert!(wanted.contains("hooks/certbot/edgecert executable\n"), "{wanted}");
    assert_eq!(hooks(&deb.path().join(SHARED)), wanted);
    assert_eq!(hooks(archive.path()), wanted);
}

/// Lists the hooks below a directory, and which of them can be run. ansible-lint leaves a cache among those of a clone.
const LIST_HOOKS: &str = r#"cd "$0"; find -L hooks -name __pycache__ -prune -o -type f -printf '%p ' \
    \( -perm -100 -printf 'executable\n' -o -printf 'file\n' \) | sort"#;

fn hooks(directory: &Path) -> String {
    output("sh", &["-c", LIST_HOOKS, directory.to_str().unwrap()])
}

#[test]
fn readme_of_deb_leads_to_renewal() {
    let deb = deb();
    follow_readme(Installation::Deb, &deb.path().join(SHARED), &[package(".deb")]);
}

#[test]
fn readme_of_archive_leads_to_renewal() {
    let archive = archive();
    follow_readme(Installation::Archive, archive.path(), &[package(ARCHIVE)]);
}
