//! A text as its reader would decode it, and where each of its bytes comes from.
//!
//! Secrets are searched for in this form, so that neither escapes nor white space, letter case, invisible characters or
//! the alphabet of base64 hide them.

use std::ops::Range;

use crate::text::is_invisible;

/// Rounds of decoding; a text may be escaped more than once.
const MAX_ROUNDS: usize = 4;

/// Longest escape: `&#x0010ffff;`.
const MAX_ESCAPE_BYTES: usize = 12;

/// Stands for any character that is not ASCII. It does not occur in UTF-8.
const OTHER: u8 = 0xff;

/// The named characters of HTML that occur in base64 or in API keys, in lower case.
const NAMED: [(&str, u8); 22] = [
    ("amp", b'&'),
    ("lt", b'<'),
    ("gt", b'>'),
    ("quot", b'"'),
    ("apos", b'\''),
    ("plus", b'+'),
    ("sol", b'/'),
    ("equals", b'='),
    ("lowbar", b'_'),
    ("period", b'.'),
    ("colon", b':'),
    ("semi", b';'),
    ("comma", b','),
    ("excl", b'!'),
    ("num", b'#'),
    ("dollar", b'$'),
    ("percnt", b'%'),
    ("commat", b'@'),
    ("bsol", b'\\'),
    ("tab", b'\t'),
    ("newline", b'\n'),
    ("nbsp", b' '),
];

/// A decoded text, folded.
pub(super) struct Decoded {
    pub(super) bytes: Vec<u8>,
    /// Where each byte comes from.
    sources: Vec<Range<usize>>,
}

/// One byte, and where it comes from.
#[derive(Clone)]
struct Element {
    byte: u8,
    source: Range<usize>,
}

impl Decoded {
    pub(super) fn new(text: &str) -> Self {
        let visible =
            text.char_indices().filter(|(_, c)| c.is_whitespace() || !(c.is_control() || is_invisible(*c)));
        let element =
            |(start, c): (usize, char)| Element { byte: as_byte(c), source: start..start + c.len_utf8() };
        let mut elements: Vec<Element> = visible.map(element).collect();
        for _ in 0..MAX_ROUNDS {
            if !elements.iter().any(|element| may_begin_escape(element.byte)) {
                break;
            }
            elements = unescape(&elements);
        }
        elements.retain_mut(|element| {
            element.byte = folded(element.byte);
            element.byte != 0
        });
        let bytes = elements.iter().map(|element| element.byte).collect();
        Self { bytes, sources: elements.into_iter().map(|element| element.source).collect() }
    }

    /// Where these bytes come from.
    pub(super) fn source(&self, bytes: Range<usize>) -> Range<usize> {
        let sources = self.sources.get(bytes).unwrap_or_default();
        match (sources.first(), sources.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        }
    }
}

/// Whether a byte begins an escape of JSON, HTML or a URL.
pub(super) fn may_begin_escape(byte: u8) -> bool {
    matches!(byte, b'%' | b'&' | b'\\')
}

/// Maps bytes that mean the same in some encoding to one byte: letters of either case, the two alphabets of base64. 0
/// marks a byte that is ignored: white space, control characters, and the colons between the bytes of a hexadecimal
/// number.
pub(super) fn folded(byte: u8) -> u8 {
    #[expect(clippy::indexing_slicing, reason = "computed by the compiler")]
    const FOLDED: [u8; 256] = {
        let mut folded = [0; 256];
        let mut byte = b'!';
        loop {
            folded[byte as usize] = match byte {
                b'A'..=b'Z' => byte | 0x20,
                b'-' => b'+',
                b'_' => b'/',
                b':' | 0x7f => 0,
                other => other,
            };
            if byte == u8::MAX {
                break folded;
            }
            byte += 1;
        }
    };
    FOLDED.get(usize::from(byte)).copied().unwrap_or_default()
}

fn as_byte(c: char) -> u8 {
    match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() => byte,
        _ if c.is_whitespace() || c.is_control() || is_invisible(c) => b' ',
        _ => OTHER,
    }
}

/// Decodes all escapes once.
fn unescape(elements: &[Element]) -> Vec<Element> {
    let mut decoded = Vec::with_capacity(elements.len());
    let mut rest = elements;
    while let Some((first, after)) = rest.split_first() {
        let escape = if may_begin_escape(first.byte) { escape(rest) } else { None };
        let Some((byte, length)) = escape else {
            decoded.push(first.clone());
            rest = after;
            continue;
        };
        let (used, unused) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        let end = used.last().map_or(first.source.end, |last| last.source.end);
        decoded.push(Element { byte, source: first.source.start..end });
        rest = unused;
    }
    decoded
}

/// The character that these elements begin to escape, and the number of elements that it takes.
fn escape(elements: &[Element]) -> Option<(u8, usize)> {
    let bytes: Vec<u8> = elements.iter().take(MAX_ESCAPE_BYTES).map(|element| element.byte).collect();
    let text = std::str::from_utf8(&bytes).unwrap_or_else(|error| {
        std::str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default()
    });
    if let Some(digits) = text.strip_prefix('%') {
        return Some((hex(digits, 2)?, 3));
    }
    if let Some(rest) = text.strip_prefix('\\') {
        return match rest.as_bytes().first()? {
            b'u' => Some((hex(rest.get(1..)?, 4)?, 6)),
            b'x' => Some((hex(rest.get(1..)?, 2)?, 4)),
            b'n' | b'r' | b't' | b'b' | b'f' => Some((b' ', 2)),
            other => Some((*other, 2)),
        };
    }
    let (name, _) = text.strip_prefix('&')?.split_once(';')?;
    let length = name.len() + 2;
    match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            Some((code_point(code.ok()?), length))
        }
        None => {
            NAMED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, byte)| (*byte, length))
        }
    }
}

/// The character that this many hexadecimal digits encode.
fn hex(text: &str, digits: usize) -> Option<u8> {
    let digits = text.get(..digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok().map(code_point)
}

fn code_point(code: u32) -> u8 {
    char::from_u32(code).map_or(OTHER, as_byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_and_folded() {
        let rows = [
            ("Plain-text_1", "plain+text/1"),
            ("a b\tc\nd:e", "abcde"),
            ("%61%2B%2fb%zz", "a+/b%zz"),
            ("%2561", "a"),
            ("&#97;&#x62;&#X63;&plus;&amp;#100;&none;", "abc+d&none;"),
            (r"\u0061\/\x62\n\\u0063\u200bd", "a/bcd"),
            ("a\u{200b}\u{ad}b\u{7f}c", "abc"),
            ("&amp;lt; 5% & \\", "<5%&\\"),
        ];
        for (text, wanted) in rows {
            assert_eq!(String::from_utf8(Decoded::new(text).bytes).unwrap(), wanted, "{text}");
        }
        assert_eq!(Decoded::new("\u{fc}&#252;\\u00fc").bytes, [OTHER; 3]);
    }

    #[test]
    fn bytes_know_their_sources() {
        let text = "x%2541 &amp;b\u{fc}";
        let decoded = Decoded::new(text);
        let sources: Vec<&str> =
            (0..decoded.bytes.len()).map(|at| &text[decoded.source(at..at + 1)]).collect();
        assert_eq!(sources, ["x", "%2541", "&amp;", "b", "\u{fc}"]);
        assert_eq!(&text[decoded.source(1..4)], "%2541 &amp;b");
    }
}
