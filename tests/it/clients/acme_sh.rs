//! acme.sh's `--reloadcmd`. Debian has no package, so a script does what acme.sh does with the command: it exports the
//! variables and evaluates it in a subshell, from the domain's directory.

use std::fs;

use serde_json::Value;

use crate::harness::{Lineage, Sandbox, edgecert, openssl, sandbox};

use super::{Client, Ran, certificates, served_record};

/// An acme.sh with one domain, whose asterisk stands in every path.
struct AcmeSh {
    shell: Client,
}

const DOMAIN: &str = "*.b.example";
const DIRECTORY: &str = ".acme.sh/*.b.example_ecc";

/// The end of acme.sh's installation of a certificate.
const INSTALL: &str = r#"
DOMAIN_PATH="$HOME/.acme.sh/${Le_Domain}_ecc"
CERT_PATH="$DOMAIN_PATH/$Le_Domain.cer"
CERT_KEY_PATH="$DOMAIN_PATH/$Le_Domain.key"
CA_CERT_PATH="$DOMAIN_PATH/ca.cer"
full="$DOMAIN_PATH/fullchain.cer"
if (
    export DOMAIN_PATH CERT_PATH CERT_KEY_PATH CA_CERT_PATH Le_Domain
    [ "$WITHOUT_FULLCHAIN" ] || export CERT_FULLCHAIN_PATH="$full"
    export Le_Next_Domain_Key="$CERT_KEY_PATH.next" LE_WORKING_DIR="$HOME/.acme.sh" LE_CONFIG_HOME="$HOME/.acme.sh"
    cd "$DOMAIN_PATH" && eval "$RELOADCMD"
); then
    echo "Reload success"
else
    echo "Reload error for: $Le_Domain" >&2
    exit 1
fi
"#;

impl AcmeSh {
    fn deploying_to(service: &Sandbox) -> Self {
        let shell = Client::new("sh", "dash").env("Le_Domain", DOMAIN);
        let shell = shell.env("ACME_DIRECTORY", "https://acme.example/directory").deploying_to(service);
        shell.script("install", INSTALL);
        Self { shell }.env("EDGECERT_ALLOW_UNTRUSTED", "false")
    }

    fn env(self, name: &str, value: &str) -> Self {
        Self { shell: self.shell.env(name, value) }
    }

    /// Writes a new certificate's files; `fullchain.cer` only where the CA sent a chain.
    fn issue(&self, with_chain: bool) {
        let issued = Lineage::issued_for(&[DOMAIN, "b.example"]);
        openssl(issued.path(), &["ec", "-in", "privkey.pem", "-out", "sec1.pem"]);
        let key = issued.read("sec1.pem");
        assert!(key.starts_with("-----BEGIN EC PRIVATE KEY-----"), "the label that acme.sh writes");
        self.write(&format!("{DOMAIN}.key"), &key);
        self.write(&format!("{DOMAIN}.cer"), &issued.read("cert.pem"));
        self.write(&format!("{DOMAIN}.conf"), &format!("Le_Domain='{DOMAIN}'\nLe_Alt='b.example'\n"));
        self.write("ca.cer", &issued.read("chain.pem"));
        if with_chain {
            self.write("fullchain.cer", &issued.read("fullchain.pem"));
        }
    }

    fn write(&self, name: &str, text: &str) {
        self.shell.write(&format!("{DIRECTORY}/{name}"), text);
    }

    /// Runs a command as acme.sh does; the home is quoted because it may be called anything.
    fn reload(self, command: &str) -> (Self, Ran) {
        let acme = self.env("RELOADCMD", command);
        let ran = acme.shell.run(["install"]);
        (acme, ran)
    }

    /// The new certificate with its issuers, whatever the full chain says.
    fn chain(&self) -> Vec<String> {
        let file = |name: &str| self.shell.read(&format!("{DIRECTORY}/{name}"));
        certificates(&(file(&format!("{DOMAIN}.cer")) + &file("ca.cer")))
    }
}

const SITES: [&str; 2] = ["x.b.example", "b.example"];
const HOOK: &str = r#""$HOME/edgecert""#;

#[test]
fn acme_sh_deploys_its_full_chain_from_paths_with_an_asterisk() {
    let service = sandbox(&SITES);
    let acme = AcmeSh::deploying_to(&service);
    acme.issue(true);
    let (acme, ran) = acme.reload(&format!("{HOOK} --json >\"$HOME/report\""));
    ran.succeeds();
    let first = served_record(&service, &SITES);
    assert_eq!(first.chain, acme.chain());
    let report: Value = serde_json::from_str(&acme.shell.read("report")).unwrap();
    assert_eq!(report["source"]["client"], "acme.sh");

    acme.issue(true);
    let (acme, ran) = acme.reload(HOOK);
    assert!(ran.succeeds().stdout.ends_with("Reload success\n"));
    let renewed = served_record(&service, &SITES);
    assert_eq!((renewed.id, &renewed.chain), (first.id, &acme.chain()));
    assert_ne!(renewed.chain, first.chain);
}

#[test]
fn acme_sh_without_a_full_chain_gets_the_issuers_from_their_file() {
    for variable in ["", "1"] {
        let service = sandbox(&SITES);
        let acme = AcmeSh::deploying_to(&service).env("WITHOUT_FULLCHAIN", variable);
        acme.issue(false);
        let (acme, ran) = acme.reload(HOOK);
        ran.succeeds();
        assert_eq!(served_record(&service, &SITES).chain, acme.chain());
    }
}

#[test]
fn the_full_chain_of_an_earlier_certificate_is_not_deployed() {
    let service = sandbox(&SITES);
    let acme = AcmeSh::deploying_to(&service);
    acme.issue(true);
    acme.issue(false);
    let (acme, ran) = acme.reload(HOOK);
    ran.succeeds();
    let record = served_record(&service, &SITES);
    assert_eq!(record.chain, acme.chain());
    assert_ne!(record.chain, certificates(&acme.shell.read(&format!("{DIRECTORY}/fullchain.cer"))));
}

#[test]
fn acme_sh_fails_where_the_hook_fails() {
    let service = sandbox(&SITES);
    let acme = AcmeSh::deploying_to(&service)
        .env("ACME_DIRECTORY", "https://acme-staging-v02.api.letsencrypt.org/directory");
    acme.issue(true);
    let (_, ran) = acme.reload(HOOK);
    let stderr = ran.exits_with(1).stderr;
    assert!(stderr.contains("staging"), "{stderr}");
    assert!(stderr.ends_with("Reload error for: *.b.example\n"), "{stderr}");
    assert_eq!(service.requests().len(), 0);
}

#[test]
fn the_directory_that_acme_sh_keeps_is_a_lineage_also_with_a_full_chain_of_an_earlier_certificate() {
    let service = sandbox(&SITES);
    let acme = AcmeSh::deploying_to(&service);
    for with_chain in [true, false] {
        acme.issue(with_chain);
        let hook = edgecert().against(&service).args(["--json", "--lineage"]);
        let output = hook.args([acme.shell.path(DIRECTORY)]).succeeds();
        assert_eq!(output.json()["source"]["client"], "acme.sh");
        assert_eq!(served_record(&service, &SITES).chain, acme.chain());
    }
    fs::remove_file(acme.shell.path(DIRECTORY).join("fullchain.cer")).unwrap();
    edgecert().against(&service).args(["--lineage"]).args([acme.shell.path(DIRECTORY)]).succeeds();
    assert_eq!(served_record(&service, &SITES).chain, acme.chain());
}
