//! Finds secrets in folded text, in all their encodings, in one pass.
//!
//! Every `STRIDE`-th piece of `PIECE_BYTES` bytes of every form of a secret is in a hash table. So each fragment of
//! `FRAGMENT_BYTES` contains a piece that is in the table, and around a piece that is found the text is compared with
//! the form.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use zeroize::Zeroizing;

use super::decoded::{Decoded, folded, may_begin_escape};

/// Length of the shortest fragment that is always recognized; shorter ones occur by chance.
pub(super) const FRAGMENT_BYTES: usize = 12;

/// Length of the shortest secret that is recognized; a shorter one would match inside ordinary words.
pub(super) const MIN_SECRET_BYTES: usize = 6;

const PIECE_BYTES: usize = 8;
const STRIDE: usize = FRAGMENT_BYTES - PIECE_BYTES + 1;

/// Entries of the table with the same piece; a secret that repeats itself needs no more.
const MAX_EQUAL_PIECES: usize = 8;

/// The multiplier of Fibonacci hashing, which spreads the bits upwards.
const FIBONACCI: u64 = 0x9e37_79b9_7f4a_7c15;

/// Before, between and after the forms; it never occurs in folded text.
const SEPARATOR: u8 = 0;

/// A secret to be found.
pub(super) struct Hidden {
    /// The secret as text; empty if it is not text.
    pub(super) text: Zeroizing<String>,
    /// What may be encoded.
    pub(super) bytes: Zeroizing<Vec<u8>>,
    /// Whether `bytes` is a whole file, which is encoded from its start and in base64 only.
    pub(super) is_file: bool,
}

/// The forms of all secrets.
#[derive(Default)]
pub(super) struct Index {
    pub(super) forms: Zeroizing<Vec<u8>>,
    /// Where the encoded forms begin, after the secrets themselves.
    encoded_from: usize,
    /// Positions of pieces in `forms`, each at the hash of the piece or soon after; 0 is an empty entry.
    table: Vec<u32>,
    /// Forms shorter than a piece, as masks and values.
    short: Zeroizing<Vec<(u64, u64)>>,
    ends: Ends,
}

/// The last four bytes of all pieces and short forms, as bits at their hashes. Most text is ruled out by them.
#[derive(Default)]
struct Ends(Zeroizing<Vec<u64>>);

/// A part of a text that is a secret or a fragment of one.
pub(super) struct Match {
    pub(super) bytes: Range<usize>,
    /// Whether it is a whole secret as it is, without any encoding.
    pub(super) is_plain: bool,
}

/// The last bytes of a text, while it is read from start to end.
#[derive(Default)]
pub(super) struct Window {
    last: u64,
    length: usize,
}

