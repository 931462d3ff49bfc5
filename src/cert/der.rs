//! Reads DER where x509-parser does not, or not strictly enough.

use x509_parser::asn1_rs::Oid;

use crate::text::{hex, sanitize};

pub(super) const OID: u8 = 0x06;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;

/// A DER element with a tag of one byte. Used instead of asn1-rs's `Any`, which takes ten times as many instructions to
/// read.
pub(super) struct Element<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
}

impl<'a> Element<'a> {
    /// Reads the first element, and returns what follows it. Certificates are shorter than 64 KiB, so three bytes of
    /// length suffice.
    pub(super) fn read(input: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (&[tag, first], rest) = input.split_first_chunk()?;
        let (length, rest) = match first {
            0..=0x7f => (first.into(), rest),
            0x81..=0x83 => {
                let (bytes, rest) = rest.split_at_checked((first & 0x7f).into())?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        let is_one_byte_tag = tag & 0x1f != 0x1f;
        is_one_byte_tag.then_some((Self { tag, content }, rest))
    }
}

/// Splits the content of a constructed value.
pub(super) fn elements(mut content: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut elements = Vec::new();
    while !content.is_empty() {
        let (element, rest) = Element::read(content)?;
        elements.push(element);
        content = rest;
    }
    Some(elements)
}

/// Parses a single element with nothing after it.
pub(super) fn only_element(value: &[u8]) -> Option<Element<'_>> {
    let (element, rest) = Element::read(value)?;
    rest.is_empty().then_some(element)
}

/// Formats an object identifier in dotted notation, or in hexadecimal if its numbers are too large.
///
/// asn1-rs always decodes the first two numbers from the first byte, although they may need several (X.690, section 8.19).
pub(super) fn dotted(oid: &Oid<'_>) -> String {
    let text = numbers(oid.as_bytes()).unwrap_or_else(|| hex(oid.as_bytes()));
    sanitize(&text)
}

fn numbers(oid: &[u8]) -> Option<String> {
    let (mut numbers, mut number) = (Vec::new(), 0_u64);
    for byte in oid {
        number = number.checked_mul(0x80)? | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            if numbers.is_empty() {
                let first = (number / 40).min(2);
                numbers.push(first.to_string());
                number -= first * 40;
            }
            numbers.push(number.to_string());
            number = 0;
        }
    }
    Some(numbers.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_within_their_input() {
        // Tag, length of the content, and number of bytes after it.
        let readable: [(&[u8], [usize; 3]); 5] = [
            (&[0x05, 0x00], [5, 0, 0]),
            (&[0x04, 0x02, 1, 2, 3], [4, 2, 1]),
            (&[0x04, 0x81, 0x02, 1, 2], [4, 2, 0]),
            (&[0x04, 0x82, 0x00, 0x01, 1, 2], [4, 1, 1]),
            (&[0xa3, 0x83, 0x00, 0x00, 0x01, 1], [0xa3, 1, 0]),
        ];
        for (input, wanted) in readable {
            let (element, rest) = Element::read(input).unwrap();
            assert_eq!([element.tag.into(), element.content.len(), rest.len()], wanted, "{input:02x?}");
        }
        let unreadable: [&[u8]; 8] = [
            &[],
            &[0x05],
            &[0x04, 0x02, 1],
            &[0x04, 0x82, 0x01],
            &[0x04, 0x81, 0xff, 1],
            // Indefinite and overlong lengths, and tags of several bytes.
            &[0x30, 0x80, 0, 0],
            &[0x04, 0x84, 0, 0, 0, 1, 1],
            &[0x1f, 0x21, 0x00],
        ];
        for input in unreadable {
            assert!(Element::read(input).is_none(), "{input:02x?}");
        }
    }

    #[test]
    fn object_identifiers_are_dotted_or_hexadecimal() {
        let rows: [(&[u8], &str); 7] = [
            (&[0x2a, 0x03], "1.2.3"),
            (&[0x55, 0x1d, 0x25], "2.5.29.37"),
            (&[0x88, 0x37, 0x03], "2.999.3"),
            (&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d], "1.2.840.113549"),
            (&[0x4f], "1.39"),
            (&[0x00], "0.0"),
            (&[0x2a, 0x83, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], "2a83ffffffffffffffff7f"),
        ];
        for (oid, wanted) in rows {
            assert_eq!(dotted(&Oid::new(oid.into())), wanted, "{oid:02x?}");
        }
    }
}
