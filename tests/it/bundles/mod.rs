//! Local checks of certificates and keys as they occur in practice, valid and broken.
//!
//! Each file covers one check, as a table of inputs with what the check finds. The tables call the checks; only
//! [`each_check_decides_the_exit_code`] runs the program.

use std::path::Path;
use std::sync::OnceLock;

use edgecert::bundle::{Bundle, Files};
use edgecert::check::{self, CheckContext, Finding, PathRule, Status};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use time::OffsetDateTime;

use crate::harness::{Authority, Lineage, edgecert, openssl, scrub_times, sign_between};

mod chain;
mod encodings;
mod issuers;
mod key_types;
mod keys;
mod names;
mod pem;
mod purpose;
mod times;
mod upload;
mod validity;
mod weak;

/// Certificates and keys that the cases are assembled from: a root, intermediates, leaves.
struct Fixtures {
    home: Lineage,
}

impl Fixtures {
    fn new() -> Self {
        let home = Lineage::issued_for(&["a.example"]);
        let directory = home.path();
        let ec = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out"];
        for key in ["root.key", "ica.key", "leaf.key", "other.key", "old-ica.key", "expired-ica.key"] {
            openssl(directory, &[&ec[..], &[key]].concat());
        }
        home.write(
            "ca.cnf",
            "basicConstraints=critical,CA:TRUE\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n",
        );
        home.write(
            "leaf.cnf",
            "subjectAltName=DNS:a.example\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n",
        );
        self_signed(directory, "root", "/CN=Root");
        issue(directory, "ica", "root", "/CN=Intermediate", "ca.cnf", "60");
        issue(directory, "old-ica", "root", "/CN=Intermediate", "ca.cnf", "60");
        issue(directory, "leaf", "ica", "/CN=a.example", "leaf.cnf", "30");
        issue(directory, "other", "ica", "/CN=other", "leaf.cnf", "30");
        for name in ["again", "client", "expired-leaf"] {
            home.write(&format!("{name}.key"), &home.read("leaf.key"));
        }
        issue(directory, "again", "ica", "/CN=a.example", "leaf.cnf", "31");
        home.write("client.cnf", "subjectAltName=DNS:a.example\nextendedKeyUsage=clientAuth\n");
        issue(directory, "client", "ica", "/CN=a.example", "client.cnf", "30");
        issue(directory, "expired-ica", "root", "/CN=Expired Intermediate", "ca.cnf", "1");
        sign_between(directory, "expired-ica", "root", "ca.cnf", ["20200101000000Z", "20210101000000Z"]);
        issue(directory, "expired-leaf", "expired-ica", "/CN=a.example", "leaf.cnf", "30");
        signed_with_pss(&home, "pss", "RSA");
        signed_with_pss(&home, "pss-only", "RSA-PSS");
        Self { home }
    }

    fn pem(&self, name: &str) -> String {
        self.home.read(name)
    }
}

/// Issues `NAME.crt` for an RSASSA-PSS key, signed with RSASSA-PSS by `NAME-root`, whose key has this type.
fn signed_with_pss(home: &Lineage, name: &str, ca_type: &str) {
    let (directory, root) = (home.path(), &*format!("{name}-root"));
    for (key, kind) in [(root, ca_type), (name, "RSA-PSS")] {
        let out = format!("{key}.key");
        openssl(
            directory,
            &["genpkey", "-algorithm", kind, "-pkeyopt", "rsa_keygen_bits:2048", "-out", &out],
        );
    }
    self_signed(directory, root, "/CN=PSS Root");
    let [key, csr, out] = ["key", "csr", "crt"].map(|ending| format!("{name}.{ending}"));
    let [ca_crt, ca_key] = ["crt", "key"].map(|ending| format!("{root}.{ending}"));
    openssl(directory, &["req", "-new", "-key", &key, "-subj", "/CN=a.example", "-out", &csr]);
    let mut sign = vec!["x509", "-req", "-in", &csr, "-CA", &ca_crt, "-CAkey", &ca_key, "-days", "30"];
    sign.extend(["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest", "-sha256"]);
    sign.extend(["-extfile", "leaf.cnf", "-out", &out]);
    openssl(directory, &sign);
}

