//! The certificates of a file put in order: the leaf, then its issuers.

use super::{Chain, DAMAGED_HINT, Defect, ONE_CHAIN_HINT, names, nothing, too_much};
use crate::cert::{Certificate, CertificateError};
use crate::key::PrivateKey;
use crate::pem::Block;
use crate::text;

/// A chain has a handful; what is compared with each other must stay few.
const MAX_CERTIFICATES: usize = 64;

impl Chain {
    pub(super) fn assemble(
        blocks: Vec<Block>,
        key: Option<&PrivateKey>,
        file: &[u8],
    ) -> Result<Self, Vec<Defect>> {
        let (certificates, mut repairs) = certificates(blocks, file)?;
        let leaf_at = find_leaf(&certificates, key)?;
        let mut pool = certificates;
        let leaf = pool.remove(leaf_at);
        if leaf_at != 0 {
            repairs.push("the leaf was not the first block; moved to the front".into());
        }
        let mut issuers: Vec<Certificate> = Vec::new();
        let mut in_order = true;
        while let Some(next) = next_issuer(issuers.last().unwrap_or(&leaf), &pool) {
            in_order &= next == 0;
            issuers.push(pool.remove(next));
        }
        // Cross-signed CAs: other ways up, for clients with other roots.
        let belongs = |candidate: &Certificate, issuers: &[Certificate]| {
            std::iter::once(&leaf).chain(issuers).any(|certificate| certificate.issuer == candidate.subject)
        };
        while let Some(next) = pool.iter().position(|candidate| belongs(candidate, &issuers)) {
            issuers.push(pool.remove(next));
        }
        if !in_order && leaf_at == 0 {
            repairs.push("the chain was out of order; sorted by issuer".into());
        }
        if !pool.is_empty() {
            let names: Vec<String> = pool.iter().map(Certificate::label).collect();
            let number = text::count(pool.len(), "certificate");
            repairs
                .push(format!("{number} that does not belong to the chain dropped: {}", text::list(&names)));
        }
        Ok(Self { leaf, issuers, repairs })
    }

    /// The whole chain as clean PEM, the leaf first.
    pub fn pem(&self) -> String {
        std::iter::once(&self.leaf).chain(&self.issuers).map(Certificate::pem).collect()
    }

    /// Number of certificates in the chain, the leaf included.
    pub fn length(&self) -> usize {
        self.issuers.len() + 1
    }
}

/// The certificates of a file without duplicates, and what was dropped.
fn certificates(blocks: Vec<Block>, file: &[u8]) -> Result<(Vec<Certificate>, Vec<String>), Vec<Defect>> {
    let mut found: Vec<Certificate> = Vec::new();
    let (mut problems, mut repairs) = (Vec::new(), Vec::new());
    let others = names(&blocks, |_| true);
    for block in blocks {
        match block {
            Block::Certificate(der) => match Certificate::from_der(&der) {
                Ok(certificate) if found.contains(&certificate) => {
                    repairs.push(format!("a second copy of {} dropped", certificate.label()));
                }
                Ok(certificate) => found.push(certificate),
                Err(CertificateError::Malformed) => {
                    let found = CertificateError::Malformed.to_string();
                    problems.push(Defect::half_written(found, DAMAGED_HINT));
                }
                Err(too_large) => problems.push(Defect::lasting(too_large.to_string(), ONE_CHAIN_HINT)),
            },
            Block::Broken(found) => problems.push(Defect::half_written(found, DAMAGED_HINT)),
            Block::TooMany => return Err(vec![too_much()]),
            Block::Key(..) | Block::EncryptedKey | Block::Other(_) => {}
        }
    }
    if found.len() > MAX_CERTIFICATES {
        let found = format!("{} certificates, which is no chain", found.len());
        problems.push(Defect::lasting(found, ONE_CHAIN_HINT));
    }
    if found.is_empty() && problems.is_empty() {
        let found = nothing("certificate", &others, file);
        problems.push(Defect::half_written(found, "name the file with the renewed certificate chain in PEM"));
    }
    if problems.is_empty() { Ok((found, repairs)) } else { Err(problems) }
}

/// The certificate that no other one was issued by; the key decides where that leaves several.
fn find_leaf(certificates: &[Certificate], key: Option<&PrivateKey>) -> Result<usize, Vec<Defect>> {
    let issues_another = |at: usize, one: &Certificate| {
        certificates.iter().enumerate().any(|(other_at, other)| other_at != at && other.may_be_issued_by(one))
    };
    let ends: Vec<(usize, &Certificate)> =
        certificates.iter().enumerate().filter(|(at, one)| !issues_another(*at, one)).collect();
    let leaves: Vec<(usize, &Certificate)> = match ends.iter().filter(|(_, end)| !end.is_ca).count() {
        0 => ends,
        _ => ends.into_iter().filter(|(_, end)| !end.is_ca).collect(),
    };
    let paired: Vec<usize> = leaves
        .iter()
        .filter(|(_, leaf)| key.is_some_and(|key| key.pairs_with(&leaf.public_key)))
        .map(|(at, _)| *at)
        .collect();
    match (leaves.as_slice(), paired.as_slice()) {
        ([(at, _)], _) | (_, [at]) => Ok(*at),
        // Certificates that issue each other in a ring: the first block is as good as any.
        ([], _) => Ok(0),
        (several, _) => {
            let names: Vec<String> = several
                .iter()
                .map(|(_, leaf)| format!("{} until {}", leaf.label(), text::rfc3339(leaf.not_after)))
                .collect();
            let found = format!("{} possible leaf certificates: {}", several.len(), text::list(&names));
            Err(vec![Defect::half_written(found, "keep one leaf and its chain in the file")])
        }
    }
}

/// Position of the certificate that issued `certificate`; of several the one with the matching key identifier.
fn next_issuer(certificate: &Certificate, pool: &[Certificate]) -> Option<usize> {
    if certificate.is_self_issued() {
        return None;
    }
    pool.iter().position(|candidate| certificate.may_be_issued_by(candidate))
}
