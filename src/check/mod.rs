//! The local checks of a bundle. Pure: no I/O, no clock.
//!
//! Every check runs and reports all that it finds. Files are read by `bundle`; guards against breaking other sites are in
//! `plan`.

mod chain;
mod context;
mod finding;
mod issuer;
mod key;
mod names;
mod path;
mod pem;
mod purpose;
mod validity;

use crate::bundle::{Bundle, Chain};
use crate::key::PrivateKey;
use crate::text;

pub use self::context::{CheckContext, PathRule};
pub use self::finding::{Check, Finding, Status};
pub use self::path::describe_path_error;

/// A bundle for which no check failed: the only thing that can be uploaded.
pub struct Vetted<'a> {
    chain: &'a Chain,
    key: &'a PrivateKey,
}

/// The error for a bundle with a failed check or without a key.
#[derive(Debug, thiserror::Error)]
#[error("a local check failed; nothing was sent")]
pub struct NotVetted;

impl<'a> Vetted<'a> {
    pub fn chain(&self) -> &'a Chain {
        self.chain
    }

    pub fn key(&self) -> &'a PrivateKey {
        self.key
    }
}

/// Runs every check.
pub fn run(bundle: &Bundle, context: &CheckContext<'_>) -> Vec<Finding> {
    let mut findings = pem::check(bundle);
    let Ok(chain) = &bundle.chain else {
        let checks = [Check::Validity, Check::Names, Check::Key, Check::Purpose, Check::Chain, Check::Issuer];
        let skip = |check| Finding::skipped(check, "there is no certificate to check");
        findings.extend(checks.map(skip));
        return findings;
    };
    let file = text::path(&bundle.files.cert);
    findings.push(validity::check(&file, &chain.leaf, context.at));
    findings.extend(names::check(&file, &chain.leaf, context.domains));
    findings.extend(key::check(&file, chain, bundle));
    findings.extend(purpose::check(&file, chain));
    let issuer = issuer::check(&file, chain, context);
    let is_explained = issuer.status != Status::Ok || has_failed(&findings);
    findings.extend(chain::check(&file, chain, context, is_explained));
    findings.push(issuer);
    findings
}

/// Makes a bundle uploadable if none of its findings is a failure.
pub fn vet<'a>(bundle: &'a Bundle, findings: &[Finding]) -> Result<Vetted<'a>, NotVetted> {
    match (&bundle.chain, &bundle.key) {
        (Ok(chain), Some(Ok(key))) if !has_failed(findings) => Ok(Vetted { chain, key }),
        _ => Err(NotVetted),
    }
}

fn has_failed(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.status == Status::Fail)
}

#[cfg(test)]
mod tests {
    use edgecert_workload::Authority;
    use time::Duration;
    use webpki::{EndEntityCert, Error};

    use super::*;
    use crate::bundle::Files;
    use crate::pem::{self, Block};

    /// An ordinary leaf and its issuer.
    fn issued() -> [Vec<u8>; 2] {
        let issued = Authority::new("Test").unwrap().issue(&["a.example".to_owned()]).unwrap();
        [&issued.cert, &issued.chain].map(|pem| match pem::parse(pem.as_bytes()).blocks.pop() {
            Some(Block::Certificate(der)) => der,
            _ => panic!("no certificate: {pem}"),
        })
    }

    /// The findings for a chain that are no success.
    fn problems(chain: &[&[u8]]) -> Vec<(Check, Status, String)> {
        let files = Files { cert: "chain.pem".into(), issuers: None, key: None };
        let pem: String =
            chain.iter().map(|der| pem::encode("CERTIFICATE", der).expose().to_owned()).collect();
        let bundle = Bundle::from_bytes(&files, pem.as_bytes(), None, None);
        let leaf = bundle.chain.as_ref().map(|chain| chain.leaf.not_before).ok();
        let at = leaf.map_or(time::OffsetDateTime::UNIX_EPOCH, |issued| issued + Duration::days(30));
        let context = CheckContext { domains: &[], at, untrusted: Status::Fail, path: None, directory: None };
        let findings = run(&bundle, &context).into_iter();
        let problems = findings.filter(|finding| matches!(finding.status, Status::Warn | Status::Fail));
        problems.map(|finding| (finding.check, finding.status, finding.detail)).collect()
    }

    /// Gives the identifier of the first extension the tag 0x88.
    fn with_wrong_tag(der: &[u8]) -> Vec<u8> {
        let at = der.windows(4).position(|bytes| bytes == [0x06, 0x03, 0x55, 0x1d]).unwrap();
        let mut changed = der.to_owned();
        changed[at] = 0x88;
        changed
    }

    #[test]
    fn what_webpki_cannot_read_is_reported() {
        let [leaf, issuer] = issued();
        assert_eq!(problems(&[&leaf, &issuer]), []);
        let found = "chain.pem holds a certificate that is malformed; TLS clients reject it";
        let expected = [(Check::Pem, Status::Fail, found.to_owned())];
        assert_eq!(problems(&[&with_wrong_tag(&leaf), &issuer]), expected);
        let found = "chain.pem: the intermediate Test intermediate is malformed; TLS clients reject it";
        let expected = [(Check::Chain, Status::Warn, found.to_owned())];
        assert_eq!(problems(&[&leaf, &with_wrong_tag(&issuer)]), expected);
    }

    #[test]
    fn webpki_accepts_what_passes_with_flipped_bit() {
        let [leaf, issuer] = issued();
        let passes =
            |leaf: &[u8]| problems(&[leaf, &issuer]).iter().all(|(_, status, _)| *status != Status::Fail);
        assert!(passes(&leaf));
        let is_refused = |leaf: &[u8]| {
            let leaf = leaf.into();
            EndEntityCert::try_from(&leaf).is_err_and(|error| error != Error::UnsupportedCriticalExtension)
        };
        let escapes = |bit: &usize| {
            let mut flipped = leaf.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            is_refused(&flipped) && passes(&flipped)
        };
        let bits: Vec<usize> = (0..leaf.len() * 8).filter(escapes).collect();
        assert!(bits.is_empty(), "bits {bits:?} of {leaf:02x?}");
    }
}
