//! The openssl program, for keys and certificates that the test CA does not make.

use std::path::Path;
use std::process::Command;

/// Runs `openssl` in a directory and fails the test if it fails.
#[track_caller]
pub(crate) fn openssl(directory: &Path, arguments: &[&str]) {
    let output = Command::new("openssl")
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("openssl must be installed (Debian package openssl)");
    assert!(output.status.success(), "openssl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}
