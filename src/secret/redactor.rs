//! Removes the secrets of a run from text that comes from outside.

use std::ops::Range;
use std::sync::OnceLock;

use serde_json::Value;
use zeroize::Zeroizing;

use super::Secret;
use super::decoded::{Decoded, folded, may_begin_escape};
use super::index::{Hidden, Index, MIN_SECRET_BYTES, Window};

/// Replaces the secrets of a run, and fragments of them, in untrusted text: as they are, in base64, base64url and
/// hexadecimal, and in any of these with escapes or in other letter case.
#[derive(Default)]
pub struct Redactor {
    hidden: Vec<Hidden>,
    /// Built for the first text.
    index: OnceLock<Index>,
}

pub(super) const REDACTED: &str = "[redacted]";

/// What a PEM private key contains.
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// Fields of JSON objects that hold a private key.
const PRIVATE_KEY_FIELDS: [&str; 3] = ["key_pem", "private_key", "privkey"];

/// A text is searched in parts of this length, each with the beginning of the next one.
const PART_BYTES: usize = 64 << 10;
const OVERLAP_BYTES: usize = 4 << 10;

/// Longer than any key. A service may return anything as a key; only this much of a longer one is searched for.
const MAX_SECRET_BYTES: usize = 32 << 10;

impl Redactor {
    /// Adds a secret. For PEM, the base64 body counts and the boundary lines do not.
    pub fn hide(&mut self, secret: &Secret) {
        let text = secret.expose();
        // Allocated once at full size: growing would leave copies behind that are not zeroized.
        let mut body = Zeroizing::new(String::with_capacity(text.len()));
        body.extend(text.lines().filter(|line| !line.starts_with("-----")).map(str::trim));
        self.add(body, text.as_bytes(), text.starts_with("-----"));
    }

    /// Adds the number that a private key consists of, whatever structure contains it.
    pub fn hide_number(&mut self, number: &[u8]) {
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        self.add(Zeroizing::default(), number.get(zeros..).unwrap_or_default(), false);
    }

    fn add(&mut self, text: Zeroizing<String>, bytes: &[u8], is_file: bool) {
        let bytes = bytes.get(..MAX_SECRET_BYTES).unwrap_or(bytes);
        if bytes.len() >= MIN_SECRET_BYTES {
            let text = if text.len() > MAX_SECRET_BYTES { Zeroizing::default() } else { text };
            self.hidden.push(Hidden { text, bytes: Zeroizing::new(bytes.to_vec()), is_file });
            self.index = OnceLock::new();
        }
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(&self.hidden))
    }

    /// Returns `text` with every secret replaced.
    pub fn clean(&self, text: &str) -> String {
        if !self.may_change(text) {
            return text.to_owned();
        }
        let mut cleaned = String::with_capacity(text.len());
        let mut end = 0;
        for (start, part) in parts(text) {
            let decoded = Decoded::new(part);
            for found in self.index().find(&decoded.bytes) {
                let source = decoded.source(found.bytes);
                let mut source = start + source.start..start + source.end;
                if source.end <= end {
                    continue;
                }
                source.start = source.start.max(end);
                if !found.is_plain {
                    source = whole_word(text, end, source);
                }
                cleaned.push_str(text.get(end..source.start).unwrap_or_default());
                if source.start > end || cleaned.is_empty() {
                    cleaned.push_str(REDACTED);
                }
                end = source.end;
            }
        }
        cleaned.push_str(text.get(end..).unwrap_or_default());
        cleaned
    }

    /// Cleans every string and object key in a JSON value, and removes every private key, known or not.
    pub fn clean_json(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.len() >= PRIVATE_KEY.len() && text.contains(PRIVATE_KEY) => {
                *text = "[private key]".into();
            }
            Value::String(text) if self.may_change(text) => *text = self.clean(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_json(item)),
            Value::Object(map) => {
                map.retain(|name, _| !PRIVATE_KEY_FIELDS.contains(&name.as_str()));
                map.values_mut().for_each(|item| self.clean_json(item));
                if map.keys().any(|name| self.may_change(name)) {
                    let fields = std::mem::take(map).into_iter();
                    map.extend(fields.map(|(name, item)| (self.clean(&name), item)));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Whether `clean_json` may change the value of this JSON text. Searching the text is much cheaper than walking
    /// the value, and hardly any response holds a secret.
    pub(crate) fn may_change_json(&self, json: &str) -> bool {
        let mut private_key = PRIVATE_KEY_FIELDS.iter().chain([&PRIVATE_KEY]);
        private_key.any(|text| json.contains(text)) || self.may_hold_secret(json, Some(b'"'))
    }

    /// Whether `clean` may change a text.
    fn may_change(&self, text: &str) -> bool {
        text.len() >= MIN_SECRET_BYTES && self.may_hold_secret(text, None)
    }

    /// Whether a text holds a secret, or characters that may hide one from this search. No secret spans a `boundary`.
    fn may_hold_secret(&self, text: &str, boundary: Option<u8>) -> bool {
        let index = self.index();
        let mut window = Window::default();
        for byte in text.bytes() {
            if Some(byte) == boundary {
                window.clear();
                continue;
            }
            if may_hide(byte) {
                return true;
            }
            let byte = folded(byte);
            if byte == 0 {
                continue;
            }
            window.push(byte);
            if index.may_end(&window) {
                return true;
            }
        }
        false
    }
}

/// Whether a byte begins an escape, or a character that may be invisible.
fn may_hide(byte: u8) -> bool {
    may_begin_escape(byte) || !matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t')
}

/// Splits a text into parts, with their positions, because a decoded text takes much more memory. They overlap, so that
/// every fragment of a secret is whole in one of them.
fn parts(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let boundary = |at: usize| (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    (0..text.len()).step_by(PART_BYTES).map(move |start| {
        let start = boundary(start);
        (start, text.get(start..boundary(start + PART_BYTES + OVERLAP_BYTES)).unwrap_or_default())
    })
}

/// Extends a part of a text to the characters around it that may belong to the same secret, but not to those before
/// `from`.
fn whole_word(text: &str, from: usize, part: Range<usize>) -> Range<usize> {
    let before = text.get(from..part.start).unwrap_or_default();
    let after = text.get(part.end..).unwrap_or_default();
    let start = from + before.trim_end_matches(is_secret_char).len();
    let end = text.len() - after.trim_start_matches(is_secret_char).len();
    start..end
}

/// Whether a character occurs in base64, base64url or a typical API key.
fn is_secret_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_' | '.' | '~')
}
