//! Reads and writes DER (X.690) with tags of one byte. The only reader beside x509-parser, and a strict one.

use zeroize::Zeroizing;

pub(crate) const INTEGER: u8 = 0x02;
pub(crate) const BIT_STRING: u8 = 0x03;
pub(crate) const OCTET_STRING: u8 = 0x04;
pub(crate) const OID: u8 = 0x06;
pub(crate) const SEQUENCE: u8 = 0x30;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
}

/// Reads the first element, and returns what follows it. Its length has to be minimal and below 64 KiB, as that of every
/// certificate and key is.
pub(crate) fn read(input: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (tag, length, header) = match *input {
        [tag, length @ 0..=0x7f, ..] => (tag, length.into(), 2),
        [tag, 0x81, length @ 0x80..=0xff, ..] => (tag, length.into(), 3),
        [tag, 0x82, high @ 1..=0xff, low, ..] => (tag, u16::from_be_bytes([high, low]).into(), 4),
        _ => return None,
    };
    let (content, rest) = input.get(header..)?.split_at_checked(length)?;
    // Other tags have several bytes.
    (tag & 0x1f != 0x1f).then_some((Element { tag, content }, rest))
}

/// Splits the content of a constructed value.
pub(crate) fn elements(mut content: &[u8]) -> Option<Vec<Element<'_>>> {
    let mut elements = Vec::new();
    while !content.is_empty() {
        let (element, rest) = read(content)?;
        elements.push(element);
        content = rest;
    }
    Some(elements)
}

/// Takes the first element from `input` if it has this tag, and returns its content.
pub(crate) fn take<'a>(input: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (element, rest) = read(input).filter(|(element, _)| element.tag == tag)?;
    *input = rest;
    Some(element.content)
}

/// Takes an `INTEGER` that is not negative, with the zero before it that marks it as such.
pub(crate) fn take_unsigned<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    take(input, INTEGER).filter(|number| matches!(number, [0..=0x7f] | [0, 0x80..=0xff, ..] | [1..=0x7f, ..]))
}

/// Returns the content of a single element that has this tag and nothing after it.
pub(crate) fn only(tag: u8, mut input: &[u8]) -> Option<&[u8]> {
    take(&mut input, tag).filter(|_| input.is_empty())
}

/// Encodes an element from the parts of its content, which may be secret.
pub(crate) fn write(tag: u8, parts: &[impl AsRef<[u8]>]) -> Zeroizing<Vec<u8>> {
    let length: usize = parts.iter().map(|part| part.as_ref().len()).sum();
    // Allocated once at full size: growing would leave copies behind that are not zeroized.
    let mut der = Zeroizing::new(Vec::with_capacity(length + 5));
    let [.., high, middle, low] = length.to_be_bytes();
    match length {
        0..0x80 => der.extend([tag, low]),
        0x80..0x100 => der.extend([tag, 0x81, low]),
        0x100..0x1_0000 => der.extend([tag, 0x82, middle, low]),
        _ => der.extend([tag, 0x83, high, middle, low]),
    }
    for part in parts {
        der.extend_from_slice(part.as_ref());
    }
    der
}

/// Encodes a number that is not negative. It may have leading zeros.
pub(crate) fn integer(number: &[u8]) -> Zeroizing<Vec<u8>> {
    let number = significant(number);
    let sign: &[u8] = if number.first().is_none_or(|byte| *byte >= 0x80) { &[0] } else { &[] };
    write(INTEGER, &[sign, number])
}

/// Returns a number without leading zeros.
pub(crate) fn significant(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_within_their_input() {
        let long = [&[0x04, 0x81, 0x80][..], &[1; 0x80]].concat();
        let longer = [&[0x04, 0x82, 0x01, 0x00][..], &[1; 0x102]].concat();
        // Tag, length of the content, and number of bytes after it.
        let readable: [(&[u8], [usize; 3]); 5] = [
            (&[0x05, 0x00], [5, 0, 0]),
            (&[0x04, 0x02, 1, 2, 3], [4, 2, 1]),
            (&[0xa3, 0x01, 1], [0xa3, 1, 0]),
            (&long, [4, 0x80, 0]),
            (&longer, [4, 0x100, 2]),
        ];
        for (input, wanted) in readable {
            let (element, rest) = read(input).unwrap();
            assert_eq!([element.tag.into(), element.content.len(), rest.len()], wanted, "{input:02x?}");
        }
        let padded = [&[0x04, 0x82, 0x00, 0xff][..], &[1; 0xff]].concat();
        let unreadable: [&[u8]; 10] = [
            &[],
            &[0x05],
            &[0x04, 0x02, 1],
            &[0x04, 0x82, 0x01],
            &[0x04, 0x81, 0xff, 1],
            // Lengths that are not minimal, an indefinite one, and a tag of several bytes.
            &[0x04, 0x81, 0x02, 1, 2],
            &padded,
            &[0x30, 0x80, 0, 0],
            &[0x04, 0x84, 0, 0, 0, 1, 1],
            &[0x1f, 0x21, 0x00],
        ];
        for input in unreadable {
            assert_eq!(read(input), None, "{input:02x?}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for length in [0, 1, 0x7f, 0x80, 0xff, 0x100, 0xffff] {
            let content = vec![7; length];
            let (first, second) = content.split_at(length / 3);
            assert_eq!(
                only(OCTET_STRING, &write(OCTET_STRING, &[first, second])),
                Some(&*content),
                "{length}"
            );
        }
        assert_eq!(write(OCTET_STRING, &[vec![7; 0x1_0000]])[..5], [4, 0x83, 1, 0, 0]);
    }

    #[test]
    fn only_one_element_of_the_tag_counts() {
        assert_eq!(only(OID, &[6, 1, 7]), Some(&[7][..]));
        for input in [&[6, 1, 7, 0][..], &[4, 1, 7], &[6, 2, 7], &[]] {
            assert_eq!(only(OID, input), None, "{input:02x?}");
        }
    }

    #[test]
    fn integers_are_unsigned_and_minimal() {
        let rows: [(&[u8], &[u8]); 6] = [
            (&[], &[2, 1, 0]),
            (&[0, 0], &[2, 1, 0]),
            (&[0x7f], &[2, 1, 0x7f]),
            (&[0x80], &[2, 2, 0, 0x80]),
            (&[0, 0x80], &[2, 2, 0, 0x80]),
            (&[0, 1, 0], &[2, 2, 1, 0]),
        ];
        for (number, der) in rows {
            assert_eq!(*integer(number), der, "{number:02x?}");
            let read = take_unsigned(&mut &*der).unwrap();
            assert_eq!(significant(read), significant(number), "{number:02x?}");
        }
        for der in [&[2, 0][..], &[2, 1, 0x80], &[2, 2, 0, 0x7f], &[2, 2, 0, 0], &[4, 1, 1]] {
            assert_eq!(take_unsigned(&mut &*der), None, "{der:02x?}");
        }
    }
}
