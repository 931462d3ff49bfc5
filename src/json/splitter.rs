//! Cuts JSON that arrives in pieces into the elements of its arrays and an outline, the text around them.
//!
//! It looks only for strings, brackets and commas. Whoever parses outline and elements finds out whether they are
//! JSON: if the text is not, one of them is not either.

use std::ops::Range;

use memchr::memchr2;

use crate::{JsonError, MAX_DEPTH};

/// Number of elements of each array that the outline keeps.
const OUTLINE_ELEMENTS: usize = 100;

/// Number of elements of each array that the outline keeps whole. Further objects are replaced by empty ones.
const WHOLE_ELEMENTS: usize = 10;

/// Maximum size of an element in the outline. A larger object is replaced by an empty one, anything else by null.
const MAX_OUTLINE_ELEMENT_BYTES: usize = 64 << 10;

/// Maximum size of an element.
const MAX_ELEMENT_BYTES: usize = 16 << 20;

/// What the outline has in place of a larger element.
const TOO_LARGE: &str = r#""it holds more than 16 MiB""#;

/// Maximum size of the outline.
const MAX_OUTLINE_BYTES: usize = 32 << 20;

/// Maximum number of arrays.
const MAX_ARRAYS: usize = 1000;

/// An element of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element<'t> {
    /// Its text, perhaps with white space around it.
    Text(&'t str),
    /// It exceeds `MAX_ELEMENT_BYTES`.
    TooLarge,
}

/// Gets the elements, each with the number of its array.
pub trait Visitor {
    /// Reads the element at the start of a text. Returns where the comma or bracket after it is. `None` if the element
    /// is incomplete or too complex; the visitor gets it again when it is complete, as one that has to be read.
    ///
    /// An element with more than `max_depth` levels is too complex.
    fn read_first(&mut self, array: usize, text: &str, max_depth: usize) -> Result<Option<usize>, JsonError>;

    /// Reads an element.
    fn read(&mut self, array: usize, element: Element<'_>) -> Result<(), JsonError>;
}

/// Splits one text. Arrays in elements are parts of these.
#[derive(Default)]
pub struct Splitter {
    outline: String,
    /// For each array, the names of the fields that lead to it.
    arrays: Vec<Vec<String>>,
    /// For each object around the current position, the place of its name in the outline.
    names: Vec<Range<usize>>,
    /// The place of the last string in the outline. Before an array or an object in an object, that is its name.
    last_string: Range<usize>,
    scanner: Scanner,
    /// The array that is being read.
    array: Option<Array>,
}

#[derive(Default)]
struct Array {
    /// Number of complete elements.
    length: usize,
    element: Partial,
}

/// What has arrived of an element.
#[derive(Default)]
struct Partial {
    text: String,
    is_too_large: bool,
}

/// Follows strings and brackets.
#[derive(Default)]
struct Scanner {
    is_in_string: bool,
    /// Whether the last character was a backslash, which escapes the next one.
    is_escaped: bool,
    /// Number of open brackets in an element.
    depth: usize,
}

impl Splitter {
    /// Reads another piece. `visitor` gets the elements that it completes.
    pub fn push(&mut self, mut piece: &str, visitor: &mut dyn Visitor) -> Result<(), JsonError> {
        while !piece.is_empty() {
            piece = match self.array.take() {
                None => self.read_outline(piece)?,
                Some(array) => self.read_element(array, piece, visitor)?,
            };
        }
        Ok(())
    }

    /// The outline, and for each array the names of the fields that lead to it.
    pub fn end(mut self) -> (String, Vec<Vec<String>>) {
        if let Some(array) = self.array {
            self.outline.push_str(&array.element.text);
        }
        (self.outline, self.arrays)
    }

