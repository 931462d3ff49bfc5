//! The chain of a file, in order: the leaf, then its issuers.

use super::{DAMAGED_HINT, Defect};
use crate::cert::{Certificate, CertificateError};
use crate::key::PrivateKey;
use crate::pem::Block;
use crate::text;

/// A leaf and the certificates that lead from it towards a root.
pub struct Chain {
    pub leaf: Certificate,
    pub issuers: Vec<Certificate>,
    /// What was repaired, for messages.
    pub repairs: Vec<String>,
}

impl Chain {
    pub(super) fn assemble(
        blocks: &[Block],
        key: Option<&PrivateKey>,
        file: &[u8],
    ) -> Result<Self, Vec<Defect>> {
        let (mut pool, mut repairs) = certificates(blocks, file)?;
        let leaf_at = find_leaf(&pool, key)?;
        let (mut chain, mut in_order) = (vec![pool.remove(leaf_at)], true);
        while let Some(next) = chain.last().and_then(|last| find_issuer(last, &pool)) {
            in_order &= next == 0;
            chain.push(pool.remove(next));
        }
        // Cross-signed CAs are alternative paths, for clients with other roots.
        while let Some(next) = pool.iter().position(|ca| chain.iter().any(|one| one.issuer == ca.subject)) {
            chain.push(pool.remove(next));
        }
        if leaf_at != 0 {
            repairs.push("moved the leaf to the front".into());
        } else if !in_order {
            repairs.push("sorted the chain by issuer".into());
        }
        if !pool.is_empty() {
            let names = text::list(pool.iter().map(Certificate::label));
            repairs.push(format!("dropped certificates that are not part of the chain: {names}"));
        }
        Ok(Self { leaf: chain.remove(0), issuers: chain, repairs })
    }

    /// The whole chain as clean PEM, the leaf first.
    pub fn pem(&self) -> String {
        std::iter::once(&self.leaf).chain(&self.issuers).map(Certificate::pem).collect()
    }

    /// The number of certificates, with the leaf.
    pub fn length(&self) -> usize {
        self.issuers.len() + 1
    }
}

/// The certificates of a file without duplicates, and the repairs made.
fn certificates(blocks: &[Block], file: &[u8]) -> Result<(Vec<Certificate>, Vec<String>), Vec<Defect>> {
    let (mut certificates, mut repairs, mut defects) = (Vec::<Certificate>::new(), Vec::new(), Vec::new());
    for block in blocks {
        match block {
            Block::Certificate(der) => match Certificate::from_der_strict(der) {
                Ok(certificate) if certificates.iter().any(|known| known.der == certificate.der) => {
                    repairs.push(format!("dropped a duplicate of {}", certificate.label()));
                }
                Ok(certificate) => certificates.push(certificate),
                Err(error @ CertificateError::Malformed) => {
                    defects.push(Defect::transient(error.to_string(), DAMAGED_HINT));
                }
                Err(error @ CertificateError::Forbidden(_)) => {
                    let hint = "have the CA issue it again; TLS clients reject it";
                    defects.push(Defect::permanent(error.to_string(), hint));
                }
            },
            Block::Broken(found) => defects.push(Defect::transient(found, DAMAGED_HINT)),
            Block::Key(..) | Block::EncryptedKey | Block::Other(_) => {}
        }
    }
    if certificates.is_empty() && defects.is_empty() {
        let hint = "pass the file with the renewed certificate chain, in PEM";
        defects.push(Defect::missing("certificate", blocks, file, hint));
    }
    if defects.is_empty() { Ok((certificates, repairs)) } else { Err(defects) }
}

/// Finds the certificate that issued no other one. If there are several, the key decides.
fn find_leaf(certificates: &[Certificate], key: Option<&PrivateKey>) -> Result<usize, Vec<Defect>> {
    let is_issuer = |at: usize, one: &Certificate| {
        certificates.iter().enumerate().any(|(other_at, other)| other_at != at && other.may_be_issued_by(one))
    };
    let mut leaves: Vec<(usize, &Certificate)> =
        certificates.iter().enumerate().filter(|(at, one)| !is_issuer(*at, one)).collect();
    if leaves.iter().any(|(_, leaf)| !leaf.is_ca) {
        leaves.retain(|(_, leaf)| !leaf.is_ca);
    }
    let is_paired = |leaf: &Certificate| key.is_some_and(|key| key.public_key == leaf.public_key);
    let paired: Vec<usize> = leaves.iter().filter(|(_, leaf)| is_paired(leaf)).map(|(at, _)| *at).collect();
    match (leaves.as_slice(), paired.as_slice()) {
        ([(at, _)], _) | (_, [at]) => Ok(*at),
        // Certificates that issue each other in a cycle.
        ([], _) => Ok(0),
        (several, _) => {
            let name =
                |leaf: &Certificate| format!("{} until {}", leaf.label(), text::rfc3339(leaf.not_after));
            let names = text::list(several.iter().map(|(_, leaf)| name(leaf)));
            let found = format!("{} possible leaf certificates: {names}", several.len());
            Err(vec![Defect::transient(found, "keep only one leaf and its chain in the file")])
        }
    }
}

/// The index of the issuer of a certificate in `pool`; a root has none.
fn find_issuer(certificate: &Certificate, pool: &[Certificate]) -> Option<usize> {
    let is_root = certificate.is_self_issued();
    pool.iter().position(|candidate| !is_root && certificate.may_be_issued_by(candidate))
}
