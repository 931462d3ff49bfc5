//! Withholds texts from outside that repeat a secret of the run.
//!
//! A text is withheld whole as soon as it holds any 12 characters in a row of a secret, in any encoding of it. So
//! nothing has to be cut out of a text, and where in the text the secret was does not matter.

use std::mem;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde_json::Value;
use zeroize::Zeroizing;

use super::decode::{decoded, folded, is_plain};

/// Takes the place of a text.
pub const WITHHELD: &str = "[withheld: it repeats a secret]";

/// Takes the place of a private key, known or not.
const SOME_KEY: &str = "[private key]";

/// Characters in a row that give a secret away; fewer occur by chance.
pub(super) const WINDOW: usize = 12;

/// A shorter secret would match inside ordinary words.
const MIN_SECRET: usize = 6;

/// What a PEM private key contains.
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// Fields of JSON objects that hold a private key.
const PRIVATE_KEY_FIELDS: [&str; 3] = ["key_pem", "private_key", "privkey"];

/// The secrets of a run.
#[derive(Default)]
pub struct Redactor {
    /// Hashes of all windows of all forms of the secrets. An open hash table, at most half full; 0 is a free entry.
    pub(super) table: Zeroizing<Vec<u64>>,
    used: usize,
    /// A bit for the last characters of each window. Nearly all other texts need no hash.
    ends: Zeroizing<Vec<u64>>,
    /// The lengths of these windows. A form shorter than `WINDOW` is one window.
    lengths: Vec<usize>,
}

impl Redactor {
    /// Hides a text, such as an API key.
    pub fn hide(&mut self, secret: &str) {
        // What looks like an escape is decoded in every text.
        self.add(&decoded(secret));
        self.hide_bytes(secret.as_bytes());
    }

    /// Hides bytes, such as a number that a private key consists of, in base64 and in hexadecimal, alone and between
    /// others.
    pub fn hide_bytes(&mut self, secret: &[u8]) {
        let zeros = secret.iter().take_while(|byte| **byte == 0).count();
        let secret = secret.get(zeros..).unwrap_or_default();
        if secret.len() < MIN_SECRET {
            return;
        }
        // Base64 differs after 0, 1 and 2 other bytes. The characters that depend on other bytes are left out.
        for skipped in 0..3 {
            let shifted = Zeroizing::new([[0; 2].get(..skipped).unwrap_or_default(), secret].concat());
            let text = Zeroizing::new(STANDARD_NO_PAD.encode(&*shifted));
            let end = text.len() - usize::from(!shifted.len().is_multiple_of(3));
            self.add(text.as_bytes().get((8 * skipped).div_ceil(6)..end).unwrap_or_default());
        }
        self.add(Zeroizing::new(crate::text::hex(secret)).as_bytes());
    }

    /// Adds a form of a secret.
    fn add(&mut self, form: &[u8]) {
        let length = folded(form).count().min(WINDOW);
        if length < MIN_SECRET {
            return;
        }
        if !self.lengths.contains(&length) {
            self.lengths.push(length);
        }
        self.ends.resize(ENDS / 64, 0);
        let mut window = Window::default();
        for byte in folded(form) {
            window.push(byte);
            let Some(hash) = window.hash(length) else { continue };
            let (word, bit) = window.end();
            if let Some(word) = self.ends.get_mut(word) {
                *word |= bit;
            }
            self.insert(hash);
        }
    }

    fn insert(&mut self, hash: u64) {
        if 2 * self.used >= self.table.len() {
            let larger = Zeroizing::new(vec![0; (2 * self.table.len()).max(1024)]);
            self.used = 0;
            for hash in mem::replace(&mut self.table, larger).iter().filter(|hash| **hash != 0) {
                self.insert(*hash);
            }
        }
        let slot = self.slot(hash);
        if let Some(free @ 0) = self.table.get_mut(slot) {
            *free = hash;
            self.used += 1;
        }
    }

    /// The entry with this hash, or the free one where it belongs.
    fn slot(&self, hash: u64) -> usize {
        let last = self.table.len() - 1;
        let mut slot = usize::try_from(hash >> 33).unwrap_or_default() & last;
        while self.table.get(slot).is_some_and(|entry| *entry != 0 && *entry != hash) {
            slot = (slot + 1) & last;
        }
        slot
    }

    /// Whether a text repeats a secret.
    pub fn is_secret(&self, text: &str) -> bool {
        if text.len() < MIN_SECRET || self.lengths.is_empty() {
            return false;
        }
        // Nearly every text is plain, and need not be copied.
        if is_plain(text) { self.holds(text.as_bytes()) } else { self.holds(&decoded(text)) }
    }

    fn holds(&self, text: &[u8]) -> bool {
        let mut window = Window::default();
        folded(text).any(|byte| {
            window.push(byte);
            let (word, bit) = window.end();
            let may_end = self.ends.get(word).is_some_and(|word| word & bit != 0);
            let mut hashes = self.lengths.iter().filter_map(|length| window.hash(*length));
            may_end && hashes.any(|hash| self.table.get(self.slot(hash)) == Some(&hash))
        })
    }

    /// The text, unless it repeats a secret or holds any private key.
    pub fn clean(&self, text: &str) -> String {
        match text {
            _ if self.is_secret(text) => WITHHELD.into(),
            _ if text.contains("PRIVATE KEY-----") => SOME_KEY.into(),
            _ => text.into(),
        }
    }

    /// Cleans every string in a JSON value, and removes fields whose names repeat a secret and every private key, known
    /// or not.
    pub fn clean_json(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.contains(PRIVATE_KEY) => *text = SOME_KEY.into(),
            Value::String(text) if self.is_secret(text) => *text = WITHHELD.into(),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_json(item)),
            Value::Object(map) => {
                map.retain(|name, _| !PRIVATE_KEY_FIELDS.contains(&name.as_str()) && !self.is_secret(name));
                map.values_mut().for_each(|item| self.clean_json(item));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Number of bits for the ends of windows.
const ENDS: usize = 1 << 14;

/// The last characters of a text, while it is read from start to end.
#[derive(Default)]
struct Window {
    last: u128,
    length: usize,
}

impl Window {
    fn push(&mut self, byte: u8) {
        self.last = self.last << 8 | u128::from(byte);
        self.length += 1;
    }

    /// The bit that stands for the last four characters: the index of its word, and its mask.
    #[expect(clippy::cast_possible_truncation, reason = "the last four characters are meant")]
    fn end(&self) -> (usize, u64) {
        let bit = (self.last as u32).wrapping_mul(0x9e37_79b1) as usize >> (32 - ENDS.ilog2());
        (bit / 64, 1 << (bit % 64))
    }

    /// A hash of this many characters at the end, if there are as many. It is never 0.
    fn hash(&self, length: usize) -> Option<u64> {
        /// The odd number next to 2^128 divided by the golden ratio, which spreads the bits upwards.
        const FIBONACCI: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
        if self.length < length {
            return None;
        }
        let window = self.last & ((1 << (8 * length)) - 1);
        u64::try_from(window.wrapping_mul(FIBONACCI) >> 64).ok().map(|hash| hash.max(1))
    }
}
