//! Why a file cannot be used.

use std::collections::BTreeSet;

use crate::pem::{self, Block};
use crate::text;

/// A reason why a file cannot be used.
#[derive(Debug)]
pub struct Defect {
    /// What the file holds; completes a message that ends in "holds".
    pub found: String,
    /// What to do about it, in the imperative.
    pub hint: &'static str,
    /// Whether the file may be in the middle of being written.
    pub(super) is_transient: bool,
}

pub(super) const DAMAGED_HINT: &str =
    "let the ACME client write the file again, or pass the chain and the key of a single certificate";

impl Defect {
    pub(super) fn transient(found: impl Into<String>, hint: &'static str) -> Self {
        Self { found: found.into(), hint, is_transient: true }
    }

    pub(super) fn permanent(found: impl Into<String>, hint: &'static str) -> Self {
        Self { found: found.into(), hint, is_transient: false }
    }

    /// The file does not hold a part, but `others`.
    pub(super) fn missing(part: &str, others: &[String], file: &[u8], hint: &'static str) -> Self {
        let found = match others {
            [] => format!("no {part}: {}", pem::describe(file)),
            others => format!("no {part}, only {}", text::list(others)),
        };
        Self::transient(found, hint)
    }
}

/// The kinds of the blocks for which `is_meant` holds, for messages.
pub(super) fn kinds(blocks: &[Block], is_meant: impl Fn(&Block) -> bool) -> Vec<String> {
    let kinds: BTreeSet<String> =
        blocks.iter().filter(|block| is_meant(block)).filter_map(Block::name).collect();
    kinds.into_iter().collect()
}
