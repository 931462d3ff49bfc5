//! The RPM, as the programs of RPM read it.

use crate::harness::require;

use super::{assert_complete, output, package};

fn query(arguments: &[&str]) -> String {
    require("rpm", "rpm");
    let file = package(".rpm");
    output("rpm", &[&["--query", "--package"], arguments, &[file.to_str().unwrap()]].concat())
}

#[test]
fn rpm_contains_every_file() {
    let paths: Vec<String> = query(&["--list"]).lines().map(str::to_owned).collect();
    assert_complete(&paths);
    let is_in_rpm = |path: &str| paths.iter().any(|found| found == path);
    assert!(is_in_rpm("/usr/share/zsh/site-functions/_edgecert"), "{paths:?}");
    assert!(is_in_rpm("/usr/share/licenses/edgecert/LICENSE"), "{paths:?}");
    assert!(is_in_rpm("/usr/share/licenses/edgecert/THIRD-PARTY-NOTICES"), "{paths:?}");
    assert_eq!(query(&["--configfiles"]), "/etc/edgecert/config.toml\n");
    let format = "--queryformat=%{NAME} %{VERSION}-%{RELEASE} %{LICENSE}\n";
    assert_eq!(query(&[format]), concat!("edgecert ", env!("CARGO_PKG_VERSION"), "-1 MIT\n"));
    let modes = query(&["--queryformat=[%{FILEMODES:perms} %{FILEUSERNAME} %{FILENAMES}\n]"]);
    for program in ["/usr/bin/edgecert", "/usr/share/edgecert/hooks/certbot/edgecert"] {
        assert!(modes.contains(&format!("-rwxr-xr-x root {program}\n")), "{modes}");
    }
    assert!(modes.contains("-rw-r--r-- root /etc/edgecert/config.toml\n"), "{modes}");
}

#[test]
fn rpm_scripts_do_not_enable_timer() {
    let scripts = query(&["--scripts"]);
    assert!(scripts.contains("install -d -m 700 /var/lib/edgecert"), "{scripts}");
    assert!(scripts.contains("disable --now edgecert-sync.timer"), "{scripts}");
    assert!(!scripts.contains("systemctl enable"), "{scripts}");
    assert!(query(&["--requires"]).contains("libc.so.6"));
}
