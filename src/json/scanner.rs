//! Finds the needed fields of an object in one pass over its text, if it has a usual form.
//!
//! All of the object is checked, so what is accepted here is JSON. What is not is left to a parser: an incomplete
//! object, one with a needed field twice or an escape in a name, and whatever is not JSON.

use crate::MAX_DEPTH;

/// The value of a field, as far as it has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldText<'t> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer without a sign.
    Integer(u64),
    /// A string without escapes.
    Plain(&'t str),
    /// The JSON of any other value.
    Json(&'t str),
}

/// Most digits that any 64-bit integer can have.
const MAX_DIGITS: usize = 19;

/// Calls `found` for each field of the object at the start of a text that is in `needed`, with its position there.
/// Returns where the comma or bracket after the object is. `None` if the object has to be parsed; what has been found
/// is void.
///
/// The object must not contain more than `max_depth` levels, itself included.
pub fn scan_fields<'t>(
    text: &'t str,
    needed: &[&str],
    max_depth: usize,
    found: &mut dyn FnMut(usize, FieldText<'t>),
) -> Option<usize> {
    let mut scanner = Scanner { text, bytes: text.as_bytes(), at: 0 };
    // Positions in `needed`.
    let mut seen = 0_u64;
    scanner.skip_space();
    scanner.expect(b'{')?;
    let max_inner = max_depth.min(MAX_DEPTH).checked_sub(1)?;
    scanner.fields(|scanner, name| {
        let Some(at) = needed.iter().position(|needed| *needed == name) else {
            return scanner.value(max_inner).map(drop);
        };
        let bit = 1_u64.checked_shl(u32::try_from(at).ok()?)?;
        if seen & bit != 0 {
            return None;
        }
        seen |= bit;
        found(at, scanner.value(max_inner)?);
        Some(())
    })?;
    scanner.skip_space();
    matches!(scanner.peek()?, b',' | b']').then_some(scanner.at)
}

/// A position in a text.
struct Scanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
}

