//! The files of a lineage, read: a leaf with its chain, and a private key.
//!
//! Repairs what can be mistaken for nothing else (order, duplicates, blocks that do not belong) and names each repair;
//! what is ambiguous is refused. Whether the result may be deployed is for `check`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use zeroize::Zeroizing;

use crate::cert::{Certificate, NotACertificate};
use crate::file::{self, Unreadable};
use crate::key::{BadKey, PrivateKey};
use crate::pem::{self, Block};
use crate::text;

/// Where a lineage's parts are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    /// The full chain, or the leaf alone where there is nothing else.
    pub(crate) cert: PathBuf,
    /// Issuers that the first file may lack (`ca.cer`, `NAME.issuer.crt`). A missing file is no error.
    pub(crate) issuers: Option<PathBuf>,
    /// `None`: the pairing is not checked, and nothing can be deployed.
    pub(crate) key: Option<PathBuf>,
}

/// What was found in the files. A part that cannot be used is an `Err` with the reasons.
pub(crate) struct Material {
    pub(crate) files: Files,
    pub(crate) chain: Result<Chain, Vec<Problem>>,
    /// `None` where no key was asked for.
    pub(crate) key: Option<Result<PrivateKey, Problem>>,
    /// What in the files was not as it should be and does not matter, in words.
    pub(crate) cleaned: Vec<String>,
}

/// A leaf and the certificates that lead from it towards its root.
pub(crate) struct Chain {
    pub(crate) leaf: Certificate,
    pub(crate) issuers: Vec<Certificate>,
    /// What was mended, in words.
    pub(crate) repairs: Vec<String>,
}

/// Why a file cannot be used: what it holds, as the object of that verb, and what to do.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) found: String,
    pub(crate) hint: &'static str,
    /// Whether it looks like a file that is being written at this moment.
    half_written: bool,
}

impl Problem {
    fn half_written(found: impl Into<String>, hint: &'static str) -> Self {
        Self { found: found.into(), hint, half_written: true }
    }

    fn lasting(found: impl Into<String>, hint: &'static str) -> Self {
        Self { found: found.into(), hint, half_written: false }
    }
}

/// Beyond this a file is no certificate and no key.
pub(crate) const MOST_BYTES: u64 = 1 << 20;

/// A chain has a handful; what is compared with each other must stay few.
const MOST_CERTIFICATES: usize = 64;

/// How long a pair that does not fit is read again, because a client may be switching it at this moment.
const SWITCHING: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);

/// Reads the files; a pair that is incomplete or does not fit is read again for up to two seconds.
pub(crate) fn load(files: &Files) -> Result<Material, Unreadable> {
    let mut waited = Duration::ZERO;
    let mut before: Option<(Contents, Material)> = None;
    loop {
        let read = Contents::read(files).map(|contents| match before.take() {
            Some((same, material)) if same == contents => (same, material),
            _ => {
                let material = contents.understood(files);
                (contents, material)
            }
        });
        let may_be_switching = match &read {
            Ok((_, material)) => !material.fits() && files.can_be_read_again(),
            Err(unreadable) => unreadable.missing && directory_of(&unreadable.path).exists(),
        };
        if !may_be_switching || waited >= SWITCHING {
            return read.map(|(_, material)| material);
        }
        log::debug!("{} and its key do not fit yet; reading them again", text::path(&files.cert));
        before = read.ok();
        std::thread::sleep(PAUSE);
        waited += PAUSE;
    }
}

impl Files {
    /// What came out of a pipe is gone.
    fn can_be_read_again(&self) -> bool {
        let files = [Some(&self.cert), self.issuers.as_ref(), self.key.as_ref()];
        files.into_iter().flatten().all(|path| std::fs::metadata(path).map_or(true, |file| file.is_file()))
    }
}

/// What is in the files.
#[derive(PartialEq)]
struct Contents {
    cert: Zeroizing<Vec<u8>>,
    issuers: Option<Zeroizing<Vec<u8>>>,
    key: Option<Zeroizing<Vec<u8>>>,
}

