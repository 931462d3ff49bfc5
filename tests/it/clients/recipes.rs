//! The recipes of `hooks/` for clients that are not installed here: the scripts, each called as its client calls it, under
//! dash and bash, and the commands of the others, run as the client would run them.

use std::ffi::{OsStr, OsString};
use std::fs;

use crate::harness::{IssuedCert, Sandbox, sandbox, sync, test_ca};

use super::recipe_file::{command, commands, recipe, recipe_text};
use super::{Client, certificates, fail_uploads, only_record};

const SHELLS: [&str; 2] = ["dash", "bash"];

/// A host with a shell, and a certificate in these two files.
struct Host {
    service: Sandbox,
    shell: Client,
    cert: String,
    key: String,
    issued: IssuedCert,
}

impl Host {
    /// `PATH` has edgecert.
    fn new(shell: &str, cert: &str, key: &str) -> Self {
        Self::of(Client::new(shell, shell).with_hook_in_path(), cert, key)
    }

    /// A space is in the path of the home, and edgecert not in `PATH`.
    fn with_space_in_path(shell: &str, cert: &str, key: &str) -> Self {
        Self::of(Client::with_space_in_path(shell, shell), cert, key)
    }

    fn of(shell: Client, cert: &str, key: &str) -> Self {
        let service = sandbox(&["example.com"]);
        let shell = shell.deploying_to(&service);
        let issued = test_ca().issue(&["example.com"]).unwrap();
        let mut host = Self { service, shell, cert: cert.to_owned(), key: key.to_owned(), issued };
        host.renew();
        host
    }

    fn env(self, name: &str, value: impl AsRef<OsStr>) -> Self {
        Self { shell: self.shell.env(name, value), ..self }
    }

    /// Scripts find edgecert by its variable.
    fn with_program_in_variable(self) -> Self {
        let program = self.shell.hook();
        self.env("EDGECERT_BIN", program)
    }

    fn renew(&mut self) {
        self.issued = test_ca().issue(&["example.com"]).unwrap();
        self.shell.write(&self.cert, &self.issued.fullchain());
        self.shell.write(&self.key, &self.issued.key);
    }

    #[track_caller]
    fn assert_deployed(&self) {
        assert_eq!(only_record(&self.service).chain, certificates(&self.issued.fullchain()));
    }
}

#[test]
fn caddy_script_resolves_storage_keys() {
    for shell in SHELLS {
        let [cert, key] =
            ["crt", "key"].map(|ending| format!("certificates/ca/example.com/example.com.{ending}"));
        let host = Host::with_space_in_path(shell, &format!("data/{cert}"), &format!("data/{key}"));
        let data = host.shell.path("data");
        let mut host = host.with_program_in_variable().env("CADDY_DATA", data);
        let script = recipe("caddy/edgecert-caddy");
        let handle = |host: &Host| host.shell.run([script.as_os_str(), cert.as_ref(), key.as_ref()]);
        handle(&host).succeeds();
        host.assert_deployed();

        // Caddy does not repeat what fails; `sync` does.
        host.renew();
        fail_uploads(&host.service);
        handle(&host).exits_with(75);
        host.service.clear_faults();
        sync(&host.service, &host.shell.path("state")).env("EDGECERT_ALLOW_UNTRUSTED", "true").succeeds();
        host.assert_deployed();
    }
}

#[test]
fn dehydrated_script_passes_deployments_only() {
    for shell in SHELLS {
        let host = Host::with_space_in_path(shell, "fullchain.pem", "privkey.pem");
        let host = host.with_program_in_variable();
        let files = ["privkey.pem", "cert.pem", "fullchain.pem", "chain.pem"]
            .map(|file| host.shell.path(file).into_os_string());
        let call = |operation: &str| {
            let script = recipe("dehydrated/edgecert-hook.sh").into_os_string();
            let words = [script, operation.into(), "example.com".into()];
            host.shell.run(words.into_iter().chain(files.clone()))
        };
        for other in ["startup_hook", "generate_csr", "sync_cert", "an_operation_of_a_later_release"] {
            assert_eq!(call(other).succeeds().stdout, "", "{other}");
        }
        assert_eq!(host.service.requests().len(), 0);
        call("deploy_cert").succeeds();
        host.assert_deployed();
        call("unchanged_cert").succeeds();
        // dehydrated sees a failure.
        fs::remove_file(host.shell.path("privkey.pem")).unwrap();
        call("deploy_cert").exits_with(66);
    }
}

/// acme.sh saves the settings of a hook for the domain; its functions for that, with a file as the configuration.
const SAVED_SETTINGS: &str = r#"
_getdeployconf() {
  eval "value=\${$1:-}"
  if [ "$value" ]; then return 0; fi
  value=$(sed -n "s/^SAVED_$1=//p" conf 2>/dev/null | tail -n 1)
  export "$1=$value"
}
_savedeployconf() {
  echo "SAVED_$1=$2" >>conf
}
. "$0" && edgecert_deploy example.com privkey.pem cert.pem chain.pem fullchain.pem absent.pfx
"#;

#[test]
fn acme_sh_hook_keeps_its_settings() {
    for shell in SHELLS {
        let mut host = Host::with_space_in_path(shell, "fullchain.pem", "privkey.pem");
        let write = |host: &Host| {
            host.shell.write("cert.pem", &host.issued.cert);
            host.shell.write("chain.pem", &host.issued.chain);
        };
        write(&host);
        host.shell.write("config.toml", "wait = 20\n");
        let (program, config) = (host.shell.hook(), host.shell.path_text("config.toml"));
        let call = |host: &Host, before: &str| {
            let command = format!("{before}{SAVED_SETTINGS}");
            host.shell.run(["-c".into(), OsString::from(command), recipe("acme.sh/edgecert.sh").into()])
        };
        call(&host, &format!("EDGECERT_BIN={program} EDGECERT_CONFIG='{config}'")).succeeds();
        host.assert_deployed();
        let saved = host.shell.read("conf");
        assert!(saved.contains(&format!("SAVED_EDGECERT_BIN={program}\n")), "{saved}");
        assert!(saved.contains(&format!("SAVED_EDGECERT_CONFIG={config}\n")), "{saved}");

        // acme.sh does not rewrite the full chain if the CA sends no chain, so it is that of an earlier certificate.
        let earlier = host.issued.fullchain();
        host.renew();
        write(&host);
        host.shell.write("fullchain.pem", &earlier);
        call(&host, "").succeeds();
        host.assert_deployed();

        // The cron job sets neither; the saved configuration file is read.
        host.shell.write("config.toml", "wait = invalid\n");
        let stderr = call(&host, "").exits_with(78).stderr;
        assert!(stderr.contains("config.toml"), "{stderr}");
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
