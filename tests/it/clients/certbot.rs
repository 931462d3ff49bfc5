//! certbot with the hook as `--deploy-hook`, and by mistake as `--post-hook`.
//!
//! certbot is Debian's, or the one that `EDGECERT_TEST_CERTBOT` names. What both do runs in `certbot_renewals.rs` and
//! `certbot_hooks.rs` with the newest of `PyPI`, too.

use crate::harness::{Sandbox, env_var, require_from_pypi, sandbox};

use super::{Client, ClientOutput, Pebble, certificates, client_of, only_record, served_record};

/// certbot with its own directories, and the CA that issues to it.
pub(super) struct Certbot {
    pub(super) client: Client,
    ca: Pebble,
}

impl Certbot {
    pub(super) fn deploying_to(service: &Sandbox) -> Self {
        let other = env_var("EDGECERT_TEST_CERTBOT").map(Client::of_program);
        Self::with(other.unwrap_or_else(|| Client::new("certbot", "certbot")), service)
    }

    /// The newest certbot, from `PyPI`.
    pub(super) fn newest(service: &Sandbox) -> Self {
        Self::with(Client::of_program(require_from_pypi("certbot").into()), service)
    }

    fn with(client: Client, service: &Sandbox) -> Self {
        let ca = Pebble::start();
        let client = client.env("REQUESTS_CA_BUNDLE", ca.ca_file());
        Self { client: client.deploying_to(service), ca }
    }

    pub(super) fn env(self, name: &str, value: &str) -> Self {
        Self { client: self.client.env(name, value), ca: self.ca }
    }

    pub(super) fn with_service_down(self) -> Self {
        Self { client: self.client.with_service_down(), ca: self.ca }
    }

    /// Orders the first certificate. The manual plugin leaves `CERTBOT_*` variables in the hook's environment.
    pub(super) fn certonly(&self, options: &[&str], names: &[&str]) -> ClientOutput {
        let (directory, hook) = (self.ca.directory(), self.client.hook());
        let mut arguments = vec!["certonly", "--non-interactive", "--agree-tos"];
        arguments.extend(["--register-unsafely-without-email", "--server", &directory]);
        arguments.extend(["--manual", "--preferred-challenges", "dns", "--manual-auth-hook", "true"]);
        arguments.extend(["--cert-name", NAME, "--deploy-hook", &hook]);
        arguments.extend(names.iter().flat_map(|name| ["-d", name]));
        self.run(&arguments, options)
    }

    /// Renews the certificate with the hook that certbot saved.
    pub(super) fn renew(&self, options: &[&str]) -> ClientOutput {
        self.run(&["renew", "--force-renewal", "--no-random-sleep-on-renew"], options)
    }

    pub(super) fn run(&self, arguments: &[&str], options: &[&str]) -> ClientOutput {
        let directories = ["--config-dir", "config", "--work-dir", "work", "--logs-dir", "logs"];
        self.client.run([arguments, &directories, options].concat())
    }

    /// Major and minor version.
    pub(super) fn version(&self) -> (u32, u32) {
        let version = self.run(&["--version"], &[]).succeeds().stdout;
        let version = version.trim().strip_prefix("certbot ").unwrap();
        let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap());
        (numbers.next().unwrap(), numbers.next().unwrap())
    }

    /// The URL of the CA.
    pub(super) fn directory(&self) -> String {
        self.ca.directory()
    }

    /// The chain on disk.
    pub(super) fn chain(&self) -> Vec<String> {
        self.chain_of(NAME)
    }

    /// The chain of this lineage on disk.
    pub(super) fn chain_of(&self, name: &str) -> Vec<String> {
        certificates(&self.client.read(&format!("config/live/{name}/fullchain.pem")))
    }

    fn log(&self) -> String {
        self.client.read("logs/letsencrypt.log")
    }
}

/// Both versions, as constructors, because each needs a service of its own.
pub(super) const VERSIONS: [fn(&Sandbox) -> Certbot; 2] = [Certbot::deploying_to, Certbot::newest];

/// The name of the lineage, which is not one of its domains.
pub(super) const NAME: &str = "shop";

