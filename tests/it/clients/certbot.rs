//! certbot with the hook as `--deploy-hook`.

use tempfile::TempDir;

use crate::harness::{Lineage, Sandbox, edgecert, sandbox};

use super::{Client, Pebble, Ran, certificates, only_record, served_record};

/// certbot with directories of its own, and the CA that it renews from.
struct Certbot {
    client: Client,
    ca: Pebble,
}

impl Certbot {
    fn deploying_to(service: &Sandbox) -> Self {
        let ca = Pebble::start();
        let client = Client::new("certbot", "certbot").env("REQUESTS_CA_BUNDLE", ca.ca_file());
        Self { client: client.deploying_to(service), ca }
    }

    fn env(self, name: &str, value: &str) -> Self {
        Self { client: self.client.env(name, value), ca: self.ca }
    }

    fn with_the_service_down(self) -> Self {
        Self { client: self.client.with_the_service_down(), ca: self.ca }
    }

    /// Orders a first certificate. The manual plugin leaves `CERTBOT_*` variables behind, which are not the hook's.
    fn certonly(&self, options: &[&str], names: &[&str]) -> Ran {
        let (directory, hook) = (self.ca.directory(), self.client.named("edgecert"));
        let mut arguments = vec!["certonly", "--non-interactive", "--agree-tos"];
        arguments.extend(["--register-unsafely-without-email", "--server", &directory]);
        arguments.extend(["--manual", "--preferred-challenges", "dns", "--manual-auth-hook", "true"]);
        arguments.extend(["--cert-name", NAME, "--deploy-hook", &hook]);
        arguments.extend(names.iter().flat_map(|name| ["-d", name]));
        self.run(&arguments, options)
    }

    /// Renews what is there, with the hook that certbot saved.
    fn renew(&self, options: &[&str]) -> Ran {
        self.run(&["renew", "--force-renewal", "--no-random-sleep-on-renew"], options)
    }

    fn run(&self, arguments: &[&str], options: &[&str]) -> Ran {
        let directories = ["--config-dir", "config", "--work-dir", "work", "--logs-dir", "logs"];
        self.client.run([arguments, &directories, options].concat())
    }

    /// The chain that certbot has on disk.
    fn chain(&self) -> Vec<String> {
        certificates(&self.client.read(&format!("config/live/{NAME}/fullchain.pem")))
    }

    fn log(&self) -> String {
        self.client.read("logs/letsencrypt.log")
    }
}

/// A name of the lineage that is no domain of it.
const NAME: &str = "shop";

#[test]
fn certbot_brings_its_first_certificate_and_each_renewal_to_every_covered_site_under_one_id() {
    let service = sandbox(&["a.example", "x.b.example", "other.example"]);
    let certbot = Certbot::deploying_to(&service);

    let ran = certbot.certonly(&[], &["*.b.example", "a.example"]).succeeds();
    assert!(ran.stdout.contains("created: true"), "certbot shows the report: {}", ran.stdout);
    let first = served_record(&service, &["a.example", "x.b.example"]);
    assert_eq!(first.chain, certbot.chain());
    assert!(
        service.sites().iter().any(|site| site["domain"] == "other.example" && site["cert_id"].is_null())
    );

    let ran = certbot.renew(&[]).succeeds();
    assert!(ran.stdout.contains("created: false"), "certbot shows the report: {}", ran.stdout);
    let renewed = served_record(&service, &["a.example", "x.b.example"]);
    assert_eq!(renewed.id, first.id);
    assert_ne!(renewed.chain, first.chain);
    assert_eq!(renewed.chain, certbot.chain());
}

#[test]
fn certbot_with_q_deploys_and_prints_nothing() {
    let service = sandbox(&["a.example"]);
    let certbot = Certbot::deploying_to(&service);

    let ran = certbot.certonly(&["-q"], &["a.example"]).succeeds();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    let first = served_record(&service, &["a.example"]);

    let ran = certbot.renew(&["-q"]).succeeds();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    let renewed = served_record(&service, &["a.example"]);
    assert_eq!((renewed.id, &renewed.chain), (first.id, &certbot.chain()));
    assert_ne!(renewed.chain, first.chain);
}

