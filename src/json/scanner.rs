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
    let mut scanner = Scanner { bytes: text.as_bytes(), at: 0 };
    // Positions in `needed`.
    let mut seen = 0_u64;
    scanner.skip_space();
    scanner.expect(b'{')?;
    let max_inner = max_depth.min(MAX_DEPTH).checked_sub(1)?;
    scanner.fields(|scanner, name| {
        let Some(at) = needed.iter().position(|needed| needed.as_bytes() == name) else {
            return scanner.value(max_inner).map(drop);
        };
        let bit = 1_u64.checked_shl(u32::try_from(at).ok()?)?;
        if seen & bit != 0 {
            return None;
        }
        seen |= bit;
        scanner.skip_space();
        let start = scanner.at;
        let form = scanner.value(max_inner)?;
        found(at, FieldText::new(form, text.get(start..scanner.at)?)?);
        Some(())
    })?;
    scanner.skip_space();
    matches!(scanner.peek()?, b',' | b']').then_some(scanner.at)
}

impl<'t> FieldText<'t> {
    fn new(form: Form, json: &'t str) -> Option<Self> {
        Some(match form {
            Form::Null => Self::Null,
            Form::Bool => Self::Bool(json == "true"),
            Form::Integer if json.len() <= MAX_DIGITS => Self::Integer(json.parse().ok()?),
            Form::Plain => Self::Plain(json.get(1..json.len() - 1)?),
            Form::Integer | Form::Other => Self::Json(json),
        })
    }
}

/// The form of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Null,
    Bool,
    /// An integer without a sign.
    Integer,
    /// A string without escapes.
    Plain,
    Other,
}

/// A position in a text.
struct Scanner<'t> {
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

    /// Skips the rest of an object. `field` skips a value and gets its name.
    fn fields(&mut self, mut field: impl FnMut(&mut Self, &'t [u8]) -> Option<()>) -> Option<()> {
        self.skip_space();
        if self.expect(b'}').is_some() {
            return Some(());
        }
        loop {
            self.skip_space();
            let start = self.at + 1;
            if self.string()? != Form::Plain {
                return None;
            }
            let name = self.bytes.get(start..self.at - 1)?;
            self.skip_space();
            self.expect(b':')?;
            field(self, name)?;
            self.skip_space();
            if self.expect(b',').is_none() {
                return self.expect(b'}');
            }
        }
    }

    /// Skips the rest of an array.
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

    fn value(&mut self, max_depth: usize) -> Option<Form> {
        self.skip_space();
        match self.peek()? {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal(b"true", Form::Bool),
            b'f' => self.literal(b"false", Form::Bool),
            b'n' => self.literal(b"null", Form::Null),
            b'{' => {
                self.at += 1;
                let max_inner = max_depth.checked_sub(1)?;
                self.fields(|scanner, _| scanner.value(max_inner).map(drop))?;
                Some(Form::Other)
            }
            b'[' => {
                self.at += 1;
                self.elements(max_depth.checked_sub(1)?)?;
                Some(Form::Other)
            }
            _ => None,
        }
    }

    fn literal<const N: usize>(&mut self, literal: &[u8; N], form: Form) -> Option<Form> {
        let is_literal = self.bytes.get(self.at..)?.first_chunk() == Some(literal);
        is_literal.then(|| {
            self.at += N;
            form
        })
    }

    fn string(&mut self) -> Option<Form> {
        self.expect(b'"')?;
        let mut form = Form::Plain;
        loop {
            match self.skip_plain()? {
                b'"' => {
                    self.at += 1;
                    return Some(form);
                }
                b'\\' => self.escape()?,
                _ => return None,
            }
            form = Form::Other;
        }
    }

    /// Skips to the next quote, backslash or control character, and returns it.
    fn skip_plain(&mut self) -> Option<u8> {
        let mut rest = self.bytes.get(self.at..)?;
        while let Some((eight, after)) = rest.split_first_chunk() {
            let ends = ends_in(u64::from_le_bytes(*eight));
            if ends != 0 {
                self.at = self.bytes.len() - rest.len() + ends.trailing_zeros() as usize / 8;
                return self.peek();
            }
            rest = after;
        }
        self.at = self.bytes.len() - rest.len();
        while !matches!(self.peek()?, b'"' | b'\\' | ..b' ') {
            self.at += 1;
        }
        self.peek()
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

    fn number(&mut self) -> Option<Form> {
        let mut form = Form::Integer;
        if self.expect(b'-').is_some() {
            form = Form::Other;
        }
        if self.expect(b'0').is_none() {
            self.digits()?;
        } else if self.peek()?.is_ascii_digit() {
            return None;
        }
        if self.expect(b'.').is_some() {
            form = Form::Other;
            self.digits()?;
        }
        if let b'e' | b'E' = self.peek()? {
            form = Form::Other;
            self.at += 1;
            if let b'+' | b'-' = self.peek()? {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(form)
    }

    /// Skips at least one.
    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek()?.is_ascii_digit() {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

/// Whether there is a quote, a backslash or a control character among eight bytes: if so, the lowest bit that is set is
/// the highest of the first one.
fn ends_in(eight: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const QUOTES: u64 = ONES * b'"' as u64;
    const BACKSLASHES: u64 = ONES * b'\\' as u64;
    // A byte below `limit` borrows. Bytes from 0x80 do not count; bytes after the first may borrow for it.
    let below = |bytes: u64, limit: u64| bytes.wrapping_sub(ONES * limit) & !bytes;
    let ends = below(eight, 0x20) | below(eight ^ QUOTES, 1) | below(eight ^ BACKSLASHES, 1);
    ends & (ONES << 7)
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