/// This is why the hook records its own outcome: quiet certbot reports nothing.
#[test]
fn quiet_certbot_hides_hook_failure() {
    let service = sandbox(&["a.example"]);
    let certbot = Certbot::deploying_to(&service);
    let output = certbot.certonly(&["-q"], &["a.example"]).succeeds();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""));
    let first = served_record(&service, &["a.example"]);
    assert_eq!(client_of(&certbot.client, &format!("config/live/{NAME}")), "certbot");

    let certbot = certbot.with_service_down();
    let output = certbot.renew(&["-q"]).succeeds();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""));
    let log = certbot.log();
    assert!(log.contains("Hook 'deploy-hook' reported error code 75"), "{log}");
    assert!(log.contains("edgecert: error: "), "{log}");
    assert_eq!(only_record(&service), first, "the service keeps the previous certificate");
    assert_ne!(certbot.chain(), first.chain, "certbot has renewed");
}

#[test]
fn test_issuer_is_refused_under_certbot() {
    let service = sandbox(&["a.example"]);
    let certbot = Certbot::deploying_to(&service).env("EDGECERT_ALLOW_UNTRUSTED", "false");
    let output = certbot.certonly(&[], &["a.example"]).succeeds();
    assert!(output.stderr.contains("Hook 'deploy-hook' reported error code 65"), "{}", output.stderr);
    assert!(output.stderr.contains("Pebble, a test server"), "{}", output.stderr);
    assert_eq!(service.requests().len(), 0, "nothing was sent");
}

#[test]
fn post_hook_is_a_configuration_error() {
    // Before 4.2, certbot sets no variable for a post hook, but those of the last deploy hook remain set.
    for (deploy_hook, earlier) in [("", 2), ("true", 0)] {
        let service = sandbox(&["a.example"]);
        let certbot = Certbot::deploying_to(&service);
        let hook = certbot.client.hook();
        let code = if certbot.version() >= (4, 2) { 78 } else { earlier };
        let options = ["--deploy-hook", deploy_hook, "--post-hook", &hook];
        let outputs = [certbot.certonly(&options, &["a.example"]), certbot.renew(&[])];
        for output in outputs.map(ClientOutput::succeeds) {
            let expected = format!("Hook 'post-hook' reported error code {code}");
            assert_eq!(output.stderr.contains(&expected), code != 0, "{}", output.stderr);
            assert_eq!(output.stderr.contains("use --deploy-hook, not --post-hook"), code == 78);
        }
        assert_eq!(service.certs().is_empty(), code != 0);
    }
}

/// certbot exits 1 if it cannot decode the output of a hook; under `LC_ALL=C`, Python may decode ASCII only.
#[test]
fn unicode_site_deploys_in_ascii_locale() {
    let service = sandbox(&["bücher.example"]);
    let certbot = Certbot::deploying_to(&service).env("LC_ALL", "C");
    let certbot = certbot.env("PYTHONUTF8", "0").env("PYTHONCOERCECLOCALE", "0");
    let output = certbot.certonly(&[], &["xn--bcher-kva.example"]).succeeds();
    assert!(output.stdout.contains(r"b\u00fccher.example"), "{}", output.stdout);
    assert_eq!(only_record(&service).chain, certbot.chain());
}

/// certbot holds its lock while a hook runs, so that a second certbot fails at once.
#[test]
fn hook_needs_no_lock_of_certbot() {
    let service = sandbox(&["a.example"]);
    let certbot = Certbot::deploying_to(&service);
    let program = certbot.client.program_text();
    let directories = "--config-dir config --work-dir work --logs-dir logs";
    let hook = certbot.client.script(
        "hook",
        &format!(
            "{program} certificates {directories} >certbot 2>&1 && exit 9\n\
             ./edgecert && ./edgecert sync && ./edgecert status && ./edgecert doctor --json >doctor || [ -s doctor ]\n"
        ),
    );
    let output = certbot.certonly(&["--deploy-hook", &hook], &["a.example"]).succeeds();
    assert!(!output.stderr.contains("reported error"), "{}", output.stderr);
    assert!(certbot.client.read("certbot").contains("Another instance of Certbot"), "the lock was held");
    assert!(certbot.client.read("doctor").contains("\"findings\""));
    served_record(&service, &["a.example"]);
}

#[test]
fn post_hook_may_run_sync() {
    let service = sandbox(&["a.example"]);
    let certbot = Certbot::deploying_to(&service);
    certbot.certonly(&[], &["a.example"]).succeeds();
    let first = served_record(&service, &["a.example"]);
    let sync = format!("{} sync", certbot.client.hook());
    let output = certbot.renew(&["--deploy-hook", "true", "--post-hook", &sync]).succeeds();
    assert!(!output.stderr.contains("reported error"), "{}", output.stderr);
    let renewed = served_record(&service, &["a.example"]);
    assert_eq!((renewed.id, &renewed.chain), (first.id, &certbot.chain()));
    assert_ne!(renewed.chain, first.chain);
}
