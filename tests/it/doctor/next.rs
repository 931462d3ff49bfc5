//! `doctor` on a fresh setup: which file was read, and the next step.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::json;
use tempfile::TempDir;

use super::{Certbot, doctor, faults, findings, private_directory};
use crate::harness::{edgecert, require_root, sandbox, step};

#[test]
fn fresh_host_is_told_to_configure() {
    let hook = edgecert().args(["doctor", "--json"]).on_host();
    let home = hook.home().display().to_string();
    let output = hook.exits_with(78);
    let found = &findings(&output)[0];
    let looked = format!(
        "settings ok: no configuration file: looked for /etc/edgecert/config.toml and {home}/.config/edgecert/config.toml"
    );
    assert_eq!(*found, looked);
    let next = output.json()["next"].as_str().unwrap().to_owned();
    assert!(next.ends_with("edgecert/config.toml with base_url and api_key_file"), "{next}");

    let last = edgecert().args(["doctor"]).on_host().exits_with(78).stdout.lines().last().unwrap().to_owned();
    assert_eq!(last, format!("next: {next}"));
}

#[test]
fn each_step_leads_to_the_next() {
    require_root();
    let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    fs::set_permissions(state.path(), Permissions::from_mode(0o700)).unwrap();
    let certbot = Certbot::with_lineages(&[]);
    let next = |configuration: &str| {
        let hook = doctor(&service, configuration).with_state(state.path());
        hook.run().json()["next"].clone()
    };
    let issue = next("").as_str().unwrap().to_owned();
    let hook = "certbot certonly -d a.example --deploy-hook /usr/local/bin/edgecert`";
    assert!(issue.contains(hook), "{issue}");

    certbot.renew("a.example", &["a.example"]);
    certbot.attach("a.example", "/bin/true");
    let entries = certbot.entries(&["a.example"], "");
    let directory = certbot.path("renewal-hooks/deploy");
    let attach = format!("run `ln -s /usr/local/bin/edgecert {}/`", directory.display());
    assert_eq!(next(&entries), attach);

    fs::create_dir_all(&directory).unwrap();
    symlink("/usr/local/bin/edgecert", directory.join("edgecert")).unwrap();
    let timer = "run `systemctl enable --now edgecert-sync.timer && systemctl start edgecert-sync.service`";
    assert_eq!(next(&entries), timer);

    edgecert().against(&service).args(["sync"]).with_state(state.path()).with_config(&entries).succeeds();
    assert_eq!(next(&entries), json!(null));
}

#[test]
fn finished_setup_needs_a_timer() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));

    step("finished_setup_says_so");
    let hook = edgecert().against(&service).args(["doctor"]).on_host();
    hook.write_file(".config/edgecert/config.toml", &certbot.entries(&["a.example"], ""));
    assert!(hook.succeeds().stdout.ends_with("\nnothing is left to do\n"));

    step("sync_by_hand_proves_no_timer");
    let state = private_directory();
    let entries = certbot.entries(&["a.example"], "");
    let sync = || {
        let hook = edgecert().against(&service).args(["sync"]).with_state(state.path());
        hook.with_config(&entries)
    };
    let faults = || faults(&doctor(&service, &entries).with_state(state.path()).succeeds());
    fs::remove_file(state.path().join("last-sync")).unwrap();
    assert_eq!(sync().shows_on_terminal(80).code, 0);
    let found = faults();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("warn timer: every `edgecert sync` on record had a terminal"), "{found:?}");
    sync().succeeds();
    assert_eq!(faults(), [""; 0]);
    assert_eq!(sync().shows_on_terminal(80).code, 0);
    assert_eq!(faults(), [""; 0], "the timer still runs");
}
