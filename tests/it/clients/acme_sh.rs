//! acme.sh with the hook as `--reloadcmd`.
//!
//! Debian has no package, so a script runs the command as acme.sh does: with its variables exported, in a subshell, in
//! the domain's directory.

use serde_json::Value;

use crate::harness::{Lineage, Sandbox, edgecert, openssl, sandbox};

use super::{Client, ClientOutput, certificates, served_record};

/// An emulated acme.sh with one wildcard domain, so that every path contains an asterisk.
struct AcmeSh {
    client: Client,
}

const DOMAIN: &str = "*.b.example";
const DIRECTORY: &str = ".acme.sh/*.b.example_ecc";

/// What acme.sh runs after it has saved a certificate.
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
        let client = Client::new("sh", "dash").env("Le_Domain", DOMAIN);
        let client = client.env("ACME_DIRECTORY", "https://acme.example/directory").deploying_to(service);
        client.script("install", INSTALL);
        Self { client }.env("EDGECERT_ALLOW_UNTRUSTED", "false")
    }

    fn env(self, name: &str, value: &str) -> Self {
        Self { client: self.client.env(name, value) }
    }

    /// Writes the files of a new certificate; acme.sh writes `fullchain.cer` only if the CA sent a chain.
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
        self.client.write(&format!("{DIRECTORY}/{name}"), text);
    }

    /// Runs a reload command.
    fn reload(self, command: &str) -> (Self, ClientOutput) {
        let acme_sh = self.env("RELOADCMD", command);
        let output = acme_sh.client.run(["install"]);
        (acme_sh, output)
    }

    /// The new certificate with its issuers, without looking at `fullchain.cer`.
    fn chain(&self) -> Vec<String> {
        let file = |name: &str| self.client.read(&format!("{DIRECTORY}/{name}"));
        certificates(&(file(&format!("{DOMAIN}.cer")) + &file("ca.cer")))
    }
}

const SITES: [&str; 2] = ["x.b.example", "b.example"];
const HOOK: &str = r#""$HOME/edgecert""#;

#[test]
fn acme_sh_deploys_and_renews_wildcard() {
    let service = sandbox(&SITES);
    let acme_sh = AcmeSh::deploying_to(&service);
    acme_sh.issue(true);
    let (acme_sh, output) = acme_sh.reload(&format!("{HOOK} --json >\"$HOME/report\""));
    output.succeeds();
    let first = served_record(&service, &SITES);
    assert_eq!(first.chain, acme_sh.chain());
    let report: Value = serde_json::from_str(&acme_sh.client.read("report")).unwrap();
    assert_eq!(report["source"]["client"], "acme.sh");

    acme_sh.issue(true);
    let (acme_sh, output) = acme_sh.reload(HOOK);
    assert!(output.succeeds().stdout.ends_with("Reload success\n"));
    let renewed = served_record(&service, &SITES);
    assert_eq!((renewed.id, &renewed.chain), (first.id, &acme_sh.chain()));
    assert_ne!(renewed.chain, first.chain);
}

/// acme.sh writes no `fullchain.cer` for a CA that sends no chain, and leaves an older one as it is.
#[test]
fn missing_or_outdated_full_chain_is_not_deployed() {
    for (variable, is_outdated) in [("", false), ("1", false), ("", true)] {
        let service = sandbox(&SITES);
        let acme_sh = AcmeSh::deploying_to(&service).env("WITHOUT_FULLCHAIN", variable);
        if is_outdated {
            acme_sh.issue(true);
        }
        acme_sh.issue(false);
        let (acme_sh, output) = acme_sh.reload(HOOK);
        output.succeeds();
        let record = served_record(&service, &SITES);
        assert_eq!(record.chain, acme_sh.chain());

        // The same without variables.
        acme_sh.issue(is_outdated);
        let hook = edgecert().against(&service).args(["--json", "--lineage"]);
        let output = hook.args([acme_sh.client.path(DIRECTORY)]).succeeds();
        assert_eq!(output.json()["source"]["client"], "acme.sh");
        assert_eq!(served_record(&service, &SITES).chain, acme_sh.chain());
    }
}

#[test]
fn acme_sh_reports_hook_failure() {
    let service = sandbox(&SITES);
    let acme_sh = AcmeSh::deploying_to(&service)
        .env("ACME_DIRECTORY", "https://acme-staging-v02.api.letsencrypt.org/directory");
    acme_sh.issue(true);
    let (_, output) = acme_sh.reload(HOOK);
    let stderr = output.exits_with(1).stderr;
    assert!(stderr.contains("staging"), "{stderr}");
    assert!(stderr.ends_with("Reload error for: *.b.example\n"), "{stderr}");
    assert_eq!(service.requests().len(), 0);
}
