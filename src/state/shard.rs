//! A part of the lineages of a host or of several, for `sync --shard`.

use std::str::FromStr;

use super::stable_hash;

/// One of `of` shards of about equal size; `index` counts from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    pub(crate) index: u64,
    pub(crate) of: u64,
}

impl FromStr for Shard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (index, of) = text.split_once('/').unwrap_or_default();
        let shard = index.parse().ok().zip(of.parse().ok()).map(|(index, of)| Self { index, of });
        shard.filter(|shard| shard.index < shard.of).ok_or("expected I/N, with I from 0 to N-1")
    }
}

impl Shard {
    /// Whether a lineage belongs to the shard. Its name decides, so it stays where it is when other lineages come and go.
    pub(crate) fn contains(self, name: &str) -> bool {
        self.index == index_of(stable_hash(name), self.of)
    }
}

/// The shard of a hash, by jump consistent hashing (Lamping and Veach, arXiv:1406.2294): if a shard is added, a hash
/// stays in its shard or moves to the new one.
fn index_of(hash: u64, of: u64) -> u64 {
    const SCALE: u32 = 31;
    let (mut seed, mut index, mut next) = (hash, 0, 0);
    while next < u128::from(of) {
        index = next;
        seed = seed.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        next = ((index + 1) << SCALE) / (u128::from(seed >> (u64::BITS - SCALE)) + 1);
    }
    u64::try_from(index).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINEAGES: u64 = 10_000;

    fn shards(of: u64) -> Vec<u64> {
        let hashes = (0..LINEAGES).map(|number| stable_hash(&format!("s{number}.example")));
        hashes.map(|hash| index_of(hash, of)).collect()
    }

    #[test]
    fn added_shard_is_the_only_destination() {
        for of in 1..40 {
            let (before, after) = (shards(of), shards(of + 1));
            let moved: Vec<u64> =
                before.iter().zip(&after).filter(|(old, new)| old != new).map(|(_, new)| *new).collect();
            assert!(moved.iter().all(|new| *new == of), "{of}");
            let expected = LINEAGES / (of + 1);
            assert!(
                (expected * 3 / 4..expected * 5 / 4).contains(&(moved.len() as u64)),
                "{of}: {}",
                moved.len()
            );
        }
    }

    #[test]
    fn shards_are_about_equal() {
        let shards = shards(8);
        let sizes =
            [0, 1, 2, 3, 4, 5, 6, 7].map(|index| shards.iter().filter(|shard| **shard == index).count());
        assert!(sizes.iter().all(|size| (1_150..1_350).contains(size)), "{sizes:?}");
    }

    #[test]
    fn index_is_below_the_number() {
        assert_eq!("2/3".parse(), Ok(Shard { index: 2, of: 3 }));
        for wrong in ["3/3", "1", "0/0", "-1/2", "1/", "/2", "1/2/3", ""] {
            assert_eq!(wrong.parse::<Shard>(), Err("expected I/N, with I from 0 to N-1"), "{wrong}");
        }
    }

    #[test]
    fn every_lineage_is_in_one_shard() {
        let count = |name: &str| (0..7).filter(|index| Shard { index: *index, of: 7 }.contains(name)).count();
        assert!((0..100).all(|number| count(&format!("s{number}.example")) == 1));
        assert_eq!(index_of(u64::MAX, u64::MAX), index_of(u64::MAX, u64::MAX), "it ends");
    }
}
