//! DER that x509-parser does not look into, or not closely enough.

use x509_parser::asn1_rs::{Any, FromDer as _, Oid};

use crate::text::{hex, sanitize};

/// Splits the content of a constructed value.
pub(super) fn elements(mut content: &[u8]) -> Option<Vec<Any<'_>>> {
    let mut elements = Vec::new();
    while !content.is_empty() {
        let (rest, element) = Any::from_der(content).ok()?;
        elements.push(element);
        content = rest;
    }
    Some(elements)
}

/// Parses a single element with nothing after it.
pub(super) fn only_element(value: &[u8]) -> Option<Any<'_>> {
    let (rest, element) = Any::from_der(value).ok()?;
    rest.is_empty().then_some(element)
}

/// Formats an object identifier in dotted notation, or in hexadecimal if its numbers are too large.
///
/// Not with asn1-rs, which takes the first byte for the first two numbers, even if they need several (X.690, section
/// 8.19).
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