fn self_signed(directory: &Path, name: &str, subject: &str) {
    let (key, out) = (format!("{name}.key"), format!("{name}.crt"));
    openssl(
        directory,
        &["req", "-x509", "-new", "-key", &key, "-subj", subject, "-days", "90", "-out", &out],
    );
}

fn issue(directory: &Path, name: &str, ca: &str, subject: &str, extensions: &str, days: &str) {
    let [key, csr, out] = ["key", "csr", "crt"].map(|ending| format!("{name}.{ending}"));
    let [ca_crt, ca_key] = ["crt", "key"].map(|ending| format!("{ca}.{ending}"));
    openssl(directory, &["req", "-new", "-key", &key, "-subj", subject, "-out", &csr]);
    openssl(
        directory,
        &[
            "x509", "-req", "-in", &csr, "-CA", &ca_crt, "-CAkey", &ca_key, "-days", days, "-extfile",
            extensions, "-out", &out,
        ],
    );
}

fn fixtures() -> &'static Fixtures {
    static PARTS: OnceLock<Fixtures> = OnceLock::new();
    PARTS.get_or_init(Fixtures::new)
}

/// What the local checks are given. By default there is no key and nothing is required.
#[derive(Default)]
pub(crate) struct Input<'a> {
    pub(crate) cert: &'a [u8],
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) domains: &'a [&'a str],
    /// `None`: when the leaf becomes valid.
    pub(crate) at: Option<OffsetDateTime>,
    pub(crate) anchors: Option<&'a RootCertStore>,
    pub(crate) directory: Option<&'a str>,
    /// Whether a test, staging or self-signed issuer is a failure, not a warning.
    pub(crate) refuses_untrusted: bool,
}

/// What the local checks find.
pub(crate) struct Checked {
    bundle: Bundle,
    findings: Vec<Finding>,
}

impl Input<'_> {
    pub(crate) fn check(&self) -> Checked {
        let files = Files { cert: "cert.pem".into(), issuers: None, key: self.key.map(|_| "key.pem".into()) };
        let bundle = Bundle::from_bytes(&files, self.cert, None, self.key);
        let start = bundle.chain.as_ref().ok().map(|chain| chain.leaf.not_before);
        let domains: Vec<_> = self.domains.iter().map(|domain| domain.parse().unwrap()).collect();
        let context = CheckContext {
            domains: &domains,
            at: self.at.or(start).unwrap_or(OffsetDateTime::UNIX_EPOCH),
            untrusted: if self.refuses_untrusted { Status::Fail } else { Status::Warn },
            path: self.anchors.map(|anchors| PathRule { anchors, no_path: Status::Fail }),
            directory: self.directory,
        };
        let findings = check::run(&bundle, &context);
        Checked { bundle, findings }
    }
}

impl Checked {
    /// A line for each finding, as in the report, and one for its hint.
    fn lines(&self) -> String {
        let line = |finding: &Finding| {
            let sign = match finding.status {
                Status::Ok => '*',
                Status::Warn => '!',
                Status::Fail => 'x',
                Status::Skipped => '-',
            };
            let hint = finding.hint.as_ref().map_or(String::new(), |hint| format!("    hint: {hint}\n"));
            format!("  {sign} {:<8}  {}\n{hint}", finding.check.to_string(), finding.detail)
        };
        scrub_times(&self.findings.iter().map(line).collect::<Vec<_>>().concat())
    }

    /// The checks that failed.
    pub(crate) fn failed(&self) -> Vec<String> {
        let failed = self.findings.iter().filter(|finding| finding.status == Status::Fail);
        failed.map(|finding| finding.check.to_string()).collect()
    }

