//! The lookup tables of the index: where the entries of a site or of a record are. Sorted, so that a lookup reads only
//! a few rows.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use super::lineage::IndexedLineage;

/// The contents of an index.
#[derive(Debug)]
pub(super) enum Contents {
    Memory(Arc<Vec<u8>>),
    File(File),
}

/// A table in the contents of an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    /// Where it begins.
    pub(super) start: u64,
    pub(super) rows: u64,
}

/// The place of an entry, from the first one on, and its length.
pub(super) type Place = (u64, u64);

/// A key and a place, as numbers of 8 bytes.
const ROW: usize = 24;

/// The rows of both tables.
#[derive(Default)]
pub(super) struct TableBuilder {
    sites: Vec<(u64, Place)>,
    records: Vec<(u64, Place)>,
}

impl Contents {
    /// Reads as many bytes as the buffer has.
    fn read_at(&self, buffer: &mut [u8], start: u64) -> io::Result<()> {
        match self {
            Self::File(file) => file.read_exact_at(buffer, start),
            Self::Memory(bytes) => {
                let start = usize::try_from(start).unwrap_or(usize::MAX);
                let found = bytes.get(start..start.saturating_add(buffer.len()));
                buffer.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }

    /// Reads a part.
    pub(super) fn read(&self, start: u64, length: u64, limit: u64) -> io::Result<Vec<u8>> {
        if length > limit {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        self.read_at(&mut bytes, start)?;
        Ok(bytes)
    }
}

impl Table {
    /// The places of the entries with a key, and maybe of others.
    pub(super) fn find(&self, contents: &Contents, key: u64) -> io::Result<Vec<Place>> {
        let (mut low, mut high) = (0, self.rows);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.row(contents, middle)?.0 < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let mut places = Vec::new();
        for at in low..self.rows {
            let (found, place) = self.row(contents, at)?;
            if found != key {
                break;
            }
            places.push(place);
        }
        Ok(places)
    }

    fn row(&self, contents: &Contents, at: u64) -> io::Result<(u64, Place)> {
        let mut row = [0; ROW];
        contents.read_at(&mut row, self.start.saturating_add(at.saturating_mul(ROW as u64)))?;
        let number = |at: usize| row.iter().skip(8 * at).take(8).rev().fold(0, |n, b| n << 8 | u64::from(*b));
        Ok((number(0), (number(1), number(2))))
    }
}

impl TableBuilder {
    /// Adds the entry of a lineage that was deployed to a service.
    pub(super) fn add(&mut self, service: &str, lineage: &IndexedLineage<'_>, place: Place) {
        self.sites.extend(lineage.sites.iter().map(|site| (site_key(service, site.host), place)));
        self.records.extend(lineage.record_ids().map(|record| (record_key(service, record), place)));
    }

    /// The tables of the sites and of the records, each as rows in the order of their keys.
    pub(super) fn finish(self) -> [Vec<u8>; 2] {
        [self.sites, self.records].map(|mut rows| {
            rows.sort_unstable();
            rows.dedup();
            let rows = rows.iter().flat_map(|(key, (start, length))| [key, start, length]);
            rows.flat_map(|number| number.to_le_bytes()).collect()
        })
    }
}

impl Table {
    /// The number of rows in this many bytes.
    pub(super) fn rows_in(bytes: &[u8]) -> u64 {
        (bytes.len() / ROW) as u64
    }

    /// Where the table ends.
    pub(super) fn end(&self) -> u64 {
        self.start.saturating_add(self.rows.saturating_mul(ROW as u64))
    }
}

/// The key of a site. The entry tells sites with the same key apart.
pub(super) fn site_key(service: &str, host: &str) -> u64 {
    hash(service.bytes().chain([0]).chain(host.bytes()))
}

/// The key of a record. The entry tells records with the same key apart.
pub(super) fn record_key(service: &str, record: u64) -> u64 {
    hash(service.bytes().chain([0]).chain(record.to_le_bytes()))
}

/// FNV-1a, with 64 bits.
fn hash(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_key() {
        let keys = [7, 1, 7, 3, 9, 7, 3, u64::MAX];
        let rows = (0..).zip(keys).map(|(at, key)| (key, (at, 1))).collect();
        let [sites, _] = TableBuilder { sites: rows, records: Vec::new() }.finish();
        let table = Table { start: 5, rows: Table::rows_in(&sites) };
        let bytes = [b"other".as_slice(), &sites].concat();
        assert_eq!(table.end(), bytes.len() as u64);
        let contents = Contents::Memory(Arc::new(bytes));
        for key in [0, 1, 2, 3, 7, 8, 9, 10, u64::MAX] {
            let found: Vec<u64> = table.find(&contents, key).unwrap().iter().map(|place| place.0).collect();
            let expected: Vec<u64> = (0..).zip(keys).filter(|(_, k)| *k == key).map(|(at, _)| at).collect();
            assert_eq!(found, expected, "{key}");
        }
        let longer = Table { rows: table.rows + 1, ..table };
        longer.find(&contents, u64::MAX).unwrap_err();
        assert_eq!(hash(b"foobar".iter().copied()), 0x8594_4171_f739_67e8, "as published");
    }
}
