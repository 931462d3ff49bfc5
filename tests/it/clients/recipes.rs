//! The scripts of `hooks/`, each called as its client calls it, under dash and bash.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::harness::{Fault, IssuedCert, Sandbox, sandbox, sync, test_ca};

use super::{Client, certificates, only_record};

const SHELLS: [&str; 2] = ["dash", "bash"];

/// A script of `hooks/`.
fn script(name: &str) -> OsString {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks").join(name).into()
}

/// A shell whose scripts find edgecert.
fn shell(name: &str, service: &Sandbox) -> Client {
    let shell = Client::with_space_in_path(name, name).deploying_to(service);
    let program = shell.hook();
    shell.env("EDGECERT_BIN", program)
}

/// Issues a certificate into two files of a shell's home.
fn issue(shell: &Client, cert: &str, key: &str) -> IssuedCert {
    let issued = test_ca().issue(&["a.example"]).unwrap();
    shell.write(cert, &issued.fullchain());
    shell.write(key, &issued.key);
    issued
}

#[track_caller]
fn assert_deployed(service: &Sandbox, issued: &IssuedCert) {
    assert_eq!(only_record(service).chain, certificates(&issued.fullchain()));
}

#[test]
fn caddy_script_resolves_storage_keys() {
    for name in SHELLS {
        let service = sandbox(&["a.example"]);
        let shell = shell(name, &service);
        let [cert, key] =
            ["crt", "key"].map(|ending| format!("certificates/ca/a.example/a.example.{ending}"));
        let issued = issue(&shell, &format!("data/{cert}"), &format!("data/{key}"));
        let data = shell.path("data");
        let shell = shell.env("CADDY_DATA", data);
        let handle = || shell.run([script("caddy/edgecert-caddy"), (&cert).into(), (&key).into()]);
        handle().succeeds();
        assert_deployed(&service, &issued);

        // Caddy does not repeat what fails; `sync` does.
        let renewed = issue(&shell, &format!("data/{cert}"), &format!("data/{key}"));
        let unavailable = Fault::status("POST /api/certs/upload", 503).header("Retry-After", "3600");
        service.add_fault(unavailable.times(99));
        handle().exits_with(75);
        service.clear_faults();
        sync(&service, &shell.path("state")).env("EDGECERT_ALLOW_UNTRUSTED", "true").succeeds();
        assert_deployed(&service, &renewed);
    }
}

#[test]
fn dehydrated_script_passes_deployments_only() {
    for name in SHELLS {
        let service = sandbox(&["a.example"]);
        let shell = shell(name, &service);
        let issued = issue(&shell, "fullchain.pem", "privkey.pem");
        let files =
            ["privkey.pem", "cert.pem", "fullchain.pem", "chain.pem"].map(|file| shell.path(file).into());
        let call = |operation: &str| {
            let words = [script("dehydrated/edgecert-hook.sh"), operation.into(), "a.example".into()];
            shell.run(words.into_iter().chain(files.clone()))
        };
        for other in ["startup_hook", "generate_csr", "sync_cert", "an_operation_of_a_later_release"] {
            assert_eq!(call(other).succeeds().stdout, "", "{other}");
        }
        assert_eq!(service.requests().len(), 0);
        call("deploy_cert").succeeds();
        assert_deployed(&service, &issued);
        call("unchanged_cert").succeeds();
        // dehydrated sees a failure.
        fs::remove_file(shell.path("privkey.pem")).unwrap();
        call("deploy_cert").exits_with(66);
    }
}

/// acme.sh saves the settings of a hook for the domain; its functions for that, with a file as the configuration.
const SAVED_SETTINGS: &str = r#"
_getdeployconf() {
  eval "value=\${$1:-}"
  if [ "$value" ]; then return 0; fi
  value=$(sed -n "s/^SAVED_$1=//p" conf 2>/dev/null)
  export "$1=$value"
}
_savedeployconf() {
  echo "SAVED_$1=$2" >>conf
}
. "$0" && edgecert_deploy a.example privkey.pem cert.pem chain.pem fullchain.pem absent.pfx
"#;

#[test]
fn acme_sh_hook_keeps_its_settings() {
    for name in SHELLS {
        let service = sandbox(&["a.example"]);
        let issued = test_ca().issue(&["a.example"]).unwrap();
        let shell = Client::with_space_in_path(name, name).deploying_to(&service);
        for (file, text) in [
            ("cert.pem", &issued.cert),
            ("chain.pem", &issued.chain),
            ("fullchain.pem", &issued.fullchain()),
            ("privkey.pem", &issued.key),
            ("config.toml", &"wait = 20\n".to_owned()),
        ] {
            shell.write(file, text);
        }
        let (program, config) = (shell.hook(), shell.path_text("config.toml"));
        let call = |before: &str| {
            let command = format!("{before}{SAVED_SETTINGS}");
            shell.run(["-c".into(), OsString::from(command), script("acme.sh/edgecert.sh")])
        };
        call(&format!("EDGECERT_BIN={program} EDGECERT_CONFIG='{config}'")).succeeds();
        assert_deployed(&service, &issued);
        let saved = shell.read("conf");
        assert!(saved.contains(&format!("SAVED_EDGECERT_BIN={program}\n")), "{saved}");
        assert!(saved.contains(&format!("SAVED_EDGECERT_CONFIG={config}\n")), "{saved}");
        // The cron job sets neither; the saved configuration file is read.
        shell.write("config.toml", "wait = invalid\n");
        let stderr = call("").exits_with(78).stderr;
        assert!(stderr.contains("config.toml"), "{stderr}");
    }
}
