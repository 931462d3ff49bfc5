//! Brings a text into the form in which secrets are searched for: without escapes, white space and invisible characters,
//! in one letter case and one alphabet of base64.

use zeroize::Zeroizing;

use crate::text::is_invisible;

/// Rounds of decoding: a text may be escaped more than once.
const MAX_ROUNDS: usize = 4;

/// Stands for a character that occurs in no form of a secret.
const OTHER: u8 = 0xff;

/// The characters that HTML libraries escape by name.
const NAMED: [(&[u8], u8); 5] =
    [(b"amp", b'&'), (b"lt", b'<'), (b"gt", b'>'), (b"quot", b'"'), (b"apos", b'\'')];

/// Whether decoding would leave a text as it is.
pub(super) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii() && !may_begin_escape(byte))
}

/// Decodes the escapes of URLs, JSON and HTML until none is left.
pub(super) fn decoded(text: &str) -> Zeroizing<Vec<u8>> {
    // Allocated once at full size: growing would leave copies behind that are not zeroized.
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    bytes.extend(text.chars().filter_map(as_byte));
    for _ in 0..MAX_ROUNDS {
        if !bytes.iter().copied().any(may_begin_escape) {
            break;
        }
        bytes = unescaped(&bytes);
    }
    bytes
}

/// Maps bytes that mean the same in some encoding to one byte: letters of either case, the two alphabets of base64. White
/// space, control characters, and the colons between the bytes of a hexadecimal number are left out.
pub(super) fn folded(text: &[u8]) -> impl Iterator<Item = u8> {
    text.iter().filter_map(|byte| match byte {
        ..=b' ' | b':' | 0x7f => None,
        b'-' => Some(b'+'),
        b'_' => Some(b'/'),
        _ => Some(byte.to_ascii_lowercase()),
    })
}

fn may_begin_escape(byte: u8) -> bool {
    matches!(byte, b'%' | b'&' | b'\\')
}

/// `None` for a character that is ignored.
fn as_byte(c: char) -> Option<u8> {
    match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() => Some(byte),
        _ if c.is_whitespace() || c.is_control() || is_invisible(c) => None,
        _ => Some(OTHER),
    }
}

/// Decodes all escapes once.
fn unescaped(mut rest: &[u8]) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(rest.len()));
    while let Some((first, after)) = rest.split_first() {
        let escape = if may_begin_escape(*first) { escape(rest) } else { None };
        if let Some((code, length)) = escape {
            bytes.extend(char::from_u32(code).map_or(Some(OTHER), as_byte));
            rest = rest.get(length..).unwrap_or_default();
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    bytes
}

/// The code point that a text begins to escape, and the length of the escape.
fn escape(text: &[u8]) -> Option<(u32, usize)> {
    let number = |digits: Option<&[u8]>, radix| {
        let digits = digits?.iter().map(|digit| char::from(*digit).to_digit(radix));
        digits.reduce(|number, digit| number?.checked_mul(radix)?.checked_add(digit?)).flatten()
    };
    match text {
        [b'%', ..] => Some((number(text.get(1..3), 16)?, 3)),
        [b'\\', b'u' | b'U', ..] => Some((number(text.get(2..6), 16)?, 6)),
        [b'\\', b'x' | b'X', ..] => Some((number(text.get(2..4), 16)?, 4)),
        // White space and control characters, which are ignored.
        [b'\\', letter, ..] if b"nrtbf".contains(&letter.to_ascii_lowercase()) => Some((b' '.into(), 2)),
        [b'\\', other, ..] => Some(((*other).into(), 2)),
        [b'&', rest @ ..] => {
            let (name, _) = rest.split_at(rest.iter().take(12).position(|byte| *byte == b';')?);
            let code = match name {
                [b'#', b'x' | b'X', digits @ ..] => number(Some(digits), 16),
                [b'#', digits @ ..] => number(Some(digits), 10),
                _ => {
                    let named = NAMED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
                    named.map(|(_, byte)| (*byte).into())
                }
            };
            Some((code?, name.len() + 2))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded() {
        let rows = [
            ("Plain-text_1", "Plain-text_1"),
            ("%61%2B%2fb%zz%+1", "a+/b%zz%+1"),
            ("%2561", "a"),
            ("&#97;&#x62;&#X63;&amp;#100;&none;&#;&#x;", "abcd&none;&#;&#x;"),
            (r"\u0061\/\x62\\u0063\u200bd\u00", "a/bcd\\u00"),
            ("a\u{200b}\u{ad}b\u{a0}c", "abc"),
            ("&amp;lt; 5% & \\", "< 5% & \\"),
            ("&#x0010FFFE;&#1114112;&#99999999999999;", "\u{7f}\u{7f}&#99999999999999;"),
        ];
        for (text, wanted) in rows {
            let shown = String::from_utf8_lossy(&decoded(text)).replace('\u{fffd}', "\u{7f}");
            assert_eq!(shown, wanted, "{text}");
        }
    }
}
