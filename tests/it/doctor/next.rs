//! `doctor` on a fresh setup: which file was read, and the next step.

use serde_json::json;

use super::{Certbot, doctor, faults, findings, on_good_host, private_directory};
use crate::harness::{edgecert, require_root, sandbox};

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

    let hook = edgecert().args(["doctor"]).on_host();
    let last = hook.exits_with(78).stdout.lines().last().unwrap().to_owned();
    assert_eq!(last, format!("next: {next}"));
}

#[test]
fn each_step_leads_to_the_next() {
    require_root();
    let (service, state) = (sandbox(&["a.example"]), private_directory());
    let certbot = Certbot::with_lineages(&[]);
    let call = |configuration: &str| {
        let hook = doctor(&service, configuration).env("EDGECERT_STATE_DIR", state.path());
        hook.remove_host_file("etc/systemd/system/timers.target.wants/edgecert-sync.timer");
        let enabled = doctor(&service, configuration).env("EDGECERT_STATE_DIR", state.path());
        [hook, enabled].map(|hook| hook.run().json()["next"].clone())
    };
    let [_, next] = call("");
    let issue = next.as_str().unwrap();
    assert!(issue.contains("certbot certonly -d a.example --deploy-hook edgecert"), "{issue}");

    certbot.renew("a.example", &["a.example"]);
    certbot.attach("a.example", "/bin/true");
    let entries = certbot.entries(&["a.example"], "");
    let [_, next] = call(&entries);
    let attach = next.as_str().unwrap();
    assert!(attach.starts_with("run `certbot reconfigure --cert-name a.example --deploy-hook"), "{attach}");

    certbot.attach("a.example", "edgecert");
    let [next, done] = call(&entries);
    let timer = next.as_str().unwrap();
    assert!(timer.contains("systemctl enable --now edgecert-sync.timer"), "{timer}");
    assert_eq!(done, json!(null));
}

#[test]
fn finished_setup_says_so() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    let hook = edgecert().against(&service).args(["doctor"]).on_host();
    hook.write_file(".config/edgecert/config.toml", &certbot.entries(&["a.example"], ""));
    assert!(hook.succeeds().stdout.ends_with("\nnothing is left to do\n"));
}

#[test]
fn early_certbot_cannot_reconfigure() {
    let (service, certbot) = (sandbox(&["a.example"]), Certbot::with_lineages(&[&["a.example"]]));
    for (version, begins) in [
        (
            "2.1.0",
            "run `certbot renew --force-renewal --cert-name a.example --deploy-hook edgecert`, or, for every",
        ),
        ("2.3.0", "run `certbot reconfigure --cert-name a.example --deploy-hook edgecert`"),
    ] {
        certbot.write("renewal/a.example.conf", &format!("version = {version}\n[renewalparams]\n"), 0o644);
        let output = on_good_host(&service, &certbot).exits_with(78);
        let next = output.json()["next"].as_str().unwrap().to_owned();
        assert!(next.starts_with(begins) && faults(&output).len() == 1, "{next}");
        assert_eq!(next.contains("`ln -s /usr/local/bin/edgecert /"), version == "2.1.0", "{next}");
        assert!(version != "2.1.0" || !next.contains("certbot reconfigure"), "{next}");
    }
}