impl Window {
    pub(super) fn push(&mut self, byte: u8) {
        self.last = self.last << 8 | u64::from(byte);
        self.length += 1;
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Ends {
    /// Binary logarithm of the number of bits; an RSA key has about 4,000 pieces.
    const BITS: u32 = 16;

    fn add(&mut self, bytes: u64) {
        let (word, bit) = Self::place(bytes);
        if self.0.is_empty() {
            self.0.resize(1 << (Self::BITS - 6), 0);
        }
        if let Some(word) = self.0.get_mut(word) {
            *word |= bit;
        }
    }

    fn may_have(&self, bytes: u64) -> bool {
        let (word, bit) = Self::place(bytes);
        self.0.get(word).is_some_and(|word| word & bit != 0)
    }

    /// The word of a bit, and its value there.
    fn place(bytes: u64) -> (usize, u64) {
        let hash = ((bytes << 32).wrapping_mul(FIBONACCI)) >> (64 - Self::BITS);
        (usize::try_from(hash >> 6).unwrap_or_default(), 1 << (hash & 63))
    }
}

impl Index {
    pub(super) fn new(secrets: &[Hidden]) -> Self {
        // Allocated once at full size: growing would leave copies behind that are not zeroized.
        let size = secrets.iter().map(|hidden| hidden.text.len() + 7 * hidden.bytes.len() + 8).sum();
        let mut index = Self { forms: Zeroizing::new(Vec::with_capacity(size)), ..Self::default() };
        index.forms.push(SEPARATOR);
        for Hidden { text, .. } in secrets {
            if text.bytes().all(is_plain) {
                index.add(text.as_bytes());
            } else {
                index.add(&Zeroizing::new(Decoded::new(text).bytes));
            }
        }
        index.encoded_from = index.forms.len();
        let longest = secrets.iter().map(|hidden| hidden.bytes.len()).max().unwrap_or_default();
        let mut encoder = Encoder::for_up_to(longest);
        for Hidden { bytes, is_file, .. } in secrets {
            index.add(encoder.base64_after(0, bytes));
            if !is_file {
                index.add(encoder.base64_after(1, bytes));
                index.add(encoder.base64_after(2, bytes));
                index.add(encoder.hex(bytes));
            }
        }
        index.fill_table();
        index
    }

    /// Adds a form unless it is too short.
    fn add(&mut self, form: &[u8]) {
        if form.len() >= PIECE_BYTES {
            self.forms.extend(form.iter().map(|byte| folded(*byte)));
            self.forms.push(SEPARATOR);
        } else if form.len() >= MIN_SECRET_BYTES {
            let value = form.iter().fold(0, |value, byte| value << 8 | u64::from(folded(*byte)));
            self.short.push(((1 << (8 * form.len())) - 1, value));
            self.ends.add(value);
        }
    }

    fn fill_table(&mut self) {
        // At least twice as many entries as there are pieces.
        self.table = vec![0; (self.forms.len() / 2).next_power_of_two()];
        let forms = std::mem::take(&mut self.forms);
        let mut start = 0;
        for form in forms.split(|byte| *byte == SEPARATOR) {
            let mut position = start;
            let mut rest = form;
            while let Some(piece) = rest.first_chunk() {
                self.insert(packed(*piece), position, &forms);
                self.ends.add(packed(*piece));
                rest = rest.get(STRIDE..).unwrap_or_default();
                position += STRIDE;
            }
            start += form.len() + 1;
        }
        self.forms = forms;
    }

    fn insert(&mut self, piece: u64, position: usize, forms: &[u8]) {
        let Ok(position) = u32::try_from(position) else { return };
        let mut equal = 0;
        let mut slot = self.slot(piece);
        while let Some(entry) = self.table.get_mut(slot) {
            if *entry == 0 {
                *entry = position;
                return;
            }
            equal += usize::from(piece_at(forms, *entry) == Some(piece));
            if equal >= MAX_EQUAL_PIECES {
                return;
            }
            slot = (slot + 1) & (self.table.len() - 1);
        }
    }

    /// Where the search for a piece begins.
    fn slot(&self, piece: u64) -> usize {
        let hash = piece.wrapping_mul(FIBONACCI) >> 32;
        usize::try_from(hash).unwrap_or_default() & (self.table.len() - 1)
    }

    /// Positions of the piece in `forms`.
    fn positions(&self, piece: u64) -> impl Iterator<Item = usize> {
        let first = self.slot(piece);
        let (wrapped, entries) = self.table.split_at_checked(first).unwrap_or_default();
        let used = entries.iter().chain(wrapped).take_while(|entry| **entry != 0);
        let equal = used.filter(move |entry| piece_at(&self.forms, **entry) == Some(piece));
        equal.filter_map(|entry| usize::try_from(*entry).ok())
    }

    /// Whether a secret may end where the window ends.
    pub(super) fn may_end(&self, window: &Window) -> bool {
        self.ends.may_have(window.last)
            && (window.length >= PIECE_BYTES && self.positions(window.last).next().is_some()
                || self.short_length(window).is_some())
    }

    /// The length of the form shorter than a piece that ends where the window ends.
    fn short_length(&self, window: &Window) -> Option<usize> {
        let mut short = self.short.iter().filter(|(mask, value)| window.last & mask == *value);
        short.find_map(|(mask, _)| {
            usize::try_from(mask.count_ones() / 8).ok().filter(|length| window.length >= *length)
        })
    }

    /// Finds all secrets and their fragments in a folded text.
    pub(super) fn find(&self, text: &[u8]) -> Vec<Match> {
        let mut matches: Vec<Match> = Vec::new();
        let mut window = Window::default();
        for (at, byte) in text.iter().enumerate() {
            window.push(*byte);
            let end = at + 1;
            if matches.last().is_some_and(|last| end <= last.bytes.end) {
                continue;
            }
            if let Some(length) = self.short_length(&window) {
                matches.push(Match { bytes: end - length..end, is_plain: true });
            } else if window.length >= PIECE_BYTES {
                let start = end - PIECE_BYTES;
                let around = self.positions(window.last).filter_map(|form| self.around(text, start, form));
                matches.extend(around.max_by_key(|found| found.bytes.len()));
            }
        }
        matches
    }

    /// Compares the text around a piece with the form around it.
    fn around(&self, text: &[u8], start: usize, form_start: usize) -> Option<Match> {
        let (before, after) = text.split_at_checked(start)?;
        let (form_before, form_after) = self.forms.split_at_checked(form_start)?;
        let is_equal = |(left, right): &(&u8, &u8)| left == right && **right != SEPARATOR;
        let left = before.iter().rev().zip(form_before.iter().rev()).take_while(is_equal).count();
        let right = after.iter().zip(form_after).take_while(is_equal).count();
        let form = form_start - left..form_start + right;
        let is_whole = self.forms.get(form.start.checked_sub(1)?) == Some(&SEPARATOR)
            && self.forms.get(form.end) == Some(&SEPARATOR);
        let is_plain = is_whole && form.start < self.encoded_from;
        (is_whole || form.len() >= FRAGMENT_BYTES)
            .then_some(Match { bytes: start - left..start + right, is_plain })
    }
}

/// Encodes secrets, one after another, in buffers that never grow and are zeroized at the end.
struct Encoder {
    bytes: Zeroizing<Vec<u8>>,
    encoded: Zeroizing<Vec<u8>>,
}

impl Encoder {
    fn for_up_to(bytes: usize) -> Self {
        let [bytes, encoded] = [bytes + 2, 2 * bytes + 8].map(Vec::with_capacity).map(Zeroizing::new);
        Self { bytes, encoded }
    }

    /// Encodes bytes in base64 as they appear after `skipped` other bytes, without the characters that depend on these
    /// or on bytes that follow.
    fn base64_after(&mut self, skipped: usize, bytes: &[u8]) -> &[u8] {
        self.bytes.clear();
        self.bytes.resize(skipped, 0);
        self.bytes.extend_from_slice(bytes);
        self.encoded.resize(2 * bytes.len() + 8, 0);
        let length = STANDARD_NO_PAD.encode_slice(&*self.bytes, &mut self.encoded).unwrap_or_default();
        let end = length.saturating_sub(usize::from(!self.bytes.len().is_multiple_of(3)));
        self.encoded.get((8 * skipped).div_ceil(6)..end).unwrap_or_default()
    }

    fn hex(&mut self, bytes: &[u8]) -> &[u8] {
        let digit = |value: u8| if value < 10 { b'0' + value } else { b'a' + value - 10 };
        self.encoded.clear();
        for byte in bytes {
            self.encoded.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        &self.encoded
    }
}

/// Whether decoding leaves a byte as it is, apart from folding.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii() && folded(byte) != 0 && !may_begin_escape(byte)
}

fn piece_at(forms: &[u8], position: u32) -> Option<u64> {
    let start = usize::try_from(position).ok()?;
    forms.get(start..)?.first_chunk().map(|piece| packed(*piece))
}

/// Packs a piece as `Window` does.
fn packed(piece: [u8; PIECE_BYTES]) -> u64 {
    u64::from_be_bytes(piece)
}
