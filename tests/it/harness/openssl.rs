//! Runs the openssl program, for keys and certificates that the test CA cannot issue.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Runs `openssl` in a directory; panics if it fails.
#[track_caller]
pub(crate) fn openssl(directory: &Path, arguments: &[&str]) {
    let output = Command::new("openssl")
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("cannot run here: openssl is not installed (Debian package openssl)");
    assert!(output.status.success(), "openssl {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Signs `NAME.csr` with a CA as `NAME.crt`. The dates are `notBefore` and `notAfter` in openssl's notation.
#[track_caller]
pub(crate) fn sign_between(directory: &Path, name: &str, ca: &str, extensions: &str, dates: [&str; 2]) {
    let config = "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n";
    for (file, text) in [("between.cnf", config), ("index.txt", ""), ("serial", "01\n")] {
        fs::write(directory.join(file), text).unwrap();
    }
    let [csr, crt] = ["csr", "crt"].map(|ending| format!("{name}.{ending}"));
    let [ca_crt, ca_key] = ["crt", "key"].map(|ending| format!("{ca}.{ending}"));
    let mut arguments =
        vec!["ca", "-config", "between.cnf", "-batch", "-notext", "-cert", &ca_crt, "-keyfile", &ca_key];
    arguments.extend(["-in", &csr, "-out", &crt, "-extfile", extensions]);
    arguments.extend(["-startdate", dates[0], "-enddate", dates[1]]);
    openssl(directory, &arguments);
}
