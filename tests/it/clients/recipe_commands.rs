//! The recipes for clients that no package registry here has: their commands, run as the client would run them.

use std::fs;

use crate::harness::{IssuedCert, Sandbox, sandbox, test_ca};

use super::recipe_file::{command, commands, recipe, recipe_text};
use super::{Client, certificates, only_record};

/// A host whose `PATH` has edgecert, with a certificate in these two files.
struct Host {
    service: Sandbox,
    shell: Client,
    issued: IssuedCert,
}

impl Host {
    fn new(shell: &str, cert: &str, key: &str) -> Self {
        let service = sandbox(&["example.com"]);
        let shell = Client::new(shell, shell).deploying_to(&service).with_hook_in_path();
        let issued = test_ca().issue(&["example.com"]).unwrap();
        shell.write(cert, &issued.fullchain());
        shell.write(key, &issued.key);
        Self { service, shell, issued }
    }

    #[track_caller]
    fn assert_deployed(&self) {
        assert_eq!(only_record(&self.service).chain, certificates(&self.issued.fullchain()));
    }
}

#[test]
fn acmed_hook_runs_after_success_only() {
    let hooks: toml::Table = recipe_text("acmed/edgecert.toml").parse().unwrap();
    let hook = &hooks["hook"][0];
    assert_eq!(hook["type"].as_array().unwrap(), &["post-operation".into()]);
    assert_eq!(hook["cmd"].as_str(), Some("/bin/sh"));
    let name = hook["name"].as_str().unwrap();
    assert_eq!(command("acmed/edgecert.toml", "hooks = "), format!("hooks = [\"{name}\"]"));
    for shell in ["dash", "bash"] {
        let (cert, key) = ("example.com_rsa2048.crt.pem", "example.com_rsa2048.pk.pem");
        let host = Host::new(shell, cert, key);
        let run = |is_success: &str| {
            let arguments = hook["args"].as_array().unwrap().iter().map(|argument| {
                let argument = argument.as_str().unwrap().replace("{{ is_success }}", is_success);
                let argument = argument.replace("{{ certificate_path }}", &host.shell.path_text(cert));
                argument.replace("{{ private_key_path }}", &host.shell.path_text(key))
            });
            host.shell.run(arguments).succeeds();
        };
        run("false");
        assert_eq!(host.service.requests().len(), 0);
        run("true");
        host.assert_deployed();
    }
}

#[test]
fn getssl_settings_name_lineage() {
    let host = Host::new("bash", ".getssl/example.com/fullchain.crt", ".getssl/example.com/example.com.key");
    host.shell.write(".getssl/example.com/example.com.crt", &host.issued.cert);
    // The command at the head, in a checkout.
    let cat = command("getssl/getssl.cfg", "cat ").replace("~/", "");
    host.shell.write("hooks/getssl/getssl.cfg", &recipe_text("getssl/getssl.cfg"));
    host.shell.run(["-c", &cat]).succeeds();
    // As getssl does it.
    let run = r#"DOMAIN_DIR="$PWD/.getssl/example.com"; . "$DOMAIN_DIR/getssl.cfg"; eval "$RELOAD_CMD""#;
    host.shell.run(["-c", run]).succeeds();
    host.assert_deployed();
}

/// The line of the script that runs edgecert, with the files of an order in place of the object's properties.
#[test]
fn posh_acme_script_names_files() {
    const SCRIPT: &str = "posh-acme/edgecert-posh-acme.ps1";
    let order = "Posh-ACME/acme-v02.api.letsencrypt.org/1/example.com";
    let host = Host::new("bash", &format!("{order}/fullchain.cer"), &format!("{order}/cert.key"));
    let cron = "17 3 * * * root pwsh -NoProfile -File /usr/local/bin/edgecert-posh-acme.ps1";
    assert_eq!(commands(SCRIPT), [cron]);
    let script = recipe_text(SCRIPT);
    // A renewal that fails must not keep the certificates renewed before it from their sites.
    let pipeline = script.lines().find(|line| line.starts_with("Submit-Renewal -AllAccounts ")).unwrap();
    assert!(pipeline.ends_with(" | ForEach-Object {"), "{pipeline}");
    let line = script.lines().find_map(|line| line.trim().strip_prefix("& ")).unwrap();
    let line = line
        .replace("$edgecert", "edgecert")
        .replace("$_.FullChainFile", &host.shell.path_text(&format!("{order}/fullchain.cer")));
    let line = line.replace("$_.KeyFile", &host.shell.path_text(&format!("{order}/cert.key")));
    assert!(!line.contains('$'), "{line}");
    host.shell.run(["-c", &line]).succeeds();
    host.assert_deployed();
}

/// What step does with its arguments: it splits the command at spaces, and uses no shell.
const STEP: &str = r#"[ "$1 $2 $3 $4" = "ca renew --daemon --exec" ] && [ -r "$6" ] && [ -r "$7" ] && [ $# = 7 ] || exit 2
set -f
exec $5
"#;

#[test]
fn step_unit_deploys_what_it_renews() {
    const UNIT: &str = "step/edgecert-step@.service";
    assert_eq!(command(UNIT, "systemctl"), "systemctl enable --now edgecert-step@example.com.service");
    let unit = fs::read_to_string(recipe(UNIT)).unwrap();
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let host = Host::new("dash", "step/certs/example.com.crt", "step/certs/example.com.key");
    let step = host.shell.script("step-stub", STEP);
    let start = start.replace("%i", "example.com").replace("/usr/bin/step ", &format!("{step} "));
    let start = start.replace("/etc/", &host.shell.path_text(""));
    // systemd's quotes are those of a shell.
    host.shell.run(["-c", &start]).succeeds();
    host.assert_deployed();
}