    /// The chain and the key that would be uploaded; `None` if a check failed or there is no key.
    fn sent(&self) -> Option<(String, String)> {
        let vetted = check::vet(&self.bundle, &self.findings).ok()?;
        Some((vetted.chain().pem(), vetted.key().pem().expose().to_owned()))
    }

    /// Asserts that there is a finding with this line. The files are refused if and only if its sign is `x`. No text has
    /// control characters.
    #[track_caller]
    fn assert_finds(&self, name: &str, line: &str) {
        let lines = self.lines();
        assert!(lines.contains(&format!("  {line}")), "{name}: no {line:?} in\n{lines}");
        let is_refused = !self.failed().is_empty();
        assert_eq!(is_refused, line.starts_with("x "), "{name}: {lines}");
        assert_eq!(self.sent().is_some(), !is_refused && self.bundle.key.is_some(), "{name}: {lines}");
        assert!(!lines.chars().any(|c| c.is_control() && c != '\n'), "{name}: {lines:?}");
    }
}

/// Asserts what the checks of a certificate file and a key file for `a.example` find.
#[track_caller]
fn assert_finds(name: &str, cert: impl AsRef<[u8]>, key: impl AsRef<[u8]>, line: &str) {
    let (cert, key) = (cert.as_ref(), Some(key.as_ref()));
    Input { cert, key, domains: &["a.example"], ..Input::default() }.check().assert_finds(name, line);
}

/// A trust store of these certificates.
pub(crate) fn roots(pem: &str) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    roots
}

/// One failure of each check: what only a run of the program shows.
#[test]
fn each_check_decides_the_exit_code() {
    let fixtures = fixtures();
    let [leaf, ica, key, other_key] =
        ["leaf.crt", "ica.crt", "leaf.key", "other.key"].map(|name| fixtures.pem(name));
    let chain = format!("{leaf}{ica}");
    let staging = Authority::new("(STAGING) Pear").unwrap().issue(&["a.example"]).unwrap();
    let rows: [(&str, &str, &[&str], i32, &str); 9] = [
        (&chain, &key, &[], 0, "* key       P-256, key and certificate match\n"),
        (&chain.replace('\n', "\r"), &key, &[], 0, "private key; cleaned: line endings\n"),
        (&leaf.repeat(300), &key, &[], 65, "x pem       HOME/cert.pem holds more than 256 PEM blocks\n"),
        (
            &chain,
            &key,
            &["--at", "2020-01-01T00:00:00Z"],
            65,
            "x validity  HOME/cert.pem is not valid before DATE",
        ),
        (
            &chain,
            &key,
            &["--domain", "b.example"],
            65,
            "x names     HOME/cert.pem does not cover b.example, only a.example\n",
        ),
        (&chain, &other_key, &[], 65, "x key       HOME/key.pem is not the private key of HOME/cert.pem: "),
        (
            &fixtures.pem("client.crt"),
            &key,
            &[],
            65,
            "x purpose   HOME/cert.pem has the extended key usage clientAuth, ",
        ),
        (
            &chain,
            &key,
            &["--trust-anchors", "system"],
            65,
            "x chain     HOME/cert.pem has no path to a trust anchor: ",
        ),
        (
            &staging.cert,
            &staging.key,
            &[],
            65,
            "x issuer    HOME/cert.pem was issued by (STAGING) Pear intermediate, ",
        ),
    ];
    for (cert, key, arguments, code, line) in rows {
        let hook = edgecert();
        let [cert, key] = [hook.write_file("cert.pem", cert), hook.write_file("key.pem", key)];
        let files = ["--cert".as_ref(), cert.as_os_str(), "--key".as_ref(), key.as_os_str()];
        let output = hook.args(["check"]).args(files).args(arguments).run();
        let shown = output.snapshot();
        assert!(output.code == code && shown.contains(line), "{line}: {shown}");
        // The hints of warnings are part of the report.
        assert_eq!(output.stderr.contains("edgecert: hint: "), code != 0, "{line}: {shown}");
    }
}
