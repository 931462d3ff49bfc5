//! The checks of certificates and keys as they occur in practice, valid and broken: tables of inputs with what is found.

mod chain;
mod issuer;
mod key;
mod names;
mod pem;
mod purpose;
mod strict;
mod validity;

use edgecert_workload::der::{self, ForgedCert, extension};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use time::OffsetDateTime;

use super::*;
use crate::bundle::Files;

/// Seeds of the keys.
const LEAF: u8 = 1;
const CA: u8 = 2;
const ROOT: u8 = 3;
const OLD_CA: u8 = 4;
const EXPIRED_CA: u8 = 5;
const OTHER: u8 = 6;

/// A leaf that the intermediate issued, with the identifiers of both keys.
fn leaf() -> ForgedCert<'static> {
    issued(LEAF, CA, "Intermediate", &[])
}

/// A CA certificate that the root issued.
fn ca(subject: &'static str, seed: u8) -> ForgedCert<'static> {
    let is_ca = extension("2.5.29.19", true, &der::sequence(&[der::tlv(1, &[0xff])]));
    ForgedCert { subject, names: Vec::new(), ..issued(seed, ROOT, "Root", &[is_ca]) }
}

fn issued(seed: u8, issuer_seed: u8, issuer: &'static str, more: &[Vec<u8>]) -> ForgedCert<'static> {
    let own = der::tlv(der::OCTET_STRING, &[seed; 20]);
    let authority = der::sequence(&[der::tlv(0x80, &[issuer_seed; 20])]);
    let ids = [extension("2.5.29.14", false, &own), extension("2.5.29.35", false, &authority)];
    ForgedCert { seed, issuer_seed, issuer, extensions: [&ids, more].concat(), ..ForgedCert::default() }
}

/// A leaf for `a.example`, its intermediate, both together, and the key of the leaf.
fn files() -> [String; 4] {
    let [leaf, ca] = [leaf().pem(), ca("Intermediate", CA).pem()];
    [leaf.clone(), ca.clone(), leaf + &ca, key_file(LEAF)]
}

fn key_file(seed: u8) -> String {
    der::pem("PRIVATE KEY", &der::private_key(seed))
}

/// A trust store of these certificates.
fn roots(pem: &str) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem.as_bytes()).map(Result::unwrap));
    roots
}

/// What the checks are given. By default there is no key and nothing is required.
#[derive(Default)]
struct Input<'a> {
    cert: &'a [u8],
    key: Option<&'a [u8]>,
    domains: &'a [&'a str],
    /// `None`: when the leaf becomes valid.
    at: Option<OffsetDateTime>,
    anchors: Option<&'a RootCertStore>,
    /// Whether a chain without a path to an anchor is only a warning.
    is_path_advisory: bool,
    directory: Option<&'a str>,
    /// Whether a test, staging or self-signed issuer is a failure, not a warning.
    refuses_untrusted: bool,
}

impl<'a> Input<'a> {
    fn new(cert: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self { cert: cert.as_ref(), ..Self::default() }
    }

    /// Returns the findings as the report shows them, a line for each and one for its hint, and the chain and the key that
    /// would be uploaded.
    #[track_caller]
    fn check(&self) -> (String, Option<[String; 2]>) {
        let files = Files { cert: "cert.pem".into(), issuers: None, key: self.key.map(|_| "key.pem".into()) };
        let bundle = Bundle::from_bytes(&files, self.cert, None, self.key);
        let start = bundle.chain.as_ref().ok().map(|chain| chain.leaf.not_before);
        let no_path = if self.is_path_advisory { Status::Warn } else { Status::Fail };
        let domains: Vec<_> = self.domains.iter().map(|domain| domain.parse().unwrap()).collect();
        let findings = run(
            &bundle,
            &CheckContext {
                domains: &domains,
                at: self.at.or(start).unwrap_or(OffsetDateTime::UNIX_EPOCH),
                untrusted: if self.refuses_untrusted { Status::Fail } else { Status::Warn },
                path: self.anchors.map(|anchors| PathRule { anchors, no_path }),
                directory: self.directory,
            },
        );
        let line = |finding: &Finding| {
            let sign = match finding.status {
                Status::Ok => '*',
                Status::Warn => '!',
                Status::Fail => 'x',
                Status::Skipped => '-',
            };
            let hint = finding.hint.as_ref().map_or(String::new(), |hint| format!("  hint: {hint}\n"));
            format!("{sign} {}: {}\n{hint}", finding.check, finding.detail)
        };
        let lines: String = findings.iter().map(line).collect();
        let sent = vet(&bundle, &findings);
        let sent = sent.map(|vetted| [vetted.chain().pem(), vetted.key().pem().expose().to_owned()]);
        // Neither a name nor anything else in a certificate controls the terminal.
        assert!(!lines.chars().any(|c| c.is_control() && c != '\n'), "{lines:?}");
        assert!(!(lines.contains("x pem: ") && lines.contains("* pem: ")), "cleaned, but refused: {lines}");
        let is_refused = findings.iter().any(|finding| finding.status == Status::Fail);
        assert_eq!(sent.is_some(), !is_refused && self.key.is_some(), "{lines}");
        (lines, sent)
    }

    /// Asserts that the findings have this line. The files are refused if and only if its sign is `x`.
    #[track_caller]
    fn finds(&self, name: &str, line: &str) {
        let (lines, _) = self.check();
        assert!(format!("\n{lines}").contains(&format!("\n{line}")), "{name}: no {line:?} in\n{lines}");
        assert_eq!(format!("\n{lines}").contains("\nx "), line.starts_with("x "), "{name}: {lines}");
    }
}
