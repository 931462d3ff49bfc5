//! The path of the chain to a root: a warning, a refusal with `trust_anchors`, and what it costs.

use std::fs;

use expect_test::expect;
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{
    Authority, Hook, Lineage, Sandbox, configured, edgecert, fresh, open_count, request_lines, sandbox,
    state_files, step, tls_sandbox, upload_count,
};

const NO_PATH: &str = "has no path to a trust anchor";

/// A CA that the system does not trust, and a lineage of it.
struct Private {
    ca: Authority,
    lineage: Lineage,
}

impl Private {
    fn named(name: &str) -> Self {
        let private =
            Self { ca: Authority::new(name).unwrap(), lineage: Lineage::issued_for(&["a.example"]) };
        private.renew();
        private
    }

    fn new() -> Self {
        Self::named("Private CA")
    }

    fn renew(&self) {
        let issued = self.ca.issue(&["a.example"]).unwrap();
        self.lineage.write("fullchain.pem", &issued.fullchain());
        self.lineage.write("privkey.pem", &issued.key);
    }

    /// Writes the root next to the certificate, and returns its path.
    fn root(&self) -> String {
        self.lineage.write("root.pem", self.ca.root());
        self.lineage.file("root.pem").into_os_string().into_string().unwrap()
    }

    fn deploy(&self, service: &Sandbox) -> Hook {
        fresh(service, &self.lineage)
    }
}

/// Runs a hook, and counts how often it opens the system's trust store.
fn opens_of_system_roots(hook: Hook) -> usize {
    let (files, roots) = (TempDir::new().unwrap(), hook.system_roots().to_owned());
    let trace = files.path().join("trace");
    hook.under(&["strace", "-f", "-qq", "-e", "trace=%file", "-o", trace.to_str().unwrap()]).succeeds();
    let trace = fs::read_to_string(trace).unwrap();
    assert!(trace.contains("/fullchain.pem\""), "the trace is empty");
    open_count(&trace, &roots)
}