    /// Reads up to the next array. Returns the rest.
    fn read_outline<'t>(&mut self, piece: &'t str) -> Result<&'t str, JsonError> {
        let start = self.outline.len();
        for (at, byte) in piece.bytes().enumerate() {
            if !self.scanner.is_outside_string(byte) {
                self.last_string.end = start + at + 1;
                continue;
            }
            match byte {
                b'"' => self.last_string.start = start + at,
                b'{' => self.names.push(self.last_string.clone()),
                b'}' => drop(self.names.pop()),
                b'[' => {
                    let (before, rest) = piece.split_at_checked(at + 1).unwrap_or((piece, ""));
                    self.add_to_outline(before)?;
                    self.begin_array()?;
                    return Ok(rest);
                }
                _ => {}
            }
            if self.names.len() > MAX_DEPTH {
                return Err(JsonError::TooDeep);
            }
        }
        self.add_to_outline(piece)?;
        Ok("")
    }

    fn add_to_outline(&mut self, text: &str) -> Result<(), JsonError> {
        if self.outline.len() + text.len() > MAX_OUTLINE_BYTES {
            return Err(JsonError::TooLarge("32 MiB"));
        }
        self.outline.push_str(text);
        Ok(())
    }

    fn begin_array(&mut self) -> Result<(), JsonError> {
        if self.arrays.len() == MAX_ARRAYS {
            return Err(JsonError::TooLarge("1,000 lists"));
        }
        // The outermost value has no name.
        let names = self.names.iter().chain([&self.last_string]).skip(1).take(self.names.len());
        let name = |place: &Range<usize>| serde_json::from_str(self.outline.get(place.clone())?).ok();
        self.arrays.push(names.map(|place| name(place).unwrap_or_default()).collect());
        self.array = Some(Array::default());
        Ok(())
    }

    /// Reads up to the end of the current element or of its array. Returns the rest.
    fn read_element<'t>(
        &mut self,
        array: Array,
        piece: &'t str,
        visitor: &mut dyn Visitor,
    ) -> Result<&'t str, JsonError> {
        let Array { length, element: mut partial } = array;
        let max_depth = MAX_DEPTH.checked_sub(self.names.len() + 1).ok_or(JsonError::TooDeep)?;
        if partial.is_new()
            && piece.len() <= MAX_ELEMENT_BYTES
            && let Some(end) = visitor.read_first(self.arrays.len() - 1, piece, max_depth)?
            && let Some((text, rest)) = piece.split_at_checked(end)
        {
            self.add_element(length, Element::Text(text))?;
            return self.end_element(length, partial, rest);
        }
        let end = self.scanner.find_end(piece.as_bytes(), max_depth)?;
        let Some((text, rest)) = end.and_then(|end| piece.split_at_checked(end)) else {
            partial.add(piece);
            self.array = Some(Array { length, element: partial });
            return Ok("");
        };
        let element = partial.complete(text);
        let is_last = rest.starts_with(']');
        let is_absent = is_last && length == 0 && element.is_blank();
        if !is_absent {
            self.add_element(length, element)?;
            visitor.read(self.arrays.len() - 1, element)?;
        }
        self.end_element(length, partial, rest)
    }

    /// Skips the comma or bracket after an element, which is the start of this text.
    fn end_element<'t>(
        &mut self,
        before: usize,
        element: Partial,
        text: &'t str,
    ) -> Result<&'t str, JsonError> {
        if text.starts_with(']') {
            self.add_to_outline("]")?;
        } else {
            self.array = Some(Array { length: before + 1, element: element.cleared() });
        }
        Ok(text.get(1..).unwrap_or_default())
    }

    /// Adds an element to the outline if it is one of the first.
    fn add_element(&mut self, before: usize, element: Element<'_>) -> Result<(), JsonError> {
        if before >= OUTLINE_ELEMENTS {
            return Ok(());
        }
        if before > 0 {
            self.add_to_outline(",")?;
        }
        let is_small = |text: &str| text.len() <= MAX_OUTLINE_ELEMENT_BYTES;
        self.add_to_outline(match element {
            Element::Text(text) if before < WHOLE_ELEMENTS && is_small(text) => text,
            Element::Text(text) if text.trim_ascii_start().starts_with('{') => "{}",
            Element::Text(text) if is_small(text) => text,
            Element::Text(_) => "null",
            Element::TooLarge => TOO_LARGE,
        })
    }
}

impl Element<'_> {
    fn is_blank(&self) -> bool {
        matches!(self, Self::Text(text) if text.trim_ascii().is_empty())
    }
}

impl Partial {
    /// Whether nothing has arrived.
    fn is_new(&self) -> bool {
        self.text.is_empty() && !self.is_too_large
    }

    fn add(&mut self, text: &str) {
        self.is_too_large |= self.text.len() + text.len() > MAX_ELEMENT_BYTES;
        if self.is_too_large {
            self.text = String::new();
        } else {
            self.text.push_str(text);
        }
    }

    /// The element that ends with this text.
    fn complete<'t>(&'t mut self, text: &'t str) -> Element<'t> {
        if self.is_new() && text.len() <= MAX_ELEMENT_BYTES {
            return Element::Text(text);
        }
        self.add(text);
        if self.is_too_large { Element::TooLarge } else { Element::Text(&self.text) }
    }

    /// The beginning of another element, in the same memory.
    fn cleared(mut self) -> Self {
        self.text.clear();
        Self { text: self.text, is_too_large: false }
    }
}

impl Scanner {
    /// Whether the next byte is neither in a string nor its final quote.
    fn is_outside_string(&mut self, byte: u8) -> bool {
        if !self.is_in_string {
            self.is_in_string = byte == b'"';
            return true;
        }
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => self.is_in_string = false,
            _ => {}
        }
        false
    }

    /// Finds the comma or bracket after an element.
    fn find_end(&mut self, bytes: &[u8], max_depth: usize) -> Result<Option<usize>, JsonError> {
        let mut rest = bytes;
        while let Some((byte, after)) = rest.split_first() {
            if self.is_outside_string(*byte) {
                match byte {
                    b'{' | b'[' if self.depth == max_depth => return Err(JsonError::TooDeep),
                    b'{' | b'[' => self.depth += 1,
                    b',' | b']' if self.depth == 0 => return Ok(Some(bytes.len() - rest.len())),
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
            }
            rest = after;
            if self.is_in_string && !self.is_escaped {
                let length = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
                rest = rest.get(length..).unwrap_or_default();
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
