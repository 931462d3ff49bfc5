//! A share of the lineages of a host or of several, for `sync --shard`.

use std::str::FromStr;

use crate::state;

/// One of `of` equal shares of the lineages; `index` counts from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) index: u64,
    pub(crate) of: u64,
}

impl FromStr for Shard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected I/N, with I from 0 to N-1";
        let (index, of) = text.split_once('/').ok_or(EXPECTED)?;
        let shard =
            Self { index: index.parse().map_err(|_| EXPECTED)?, of: of.parse().map_err(|_| EXPECTED)? };
        if shard.index < shard.of { Ok(shard) } else { Err(EXPECTED) }
    }
}

impl Shard {
    /// Whether a lineage belongs to the share. The name decides, so a lineage stays in its share when others are added.
    pub(crate) fn contains(self, name: &str) -> bool {
        state::stable_hash(name) % self.of == self.index
    }
}