impl Contents {
    fn read(files: &Files) -> Result<Self, Unreadable> {
        let read = |path: &Path| file::read_secret(path, MOST_BYTES);
        let cert = read(&files.cert)?;
        let issuers = match files.issuers.as_deref().map(read) {
            Some(Err(unreadable)) if !unreadable.missing => return Err(unreadable),
            Some(Ok(issuers)) => Some(issuers),
            Some(Err(_)) | None => None,
        };
        let key = files.key.as_deref().map(read).transpose()?;
        Ok(Self { cert, issuers, key })
    }

    fn understood(&self, files: &Files) -> Material {
        let [issuers, key] =
            [&self.issuers, &self.key].map(|part| part.as_ref().map(|bytes| bytes.as_slice()));
        Material::from_bytes(files, &self.cert, issuers, key)
    }
}

/// The directory that a file would be in; of a bare name the current one.
fn directory_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Material {
    /// Understands what the files hold.
    pub(crate) fn from_bytes(files: &Files, cert: &[u8], issuers: Option<&[u8]>, key: Option<&[u8]>) -> Self {
        let pem::Text { mut blocks, mut cleaned } = pem::read(cert);
        if let Some(issuers) = issuers.map(pem::read) {
            blocks.extend(issuers.blocks);
            cleaned.extend(issuers.cleaned);
        }
        let mut cleaned: Vec<String> = cleaned.into_iter().map(str::to_owned).collect();
        let in_one_file = files.key.as_ref() == Some(&files.cert);
        let is_key = |block: &Block| matches!(block, Block::Key(..) | Block::EncryptedKey);
        let is_certificate = |block: &Block| matches!(block, Block::Certificate(_));
        cleaned.extend(names(&blocks, |block| !(is_certificate(block) || in_one_file && is_key(block))));
        let key = key.map(|file| {
            let text = pem::read(file);
            if !in_one_file {
                let noted = text.cleaned.iter().map(|what| (*what).to_owned());
                let noted = noted.chain(names(&text.blocks, |block| !is_key(block)));
                cleaned.extend(noted.map(|what| format!("{what} in the key file")));
            }
            find_key(text.blocks, file)
        });
        let mut seen = BTreeSet::new();
        cleaned.retain(|what| seen.insert(what.clone()));
        let usable = key.as_ref().and_then(|key| key.as_ref().ok());
        let chain = Chain::assemble(blocks, usable, cert);
        Self { files: files.clone(), chain, key, cleaned }
    }

    /// Whether both parts are there and belong together, as far as was asked.
    fn fits(&self) -> bool {
        match (&self.chain, &self.key) {
            (Ok(chain), Some(Ok(key))) => key.pairs_with(&chain.leaf.public_key),
            (Ok(_), None) => true,
            (Ok(_), Some(Err(problem))) => !problem.half_written,
            (Err(problems), _) => !problems.iter().any(|problem| problem.half_written),
        }
    }
}

impl Chain {
    fn assemble(blocks: Vec<Block>, key: Option<&PrivateKey>, file: &[u8]) -> Result<Self, Vec<Problem>> {
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
    pub(crate) fn pem(&self) -> String {
        std::iter::once(&self.leaf).chain(&self.issuers).map(Certificate::pem).collect()
    }

    /// Number of certificates in the chain, the leaf included.
    pub(crate) fn length(&self) -> usize {
        self.issuers.len() + 1
    }
}

/// The certificates of a file without duplicates, and what was dropped.
fn certificates(blocks: Vec<Block>, file: &[u8]) -> Result<(Vec<Certificate>, Vec<String>), Vec<Problem>> {
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
                Err(NotACertificate::Malformed) => {
                    let found = NotACertificate::Malformed.to_string();
                    problems.push(Problem::half_written(found, DAMAGED_HINT));
                }
                Err(too_large) => problems.push(Problem::lasting(too_large.to_string(), ONE_CHAIN_HINT)),
            },
            Block::Broken(found) => problems.push(Problem::half_written(found, DAMAGED_HINT)),
            Block::More => return Err(vec![too_much()]),
            Block::Key(..) | Block::EncryptedKey | Block::Other(_) => {}
        }
    }
    if found.len() > MOST_CERTIFICATES {
        let found = format!("{} certificates, which is no chain", found.len());
        problems.push(Problem::lasting(found, ONE_CHAIN_HINT));
    }
    if found.is_empty() && problems.is_empty() {
        let found = nothing("certificate", &others, file);
        problems
            .push(Problem::half_written(found, "name the file with the renewed certificate chain in PEM"));
    }
    if problems.is_empty() { Ok((found, repairs)) } else { Err(problems) }
}