impl<'t> Scanner<'t> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn since(&self, start: usize) -> Option<&'t str> {
        self.text.get(start..self.at)
    }

    /// Reads the rest of an object. `field` reads a value and gets its name.
    fn fields(&mut self, mut field: impl FnMut(&mut Self, &'t str) -> Option<()>) -> Option<()> {
        self.skip_space();
        if self.expect(b'}').is_some() {
            return Some(());
        }
        loop {
            self.skip_space();
            let FieldText::Plain(name) = self.string()? else { return None };
            self.skip_space();
            self.expect(b':')?;
            field(self, name)?;
            self.skip_space();
            if self.expect(b',').is_none() {
                return self.expect(b'}');
            }
        }
    }

    /// Reads the rest of an array.
    fn elements(&mut self, max_depth: usize) -> Option<()> {
        self.skip_space();
        if self.expect(b']').is_some() {
            return Some(());
        }
        loop {
            self.value(max_depth)?;
            self.skip_space();
            if self.expect(b',').is_none() {
                return self.expect(b']');
            }
        }
    }

    fn value(&mut self, max_depth: usize) -> Option<FieldText<'t>> {
        self.skip_space();
        let start = self.at;
        match self.peek()? {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal("true", FieldText::Bool(true)),
            b'f' => self.literal("false", FieldText::Bool(false)),
            b'n' => self.literal("null", FieldText::Null),
            open @ (b'{' | b'[') => {
                self.at += 1;
                let max_inner = max_depth.checked_sub(1)?;
                if open == b'{' {
                    self.fields(|scanner, _| scanner.value(max_inner).map(drop))?;
                } else {
                    self.elements(max_inner)?;
                }
                self.since(start).map(FieldText::Json)
            }
            _ => None,
        }
    }

    fn literal(&mut self, literal: &str, value: FieldText<'t>) -> Option<FieldText<'t>> {
        let is_literal = self.bytes.get(self.at..)?.starts_with(literal.as_bytes());
        is_literal.then(|| {
            self.at += literal.len();
            value
        })
    }

    fn string(&mut self) -> Option<FieldText<'t>> {
        let quote = self.at;
        self.expect(b'"')?;
        let mut is_plain = true;
        loop {
            self.skip_plain();
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    let text = self.since(quote)?;
                    return Some(if is_plain {
                        FieldText::Plain(text.get(1..text.len() - 1)?)
                    } else {
                        FieldText::Json(text)
                    });
                }
                b'\\' => self.escape()?,
                _ => return None,
            }
            is_plain = false;
        }
    }

    /// Skips to the next quote, backslash or control character.
    fn skip_plain(&mut self) {
        const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
        const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
        // The lowest high bit that is set in the result belongs to the first byte below `limit`.
        let below = |word: u64, limit: u8| word.wrapping_sub(LOW * u64::from(limit)) & !word;
        while let Some(eight) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
            let word = u64::from_le_bytes(*eight);
            let ends = below(word, b' ')
                | below(word ^ (LOW * u64::from(b'"')), 1)
                | below(word ^ (LOW * u64::from(b'\\')), 1);
            let ends = ends & HIGH;
            if ends != 0 {
                self.at += ends.trailing_zeros() as usize / 8;
                return;
            }
            self.at += 8;
        }
        while self.peek().is_some_and(|byte| !matches!(byte, b'"' | b'\\' | ..b' ')) {
            self.at += 1;
        }
    }

    fn escape(&mut self) -> Option<()> {
        self.at += 1;
        let length = match self.peek()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 1,
            b'u' => {
                let digits = self.bytes.get(self.at + 1..self.at + 5)?;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(5)?
            }
            _ => return None,
        };
        self.at += length;
        Some(())
    }

    fn number(&mut self) -> Option<FieldText<'t>> {
        let start = self.at;
        let _ = self.expect(b'-');
        let digits = self.digits()?;
        let is_padded = digits.len() > 1 && digits.starts_with('0');
        let is_integer = !matches!(self.peek()?, b'.' | b'e' | b'E');
        if self.expect(b'.').is_some() {
            self.digits()?;
        }
        if let b'e' | b'E' = self.peek()? {
            self.at += 1;
            if let b'+' | b'-' = self.peek()? {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = self.since(start)?;
        if is_padded {
            return None;
        }
        let is_short = is_integer && text.len() == digits.len() && digits.len() <= MAX_DIGITS;
        Some(if is_short { FieldText::Integer(text.parse().ok()?) } else { FieldText::Json(text) })
    }

    /// At least one.
    fn digits(&mut self) -> Option<&'t str> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.since(start).filter(|digits| !digits.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of an object and the text after it.
    fn scan(text: &str) -> Option<(Vec<(usize, FieldText<'_>)>, &str)> {
        let mut fields = Vec::new();
        let end = scan_fields(text, &["id", "a"], MAX_DEPTH, &mut |at, value| fields.push((at, value)))?;
        Some((fields, &text[end..]))
    }

    #[test]
    fn needed_fields_are_found() {
        use FieldText::{Bool, Integer, Json, Null, Plain};
        let rows = [
            (r#"{"id":5}]"#, vec![(0, Integer(5))]),
            (r#" { "x" : [ { } , [1,-2.5e+3,0.1E9] ] , "a" : null } , "#, vec![(1, Null)]),
            (r#"{"a":"\u00e9"},"#, vec![(1, Json(r#""\u00e9""#))]),
            (
                "{\"a\":\"an \u{e9} among others\",\"id\":true},",
                vec![(1, Plain("an \u{e9} among others")), (0, Bool(true))],
            ),
            (
                r#"{"id":9999999999999999999,"a":[ ]},"#,
                vec![(0, Integer(9_999_999_999_999_999_999)), (1, Json("[ ]"))],
            ),
            (
                r#"{"id":18446744073709551615,"a":-1},"#,
                vec![(0, Json("18446744073709551615")), (1, Json("-1"))],
            ),
            (r#"{"id":1.0,"b":"\\\"\/\n"},"#, vec![(0, Json("1.0"))]),
            ("{},", vec![]),
        ];
        for (text, expected) in rows {
            let (fields, rest) = scan(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((fields, rest.starts_with([',', ']'])), (expected, true), "{text}");
        }
    }

    #[test]
    fn unusual_objects_are_left_to_the_parser() {
        let nested = |depth: usize| format!(r#"{{"x":{}1{}}},"#, "[".repeat(depth), "]".repeat(depth));
        assert!(scan(&nested(MAX_DEPTH - 1)).is_some() && scan(&nested(MAX_DEPTH)).is_none());
        for text in [
            r#"{"id":1,"id":1},"#,
            r#"{"i\u0064":1},"#,
            r#"{"id":1}"#,
            r#"{"id":1}}"#,
            r#"{"id":01},"#,
            r#"{"id":1.},"#,
            r#"{"id":-},"#,
            r#"{"id":+1},"#,
            r#"{"id":1e},"#,
            r#"{"id":tru},"#,
            r#"{"id":"\x"},"#,
            r#"{"id":"\u00g0"},"#,
            "{\"id\":\"a long text with a \n\"},",
            "{\"id\":\"\u{1}\"},",
            r#"{"id":1,},"#,
            r#"{"id":[1,]},"#,
            r#"{"id":[1}},"#,
            r#"{"id" 1},"#,
            "{id:1},",
            "{,},",
            "1,",
            "",
        ] {
            assert_eq!(scan(text), None, "{text}");
        }
    }
}
