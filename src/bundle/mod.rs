//! Reads the files of a lineage into a leaf with its chain, and a private key.
//!
//! Repairs what is unambiguous (order, duplicates, blocks that do not belong) and reports each repair; what is ambiguous
//! is rejected. Whether the result may be deployed is decided by `check`.

mod chain;
mod key;
mod load;

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use self::chain::Chain;
pub(crate) use self::load::{leaf, load, load_chain, load_settled};
use crate::file::recorded_path;
use crate::key::PrivateKey;
use crate::pem::{self, Block, Document};
use crate::text;

/// Maximum size of a file.
pub const MAX_BYTES: u64 = 1 << 20;

/// The paths of a lineage's files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// The full chain, or only the leaf.
    #[serde(with = "recorded_path")]
    pub cert: PathBuf,
    /// Issuers that are not in `cert` (`ca.cer`, `NAME.issuer.crt`). The file may be missing.
    #[serde(with = "recorded_path")]
    pub issuers: Option<PathBuf>,
    /// `None` means that the key is not read: it is not checked, and nothing can be deployed.
    #[serde(with = "recorded_path")]
    pub key: Option<PathBuf>,
}

/// The parsed files of a lineage.
pub struct Bundle {
    pub files: Files,
    /// The errors say why the chain cannot be used.
    pub chain: Result<Chain, Vec<Defect>>,
    /// `None` if the key was not read.
    pub key: Option<Result<PrivateKey, Defect>>,
    /// Ignored blocks, and repairs made while parsing, as noun phrases for messages.
    pub cleaned: BTreeSet<String>,
}

/// A reason why a file cannot be used.
#[derive(Debug)]
pub struct Defect {
    /// What the file holds; completes a message that ends in "holds".
    pub found: String,
    /// What to do about it, in the imperative.
    pub hint: &'static str,
    /// Whether the file may be in the middle of being written.
    is_transient: bool,
}

const DAMAGED_HINT: &str =
    "let the ACME client write the file again, or pass the chain and the key of a single certificate";

impl Bundle {
    /// Parses the contents of `files`.
    pub fn from_bytes(files: &Files, cert: &[u8], issuers: Option<&[u8]>, key: Option<&[u8]>) -> Self {
        let Document { mut blocks, mut cleaned } = pem::parse(cert);
        if let Some(issuers) = issuers.map(pem::parse) {
            blocks.extend(issuers.blocks);
            cleaned.extend(issuers.cleaned);
        }
        let is_one_file = files.key.as_ref() == Some(&files.cert);
        let is_key = |block: &Block| matches!(block, Block::Key(..) | Block::EncryptedKey);
        let is_expected =
            |block: &Block| matches!(block, Block::Certificate(_)) || is_one_file && is_key(block);
        cleaned.extend(kinds(&blocks, |block| !is_expected(block)));
        let key = key.map(|file| {
            let document = pem::parse(file);
            if !is_one_file {
                let noted = kinds(&document.blocks, |block| !is_key(block)).into_iter();
                let noted = noted.chain(document.cleaned);
                cleaned.extend(noted.map(|what| format!("{what} in the key file")));
            }
            key::find(&document.blocks, file)
        });
        let usable_key = key.as_ref().and_then(|key| key.as_ref().ok());
        let chain = Chain::assemble(&blocks, usable_key, cert);
        Self { files: files.clone(), chain, key, cleaned }
    }

    /// Whether the files may be in the middle of being replaced: a part is incomplete, or key and leaf do not match.
    fn may_be_changing(&self) -> bool {
        match (&self.chain, &self.key) {
            (Ok(chain), Some(Ok(key))) => key.public_key != chain.leaf.public_key,
            (Ok(_), None) => false,
            (Ok(_), Some(Err(defect))) => defect.is_transient,
            (Err(defects), _) => defects.iter().any(|defect| defect.is_transient),
        }
    }
}

impl Defect {
    fn transient(found: impl Into<String>, hint: &'static str) -> Self {
        Self { found: found.into(), hint, is_transient: true }
    }

    fn permanent(found: impl Into<String>, hint: &'static str) -> Self {
        Self { found: found.into(), hint, is_transient: false }
    }

    /// The file, which consists of these blocks, does not hold a part.
    fn missing(part: &str, blocks: &[Block], file: &[u8], hint: &'static str) -> Self {
        let others = kinds(blocks, |_| true);
        let instead = match file {
            _ if !others.is_empty() => format!(", only {}", text::list(others)),
            [] => ": it is empty".into(),
            _ if file.contains(&0) => ": it is binary, not PEM; it may be DER or PKCS#12".into(),
            _ => ": it contains no PEM block".into(),
        };
        Self::transient(format!("no {part}{instead}"), hint)
    }
}

/// The kinds of the blocks for which `is_meant` holds, for messages.
fn kinds(blocks: &[Block], is_meant: impl Fn(&Block) -> bool) -> BTreeSet<String> {
    blocks.iter().filter(|block| is_meant(block)).filter_map(Block::name).collect()
}