/// The certificate that no other one was issued by; the key decides where that leaves several.
fn find_leaf(certificates: &[Certificate], key: Option<&PrivateKey>) -> Result<usize, Vec<Problem>> {
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
            Err(vec![Problem::half_written(found, "keep one leaf and its chain in the file")])
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

const DAMAGED_HINT: &str = "the file is cut off or damaged; let the ACME client write it again";

const ONE_CHAIN_HINT: &str = "hand over the chain of one certificate";

fn too_much() -> Problem {
    let found = format!("more than {} PEM blocks", pem::MOST_BLOCKS);
    Problem::lasting(found, "hand over the chain and the key of one certificate")
}

/// What to call those blocks that are meant, each kind once.
fn names(blocks: &[Block], meant: impl Fn(&Block) -> bool) -> Vec<String> {
    let names: BTreeSet<String> =
        blocks.iter().filter(|block| meant(block)).filter_map(Block::name).collect();
    names.into_iter().collect()
}

/// The only private key of a file.
fn find_key(blocks: Vec<Block>, file: &[u8]) -> Result<PrivateKey, Problem> {
    let mut keys: Vec<(pem::KeyForm, Zeroizing<Vec<u8>>)> = Vec::new();
    let others = names(&blocks, |_| true);
    for block in blocks {
        match block {
            Block::Key(form, der) if keys.contains(&(form, der.clone())) => {}
            Block::Key(form, der) => keys.push((form, der)),
            Block::EncryptedKey => {
                return Err(Problem::lasting(
                    "a private key that is encrypted with a passphrase",
                    "write it without one, for example: openssl pkey -in KEY -out NEWKEY",
                ));
            }
            Block::Broken(found) => return Err(Problem::half_written(found, DAMAGED_HINT)),
            Block::Other(label) if label == "OPENSSH PRIVATE KEY" => {
                return Err(Problem::lasting(
                    "a private key in OpenSSH's own format",
                    "write it in PEM, for example: ssh-keygen -p -m PEM -f KEY",
                ));
            }
            Block::Other(label) if label.ends_with("PRIVATE KEY") => {
                let bad = BadKey::Unsupported(label.trim_end_matches("PRIVATE KEY").trim().to_owned());
                return Err(Problem::lasting(bad.to_string(), hint_for(&bad)));
            }
            Block::More => return Err(too_much()),
            Block::Certificate(_) | Block::Other(_) => {}
        }
    }
    match keys.as_slice() {
        [(form, der)] => {
            PrivateKey::from_der(*form, der).map_err(|bad| Problem::lasting(bad.to_string(), hint_for(&bad)))
        }
        [] => Err(Problem::half_written(
            nothing("private key", &others, file),
            "name the file with the private key of this certificate in PEM",
        )),
        several => {
            let kinds: Vec<String> =
                several.iter().take(MOST_NAMED).map(|(form, der)| kind(*form, der)).collect();
            let more = if several.len() > MOST_NAMED { " and others" } else { "" };
            let found = format!("{} different private keys: {}{more}", several.len(), kinds.join(", "));
            Err(Problem::lasting(found, "keep the key of this certificate only"))
        }
    }
}

/// So many keys are read only to say what they are.
const MOST_NAMED: usize = 4;

fn kind(form: pem::KeyForm, der: &[u8]) -> String {
    PrivateKey::from_der(form, der)
        .map_or_else(|_| "one that cannot be used".into(), |key| key.key_type().to_string())
}

/// What a file without the part that is wanted holds instead.
fn nothing(wanted: &str, others: &[String], file: &[u8]) -> String {
    match others {
        [] => format!("no {wanted}: {}", pem::describe(file)),
        others => format!("no {wanted}, only {}", text::list(others)),
    }
}

fn hint_for(bad: &BadKey) -> &'static str {
    match bad {
        BadKey::Unsupported(_) => "let the ACME client make a key of a supported type",
        BadKey::Malformed(_) => DAMAGED_HINT,
        BadKey::Contradicts(_) => "the key file is spoilt; let the ACME client make a new key",
    }
}
