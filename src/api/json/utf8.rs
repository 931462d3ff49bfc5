//! Decodes UTF-8 that arrives in chunks.

/// Replaces what is not UTF-8 exactly as `String::from_utf8_lossy` would in the whole text.
#[derive(Default)]
pub(crate) struct Utf8Decoder {
    /// The end of the last chunk, which may be the beginning of a character.
    pending: Vec<u8>,
}

/// Length of the longest incomplete character.
const MAX_PENDING: usize = 3;

impl Utf8Decoder {
    /// Calls `visit` with the text of another chunk.
    pub(crate) fn decode<T>(&mut self, chunk: &[u8], visit: impl FnOnce(&str) -> T) -> T {
        if self.pending.is_empty() {
            let (complete, pending) = chunk.split_at_checked(last_character(chunk)).unwrap_or((chunk, &[]));
            self.pending.extend_from_slice(pending);
            return visit_lossy(complete, visit);
        }
        let mut bytes = std::mem::take(&mut self.pending);
        bytes.extend_from_slice(chunk);
        self.pending = bytes.split_off(last_character(&bytes));
        visit_lossy(&bytes, visit)
    }

    /// Calls `visit` with the text that is left at the end.
    pub(crate) fn end<T>(&mut self, visit: impl FnOnce(&str) -> T) -> T {
        visit_lossy(&std::mem::take(&mut self.pending), visit)
    }
}

/// Calls `visit` with the text of these bytes. The check whether all of them are UTF-8 is faster than the search for
/// those that are not.
fn visit_lossy<T>(bytes: &[u8], visit: impl FnOnce(&str) -> T) -> T {
    match str::from_utf8(bytes) {
        Ok(text) => visit(text),
        Err(_) => visit(&String::from_utf8_lossy(bytes)),
    }
}

/// Where a character begins that may continue after these bytes, or their length. No replacement spans the first byte
/// of a character.
fn last_character(bytes: &[u8]) -> usize {
    let start = bytes.len().saturating_sub(MAX_PENDING);
    let last = bytes.iter().skip(start).rposition(|byte| *byte >= 0xc0);
    last.map_or(bytes.len(), |last| start + last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_chunks_are_decoded_alike() {
        let pieces: [&[u8]; 12] = [
            b"a",
            b"{",
            "\u{e9}".as_bytes(),
            "\u{20ac}".as_bytes(),
            "\u{1f600}".as_bytes(),
            b"\x80",
            b"\xff",
            b"\xc3",
            b"\xe2\x82",
            b"\xf0\x9f",
            b"\xed\xa0\x80",
            b"\xc0\xaf",
        ];
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..rng.usize(..8)).flat_map(|_| pieces[rng.usize(..12)].to_vec()).collect();
            let (mut decoder, mut text, mut rest) = (Utf8Decoder::default(), String::new(), bytes.as_slice());
            while !rest.is_empty() {
                let (chunk, after) = rest.split_at(rng.usize(..=rest.len()));
                decoder.decode(chunk, |part| text.push_str(part));
                rest = after;
            }
            decoder.end(|part| text.push_str(part));
            assert_eq!(text, String::from_utf8_lossy(&bytes), "{bytes:x?}");
        }
    }
}