/// Why the outcome must be remembered by the hook itself: nobody else will.
#[test]
fn certbot_with_q_hides_that_the_service_was_down() {
    let service = sandbox(&["a.example"]);
    let certbot = Certbot::deploying_to(&service);
    certbot.certonly(&["-q"], &["a.example"]).succeeds();
    let first = served_record(&service, &["a.example"]);

    let certbot = certbot.with_the_service_down();
    let ran = certbot.renew(&["-q"]).succeeds();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    let log = certbot.log();
    assert!(log.contains("Hook 'deploy-hook' reported error code 75"), "{log}");
    assert!(log.contains("edgecert: error: "), "{log}");
    assert_eq!(only_record(&service), first, "the service still has the certificate from before");
    assert_ne!(certbot.chain(), first.chain, "certbot has the new one and is done");
}

#[test]
fn certbot_without_q_warns_that_the_service_was_down_and_still_exits_0() {
    let service = sandbox(&["a.example"]);
    let certbot = Certbot::deploying_to(&service);
    certbot.certonly(&[], &["a.example"]).succeeds();

    let certbot = certbot.with_the_service_down();
    let ran = certbot.renew(&[]).succeeds();
    assert!(ran.stderr.contains("Hook 'deploy-hook' reported error code 75"), "{}", ran.stderr);
    assert!(ran.stderr.contains("edgecert: error: "), "{}", ran.stderr);
    assert!(ran.stdout.contains("Congratulations, all renewals succeeded"), "{}", ran.stdout);
    assert!(certbot.log().contains("Hook 'deploy-hook' reported error code 75"));
}

#[test]
fn a_certificate_of_a_test_issuer_is_refused_unless_asked_for() {
    let service = sandbox(&["a.example"]);
    let certbot = Certbot::deploying_to(&service).env("EDGECERT_ALLOW_UNTRUSTED", "false");
    let ran = certbot.certonly(&[], &["a.example"]).succeeds();
    assert!(ran.stderr.contains("Hook 'deploy-hook' reported error code 65"), "{}", ran.stderr);
    assert!(ran.stderr.contains("Pebble, a test server"), "{}", ran.stderr);
    assert_eq!(service.requests().len(), 0, "nothing was sent");
}

#[test]
fn the_directory_that_certbot_keeps_is_a_lineage() {
    let service = sandbox(&["a.example"]);
    let certbot = Certbot::deploying_to(&service).with_the_service_down();
    certbot.certonly(&["-q"], &["a.example"]).succeeds();
    let live = certbot.client.path(&format!("config/live/{NAME}"));
    let output = edgecert().against(&service).args(["--json", "--allow-untrusted", "--lineage"]).args([live]);
    assert_eq!(output.succeeds().json()["source"]["client"], "certbot");
    assert_eq!(served_record(&service, &["a.example"]).chain, certbot.chain());
}

#[test]
fn fifty_hooks_beside_a_run_of_certbot_end_in_one_record_each() {
    let domains: Vec<String> = (0..50).map(|number| format!("s{number}.example")).collect();
    let (service, state) = (sandbox(&["a.example"]), TempDir::new().unwrap());
    for domain in &domains {
        service.add_site(domain);
    }
    let lineages: Vec<Lineage> = domains.iter().map(|domain| Lineage::issued_for(&[domain])).collect();
    let certbot = Certbot::deploying_to(&service)
        .env("EDGECERT_STATE_DIR", state.path().to_str().expect("a plain path"));
    std::thread::scope(|scope| {
        let run = scope.spawn(|| certbot.certonly(&[], &["a.example"]).succeeds());
        let hooks: Vec<_> = lineages
            .iter()
            .map(|lineage| {
                let hook = edgecert().called_by_certbot(lineage).against(&service);
                scope.spawn(|| hook.env("EDGECERT_STATE_DIR", state.path()).succeeds())
            })
            .collect();
        for hook in hooks {
            hook.join().unwrap();
        }
        run.join().unwrap();
    });
    let records = service.certs();
    assert_eq!(records.len(), 51);
    let own = records.iter().find(|record| record["domain"] == "a.example").unwrap();
    assert_eq!(certificates(own["cert_pem"].as_str().unwrap()), certbot.chain());
}
