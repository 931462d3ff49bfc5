//! acme.sh with the hook as `--reloadcmd`.
//!
//! Debian has no package, so a script runs the command as acme.sh does: with its variables exported, in a subshell, in
//! the domain's directory.

use serde_json::Value;

use crate::harness::{Lineage, Sandbox, edgecert, openssl, sandbox, sync, test_ca};

use super::{Client, ClientOutput, certificates, only_record, served_record};

/// An emulated acme.sh with one domain as the user typed it. Most are wildcards, so that every path contains an asterisk.
struct AcmeSh {
    client: Client,
    domain: &'static str,
    /// Ends the name of the directory.
    suffix: &'static str,
}

const DOMAIN: &str = "*.b.example";

/// What acme.sh runs after it has saved a certificate.
const INSTALL: &str = r#"
DOMAIN_PATH="$HOME/.acme.sh/$Le_Domain$SUFFIX"
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
        let client = Client::new("sh", "dash").deploying_to(service);
        let client = client.env("ACME_DIRECTORY", "https://acme.example/directory");
        client.script("install", INSTALL);
        client.write("roots.pem", test_ca().root());
        let roots = client.path("roots.pem");
        let client = client.env("SSL_CERT_FILE", roots);
        let acme_sh = Self { client, domain: DOMAIN, suffix: "_ecc" };
        acme_sh.with_domain(DOMAIN, "_ecc").env("EDGECERT_ALLOW_UNTRUSTED", "false")
    }

    fn with_domain(self, domain: &'static str, suffix: &'static str) -> Self {
        Self { domain, suffix, ..self }.env("Le_Domain", domain).env("SUFFIX", suffix)
    }

    fn env(self, name: &str, value: &str) -> Self {
        Self { client: self.client.env(name, value), ..self }
    }

    fn directory(&self) -> String {
        format!(".acme.sh/{}{}", self.domain, self.suffix)
    }

    /// Writes the files of a new certificate; acme.sh writes `fullchain.cer` only if the CA sent a chain.
    fn issue(&self, with_chain: bool) {
        self.save(&Lineage::issued_for(&[DOMAIN, "b.example"]), with_chain);
    }

    fn save(&self, issued: &Lineage, with_chain: bool) {
        let domain = self.domain;
        openssl(issued.path(), &["ec", "-in", "privkey.pem", "-out", "sec1.pem"]);
        let key = issued.read("sec1.pem");
        assert!(key.starts_with("-----BEGIN EC PRIVATE KEY-----"), "the label that acme.sh writes");
        self.write(&format!("{domain}.key"), &key);
        self.write(&format!("{domain}.cer"), &issued.read("cert.pem"));
        self.write(&format!("{domain}.conf"), &format!("Le_Domain='{domain}'\nLe_Alt='b.example'\n"));
        self.write("ca.cer", &issued.read("chain.pem"));
        if with_chain {
            self.write("fullchain.cer", &issued.read("fullchain.pem"));
        }
    }

    fn write(&self, name: &str, text: &str) {
        self.client.write(&format!("{}/{name}", self.directory()), text);
    }

    /// Runs a reload command.
    fn reload(self, command: &str) -> (Self, ClientOutput) {
        let acme_sh = self.env("RELOADCMD", command);
        let output = acme_sh.client.run(["install"]);
        (acme_sh, output)
    }

    /// The new certificate with its issuers, without looking at `fullchain.cer`.
    fn chain(&self) -> Vec<String> {
        let file = |name: &str| self.client.read(&format!("{}/{name}", self.directory()));
        certificates(&(file(&format!("{}.cer", self.domain)) + &file("ca.cer")))
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
        let output = hook.args([acme_sh.client.path(&acme_sh.directory())]).succeeds();
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

/// `Le_Domain` is what the user typed; the certificate has A-labels.
#[test]
fn unicode_domain_of_acme_sh_deploys() {
    let service = sandbox(&["x.bücher.example"]);
    let acme_sh = AcmeSh::deploying_to(&service).with_domain("*.bücher.example", "_ecc");
    let issue = |acme_sh: &AcmeSh, days| {
        acme_sh.save(&Lineage::issued_days_ago(days, "acme.sh", &["*.xn--bcher-kva.example"]), true);
    };
    issue(&acme_sh, 2);
    let (acme_sh, output) = acme_sh.reload(HOOK);
    output.succeeds();
    assert_eq!(only_record(&service).chain, acme_sh.chain());
    issue(&acme_sh, 1);
    sync(&service, &acme_sh.client.path("state")).succeeds();
    assert_eq!(only_record(&service).chain, acme_sh.chain());
}

/// An RSA certificate and its ECC sibling are two lineages for the same sites.
#[test]
fn ecc_sibling_is_named() {
    let service = sandbox(&["a.example"]);
    let mut acme_sh = AcmeSh::deploying_to(&service);
    for (suffix, days) in [("", 3), ("_ecc", 2), ("", 1)] {
        acme_sh = acme_sh.with_domain("a.example", suffix);
        acme_sh.save(&Lineage::issued_days_ago(days, "acme.sh", &["a.example"]), true);
        let output;
        (acme_sh, output) = acme_sh.reload(HOOK);
        output.succeeds();
    }
    let status = acme_sh.client.run_in_shell("./edgecert status").succeeds().stdout;
    assert!(status.contains("superseded") && status.contains("a.example_ecc-"), "{status}");
}
