//! The first hour of a new user: the commands of README.md and tests/sandbox/README.md, run one after another on a bare
//! Debian 12, lead to a renewed certificate that the edge serves, and to a timer for `sync`. The packages have the same
//! test, with the README that they contain.

mod script;

use std::path::{Path, PathBuf};

use crate::container::run_with_files;
use crate::harness::print_uncaptured;
use crate::readme::{README, root};

pub(crate) use script::Installation;
use script::Script;

/// Runs the commands for an installation of these files, in the documents below this directory.
#[track_caller]
pub(crate) fn follow_readme(installation: Installation, documents: &Path, files: &[PathBuf]) {
    let script = Script::from_documents(installation, documents);
    run_with_files(&script.packages, files, &script.text);
    for substitution in &script.substitutions {
        print_uncaptured(&format!("{README}, replaced: {substitution}"));
    }
}

#[test]
fn readme_leads_to_renewal_by_timer() {
    follow_readme(Installation::Clone, root(), &[]);
}