#[test]
fn unset_anchors_warn() {
    let (service, private) = (sandbox(&["a.example"]), Private::new());

    step("plan_checks_without_writing_state");
    for arguments in [&["plan"][..], &["deploy", "--dry-run"]] {
        let state = TempDir::new().unwrap();
        for _ in 0..2 {
            let plan = private.deploy(&service).args(arguments).with_state(state.path());
            assert!(plan.succeeds().stderr.contains(NO_PATH), "{arguments:?}");
        }
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 0, "{arguments:?}");
    }
    assert_eq!(upload_count(&service), 0);

    step("unset_warns");
    let first = private.deploy(&service).succeeds();
    expect![[r#"
        a.example   P-256, expires DATE (TIME)
          ! checked   validity, names, key, purpose, chain, issuer; 1 warning
          * uploaded  certificate 1001 (created), bound to 1 site
          * served    a.example  1/1
        done in TIME
        ---
        edgecert: warning: LINEAGE/fullchain.pem has no path to a trust anchor: the chain does not end at one; check that the file holds the full chain; name the root of a private CA with --trust-anchors FILE, or pass --trust-anchors off
    "#]]
    .assert_eq(&first.snapshot());
}

#[test]
fn set_anchors_decide() {
    let (service, private) = (sandbox(&["a.example"]), Private::new());

    step("set_refuses_before_any_request");
    let other = Private::named("Other CA");
    let root = other.root();
    let rows = [
        ("flag", private.deploy(&service).args(["--trust-anchors", &root])),
        ("bare upload", {
            let hook = private.deploy(&service).for_domain("a.example").args(["--wait", "0"]);
            hook.args(["--trust-anchors", "system"])
        }),
        ("plan", private.deploy(&service).args(["plan", "--trust-anchors", "system"])),
    ];
    for (name, hook) in rows {
        let snapshot = hook.exits_with(65).snapshot();
        let unsent = if name == "plan" { "" } else { "; nothing was sent" };
        let messages = format!(
            "edgecert: error: LINEAGE/fullchain.pem has no path to a trust anchor: the chain does not end at one{unsent}\n\
             edgecert: hint: check that the file holds the full chain; name the root of a private CA with --trust-anchors FILE, or pass --trust-anchors off\n"
        );
        assert_eq!(snapshot.split("---\n").nth(1).unwrap(), messages, "{name}");
    }
    assert_eq!(request_lines(&service), Vec::<String>::new());

    step("unusable_trust_store_matters_only_if_set");
    let files = TempDir::new().unwrap();
    let empty = files.path().join("empty.pem");
    fs::write(&empty, "").unwrap();
    let deploy = |value: &str| {
        let hook = private.deploy(&service).env("SSL_CERT_FILE", &empty);
        hook.env("EDGECERT_TRUST_ANCHORS", value)
    };
    let missing = files.path().join("missing.pem");
    let rows = [
        ("system", "the system's trust store holds no usable certificate"),
        (empty.to_str().unwrap(), "it does not hold CA certificates in PEM only"),
        (missing.to_str().unwrap(), "missing.pem: no such file"),
        (files.path().to_str().unwrap(), "cannot use the CA file"),
    ];
    for (value, message) in rows {
        let output = deploy(value).exits_with(78);
        assert!(output.stderr.contains(message), "{value}: {}", output.stderr);
    }
    assert_eq!(request_lines(&service), Vec::<String>::new());
    assert_eq!(deploy("off").succeeds().stderr, "");
    deploy("off")
        .without_env("EDGECERT_TRUST_ANCHORS")
        .args(["-v"])
        .succeeds()
        .says("the path to a root is not checked: ");

    step("right_root_passes_silently");
    let root = private.root();
    let system = private.deploy(&service).env("SSL_CERT_FILE", &root);
    fs::write(files.path().join("root.pem"), private.ca.root()).unwrap();
    let damaged = files.path().join("damaged");
    fs::write(&damaged, format!("{}-----BEGIN CERTIFICATE-----\nA?\n", private.ca.root())).unwrap();
    let required = || private.deploy(&service).env("EDGECERT_TRUST_ANCHORS", "system");
    let directory = required().env("SSL_CERT_DIR", files.path());
    let rows = [
        ("unset, trusted by the system", system),
        ("in a directory beside another file", directory.env("SSL_CERT_FILE", other.root())),
        ("before a damaged block", required().env("SSL_CERT_FILE", &damaged)),
        ("flag", private.deploy(&service).args(["--trust-anchors", &root])),
        ("off", private.deploy(&service).env("EDGECERT_TRUST_ANCHORS", "off")),
    ];
    for (name, hook) in rows {
        assert_eq!(hook.succeeds().stderr, "", "{name}");
    }

    step("missing_issuer_is_one_warning");
    let chain = private.lineage.read("fullchain.pem");
    let leaf = chain.split_inclusive("-----END CERTIFICATE-----\n").next().unwrap();
    private.lineage.write("fullchain.pem", leaf);
    let output = private.deploy(&service).succeeds();
    output.says("holds the leaf without its issuer");
    assert!(!output.stderr.contains(NO_PATH), "{}", output.stderr);
}

#[test]
fn untrusted_issuer_is_one_warning() {
    let service = sandbox(&["a.example"]);
    let staging = Private::named("(STAGING) Pretend Pear");
    let refused = staging.deploy(&service).exits_with(65);
    assert!(!refused.stderr.contains(NO_PATH), "{}", refused.stderr);
    let allowed = staging.deploy(&service).args(["--allow-untrusted"]).succeeds();
    assert_eq!(allowed.stderr.matches("warning: ").count(), 1, "{}", allowed.stderr);
    assert!(!allowed.stderr.contains(NO_PATH), "{}", allowed.stderr);
    // Allowing the issuer does not replace a root that is required.
    let required = staging.deploy(&service).args(["--allow-untrusted", "--trust-anchors", "system"]);
    required.exits_with(65).says("has no path to a trust anchor");
}

#[test]
fn sync_keeps_to_recorded_anchors() {
    let (service, state, private) = (sandbox(&["a.example"]), TempDir::new().unwrap(), Private::new());
    let root = private.root();
    let hook = private.deploy(&service).with_state(state.path());
    // Relative to the directory of the run.
    let mut hook = hook.args(["--trust-anchors", "root.pem"]);
    hook.command().current_dir(private.lineage.path());
    hook.succeeds();
    let recorded: Value = serde_json::from_slice(&fs::read(&state_files(state.path())[0]).unwrap()).unwrap();
    assert_eq!(recorded["standing"]["settings"]["trust_anchors"], root);
    private.renew();
    let sync = || edgecert().against(&service).with_state(state.path()).args(["sync"]);
    assert_eq!(sync().succeeds().stderr, "");
    assert_eq!(upload_count(&service), 2);

    let other = Private::new();
    for file in ["fullchain.pem", "privkey.pem"] {
        private.lineage.write(file, &other.lineage.read(file));
    }
    sync().exits_with(65).says("has no path to a trust anchor");
    assert_eq!(upload_count(&service), 2);
}

#[test]
fn bare_upload_loads_nothing_more() {
    let service = sandbox(&["a.example"]);
    let tls = tls_sandbox(&["a.example"]);
    let private = Private::new();
    let bare = |service: &Sandbox| private.deploy(service).for_domain("a.example").args(["--wait", "0"]);
    assert_eq!(opens_of_system_roots(bare(&service)), 0);
    assert_eq!(opens_of_system_roots(bare(&tls)), 0, "the connection trusts ca_file only");
    assert_eq!(bare(&service).succeeds().stderr, "");
    assert_ne!(opens_of_system_roots(private.deploy(&service)), 0);

    // The connection loads the system's roots, so the path is checked too.
    let with_system_roots = |hook: Hook| {
        fs::copy(tls.endpoints().ca_file.as_ref().unwrap(), hook.system_roots()).unwrap();
        hook.without_env("EDGECERT_CA_FILE")
    };
    assert!(with_system_roots(bare(&tls)).succeeds().stderr.contains(NO_PATH));
    let unchecked = with_system_roots(bare(&tls).args(["--trust-anchors", "off"]));
    let opens = opens_of_system_roots(unchecked);
    assert_ne!(opens, 0);
    assert_eq!(opens_of_system_roots(with_system_roots(bare(&tls))), opens);
    assert_eq!(opens_of_system_roots(with_system_roots(private.deploy(&tls))), opens);
}

#[test]
fn sync_loads_the_roots_once() {
    let names = ["a.example", "b.example", "c.example"];
    let service = sandbox(&names);
    let lineages = names.map(|name| Lineage::issued_for(&[name]));
    let sync = |lineages: &[&Lineage]| {
        opens_of_system_roots(configured(edgecert().against(&service).args(["sync"]), lineages))
    };
    let lineages = lineages.each_ref();
    let opens = sync(&lineages[..1]);
    assert_ne!(opens, 0);
    assert_eq!(sync(&lineages), opens);
    assert_eq!(upload_count(&service), 3, "the first one has its certificate");
}
