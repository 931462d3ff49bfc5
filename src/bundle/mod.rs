//! The files of a lineage, read: a leaf with its chain, and a private key.
//!
//! Repairs what can be mistaken for nothing else (order, duplicates, blocks that do not belong) and names each repair;
//! what is ambiguous is refused. Whether the result may be deployed is for `check`.

mod chain;
mod load;

pub(crate) use self::load::{LeafPeek, load, look, peek_leaf};

use std::collections::BTreeSet;
use std::path::PathBuf;

use zeroize::Zeroizing;

use crate::cert::Certificate;
use crate::key::{KeyError, PrivateKey};
use crate::pem::{self, Block};
use crate::text;

/// Where a lineage's parts are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The full chain, or the leaf alone where there is nothing else.
    pub cert: PathBuf,
    /// Issuers that the first file may lack (`ca.cer`, `NAME.issuer.crt`). A missing file is no error.
    pub issuers: Option<PathBuf>,
    /// `None`: the pairing is not checked, and nothing can be deployed.
    pub key: Option<PathBuf>,
}

/// What was found in the files. A part that cannot be used is an `Err` with the reasons.
pub struct Bundle {
    pub files: Files,
    pub chain: Result<Chain, Vec<Defect>>,
    /// `None` where no key was asked for.
    pub key: Option<Result<PrivateKey, Defect>>,
    /// What in the files was not as it should be and does not matter, in words.
    pub cleaned: Vec<String>,
}

/// A leaf and the certificates that lead from it towards its root.
pub struct Chain {
    pub leaf: Certificate,
    pub issuers: Vec<Certificate>,
    /// What was mended, in words.
    pub repairs: Vec<String>,
}

/// Why a file cannot be used: what it holds, as the object of that verb, and what to do.
#[derive(Debug)]
pub struct Defect {
    pub found: String,
    pub hint: &'static str,
    /// Whether it looks like a file that is being written at this moment.
    half_written: bool,
}

impl Defect {
    fn half_written(found: impl Into<String>, hint: &'static str) -> Self {
        Self { found: found.into(), hint, half_written: true }
    }

    fn lasting(found: impl Into<String>, hint: &'static str) -> Self {
        Self { found: found.into(), hint, half_written: false }
    }
}

/// Beyond this a file is no certificate and no key.
pub const MAX_BYTES: u64 = 1 << 20;

impl Bundle {
    /// Understands what the files hold.
    pub fn from_bytes(files: &Files, cert: &[u8], issuers: Option<&[u8]>, key: Option<&[u8]>) -> Self {
        let pem::Document { mut blocks, mut cleaned } = pem::parse(cert);
        if let Some(issuers) = issuers.map(pem::parse) {
            blocks.extend(issuers.blocks);
            cleaned.extend(issuers.cleaned);
        }
        let mut cleaned: Vec<String> = cleaned.into_iter().map(str::to_owned).collect();
        let in_one_file = files.key.as_ref() == Some(&files.cert);
        let is_key = |block: &Block| matches!(block, Block::Key(..) | Block::EncryptedKey);
        let is_certificate = |block: &Block| matches!(block, Block::Certificate(_));
        cleaned.extend(names(&blocks, |block| !(is_certificate(block) || in_one_file && is_key(block))));
        let key = key.map(|file| {
            let text = pem::parse(file);
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

const DAMAGED_HINT: &str = "the file is cut off or damaged; let the ACME client write it again";

const ONE_CHAIN_HINT: &str = "hand over the chain of one certificate";

fn too_much() -> Defect {
    let found = format!("more than {} PEM blocks", pem::MAX_BLOCKS);
    Defect::lasting(found, "hand over the chain and the key of one certificate")
}

/// What to call those blocks that are meant, each kind once.
fn names(blocks: &[Block], meant: impl Fn(&Block) -> bool) -> Vec<String> {
    let names: BTreeSet<String> =
        blocks.iter().filter(|block| meant(block)).filter_map(Block::name).collect();
    names.into_iter().collect()
}

/// The only private key of a file.
fn find_key(blocks: Vec<Block>, file: &[u8]) -> Result<PrivateKey, Defect> {
    let mut keys: Vec<(pem::KeyFormat, Zeroizing<Vec<u8>>)> = Vec::new();
    let others = names(&blocks, |_| true);
    for block in blocks {
        match block {
            Block::Key(format, der) if keys.contains(&(format, der.clone())) => {}
            Block::Key(format, der) => keys.push((format, der)),
            Block::EncryptedKey => {
                return Err(Defect::lasting(
                    "a private key that is encrypted with a passphrase",
                    "write it without one, for example: openssl pkey -in KEY -out NEWKEY",
                ));
            }
            Block::Broken(found) => return Err(Defect::half_written(found, DAMAGED_HINT)),
            Block::Other(label) if label == "OPENSSH PRIVATE KEY" => {
                return Err(Defect::lasting(
                    "a private key in OpenSSH's own format",
                    "write it in PEM, for example: ssh-keygen -p -m PEM -f KEY",
                ));
            }
            Block::Other(label) if label.ends_with("PRIVATE KEY") => {
                let bad = KeyError::Unsupported(label.trim_end_matches("PRIVATE KEY").trim().to_owned());
                return Err(Defect::lasting(bad.to_string(), hint_for(&bad)));
            }
            Block::TooMany => return Err(too_much()),
            Block::Certificate(_) | Block::Other(_) => {}
        }
    }
    match keys.as_slice() {
        [(format, der)] => {
            PrivateKey::from_der(*format, der).map_err(|bad| Defect::lasting(bad.to_string(), hint_for(&bad)))
        }
        [] => Err(Defect::half_written(
            nothing("private key", &others, file),
            "name the file with the private key of this certificate in PEM",
        )),
        several => {
            let kinds: Vec<String> =
                several.iter().take(MAX_NAMED).map(|(format, der)| kind(*format, der)).collect();
            let more = if several.len() > MAX_NAMED { " and others" } else { "" };
            let found = format!("{} different private keys: {}{more}", several.len(), kinds.join(", "));
            Err(Defect::lasting(found, "keep the key of this certificate only"))
        }
    }
}

/// So many keys are read only to say what they are.
const MAX_NAMED: usize = 4;

fn kind(format: pem::KeyFormat, der: &[u8]) -> String {
    PrivateKey::from_der(format, der)
        .map_or_else(|_| "one that cannot be used".into(), |key| key.key_type().to_string())
}

/// What a file without the part that is wanted holds instead.
fn nothing(wanted: &str, others: &[String], file: &[u8]) -> String {
    match others {
        [] => format!("no {wanted}: {}", pem::describe(file)),
        others => format!("no {wanted}, only {}", text::list(others)),
    }
}

fn hint_for(bad: &KeyError) -> &'static str {
    match bad {
        KeyError::Unsupported(_) => "let the ACME client make a key of a supported type",
        KeyError::Malformed(_) => DAMAGED_HINT,
        KeyError::InconsistentRsa | KeyError::PublicKeyMismatch | KeyError::CurveMismatch => {
            "the key file is spoilt; let the ACME client make a new key"
        }
    }
}
