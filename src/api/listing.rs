//! Reads the JSON of a response while it arrives, element by element.
//!
//! Which array of a response is the list is known only at its end, so the elements of all arrays are read, and the
//! outline around them is kept as a value. Only one element at a time is in memory as text.

use std::sync::Arc;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Deserializer, Map, Value, json};

use crate::names::Domain;
use crate::secret::Redactor;

/// The part of a list's element that is kept.
pub(crate) trait Element: Sized {
    /// The fields that it is read from. `#[derive(Deserialize)]` refuses one that occurs twice, and skips all others.
    type Fields: DeserializeOwned;

    /// Reads an element, whose JSON is `text`, and removes secrets. Also returns the memory that it takes at most, apart
    /// from its own size.
    fn from_fields(
        fields: Self::Fields,
        text: &str,
        redactor: &Redactor,
    ) -> (Result<Self, Unreadable>, usize);

    /// Moves the elements of an array to the outline, if it is to hold them.
    fn to_outline(_: &mut Items<Self>) -> Option<Vec<Value>> {
        None
    }
}

/// The facts about an element that cannot be read; by default, none is known.
#[derive(Debug, Default)]
pub(crate) struct Unreadable {
    pub(super) id: Option<u64>,
    /// The record that it is bound to, if any; `None` if that may be any record.
    pub(super) records: Option<Vec<u64>>,
    /// `None` if it may have any.
    pub(super) domains: Option<Vec<Domain>>,
}

/// The elements of one array.
pub(crate) struct Items<T> {
    pub(super) items: Vec<T>,
    pub(super) unreadable: Vec<Unreadable>,
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self { items: Vec::new(), unreadable: Vec::new() }
    }
}

/// Why a response cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum JsonError {
    #[error("it is not JSON")]
    Syntax,
    #[error("it is too large")]
    TooLarge,
    /// Programs differ in which value of such a field they use.
    #[error("a field occurs twice with different values")]
    Ambiguous,
}

/// Maximum size of an element.
const MAX_ELEMENT_BYTES: usize = 4 << 20;

/// Maximum estimated memory of what is kept.
const MAX_BYTES: usize = 256 << 20;

/// The memory that a byte around the elements may take as part of a value.
const OUTLINE_FACTOR: usize = 128;

/// Maximum size of the first element of an array in the outline, where it may be the reason of an error.
const MAX_FIRST_BYTES: usize = 64 << 10;

/// Nesting of objects around an array.
const MAX_DEPTH: usize = 16;

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    /// An item of an object or array: a name or an element. Or its end.
    FirstItem,
    /// An item that follows a comma.
    Item,
    Colon,
    /// A comma, or the end of the object or array.
    ItemEnd,
    End,
}

/// Fails if a number exceeds a limit.
fn at_most(number: usize, max: usize) -> Result<(), JsonError> {
    if number > max { Err(JsonError::TooLarge) } else { Ok(()) }
}

/// Reads one response.
pub(super) struct Reader<T> {
    /// Its secrets may be in the response.
    redactor: Arc<Redactor>,
    /// What has arrived and is not read yet.
    buffer: Vec<u8>,
    /// Length of the buffer from which another try is worthwhile: a long element is not read again for every chunk.
    wanted: usize,
    next: Next,
    /// The objects around the position, each with the name of its current field.
    objects: Vec<(Map<String, Value>, String)>,
    arrays: Vec<Items<T>>,
    /// Whether the last array has not ended.
    is_in_array: bool,
    /// Its first element.
    first: Option<Value>,
    outline: Value,
    /// The memory that elements and outline take.
    bytes: usize,
}

impl<T: Element> Reader<T> {
    pub(super) fn new(redactor: Arc<Redactor>) -> Self {
        Self {
            redactor,
            buffer: Vec::new(),
            wanted: 0,
            next: Next::Value,
            objects: Vec::new(),
            arrays: Vec::new(),
            is_in_array: false,
            first: None,
            outline: Value::Null,
            bytes: 0,
        }
    }

    /// Reads another chunk.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), JsonError> {
        self.buffer.extend_from_slice(chunk);
        if self.buffer.len() < self.wanted { Ok(()) } else { self.advance(false) }
    }

    /// Ends the response. In the outline, an array that is not empty holds its index, its length and its first element;
    /// in place of one that is large, `{}` or null. An array of values holds them, and null for any other element.
    pub(super) fn end(mut self) -> Result<(Value, Vec<Items<T>>), JsonError> {
        self.advance(true)?;
        if self.next == Next::End { Ok((self.outline, self.arrays)) } else { Err(JsonError::Syntax) }
    }

    fn advance(&mut self, is_last: bool) -> Result<(), JsonError> {
        // A character may be cut off: its bytes wait for the next chunk.
        let begun = self.buffer.iter().rev().take(3).position(|byte| *byte >= 0xc0).map_or(0, |at| at + 1);
        let begun = self.buffer.split_off(self.buffer.len() - if is_last { 0 } else { begun });
        // Bytes that are not UTF-8 are replaced.
        let text = String::from_utf8(std::mem::take(&mut self.buffer))
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let mut rest = skip_space(&text);
        while let Some(length) = self.step(rest, is_last)? {
            at_most(length, MAX_ELEMENT_BYTES)?;
            rest = skip_space(rest.get(length..).unwrap_or_default());
        }
        at_most(rest.len(), MAX_ELEMENT_BYTES)?;
        self.wanted = (2 * rest.len()).min(MAX_ELEMENT_BYTES + 1);
        let read = text.len() - rest.len();
        self.buffer = text.into_bytes();
        self.buffer.drain(..read);
        self.buffer.extend(begun);
        Ok(())
    }

    /// Reads what comes next, and returns its length; `None` if it has not arrived yet.
    fn step(&mut self, text: &str, is_last: bool) -> Result<Option<usize>, JsonError> {
        let Some(byte) = text.as_bytes().first() else { return Ok(None) };
        match (self.next, byte) {
            (Next::Value, b'{') => {
                at_most(self.objects.len() + 1, MAX_DEPTH)?;
                self.objects.push((Map::new(), String::new()));
                self.next = Next::FirstItem;
            }
            (Next::Value, b'[') => {
                self.arrays.push(Items::default());
                self.is_in_array = true;
                self.next = Next::FirstItem;
            }
            (Next::Value, _) => {
                let Some((value, length)) = take_or_skip(text, is_last)? else { return Ok(None) };
                // A value that serde_json cannot represent: null would count as absent, and its text as a valid value.
                let raw = || json!({"message": text.get(..length)});
                self.complete(value.unwrap_or_else(raw))?;
                return self.keep(length, OUTLINE_FACTOR * length);
            }
            (Next::FirstItem | Next::ItemEnd, b']') if self.is_in_array => self.end_array()?,
            (Next::FirstItem | Next::Item, _) if self.is_in_array => return self.element(text, is_last),
            (Next::FirstItem | Next::Item, b'"') => {
                let Some((name, length)) = take(text, is_last)? else { return Ok(None) };
                self.objects.last_mut().ok_or(JsonError::Syntax)?.1 = name;
                self.next = Next::Colon;
                return self.keep(length, OUTLINE_FACTOR * length);
            }
            (Next::FirstItem | Next::ItemEnd, b'}') if !self.is_in_array => {
                let (object, _) = self.objects.pop().ok_or(JsonError::Syntax)?;
                self.complete(Value::Object(object))?;
            }
            (Next::Colon, b':') => self.next = Next::Value,
            (Next::ItemEnd, b',') => {
                self.next = Next::Item;
                return Ok(Some(1));
            }
            _ => return Err(JsonError::Syntax),
        }
        self.keep(1, OUTLINE_FACTOR)
    }

    fn element(&mut self, text: &str, is_last: bool) -> Result<Option<usize>, JsonError> {
        let Some((fields, length)) = take_or_skip::<T::Fields>(text, is_last)? else { return Ok(None) };
        let element = text.get(..length).unwrap_or_default();
        if self.next == Next::FirstItem {
            let first = if length <= MAX_FIRST_BYTES { serde_json::from_str(element).ok() } else { None };
            // Whether it is an object decides which array is the list.
            let first =
                first.unwrap_or_else(|| if element.starts_with('{') { json!({}) } else { Value::Null });
            self.bytes += memory(&first);
            self.first = Some(first);
        }
        let list = self.arrays.last_mut().ok_or(JsonError::Syntax)?;
        let (read, heap_bytes) = match fields {
            Some(fields) => T::from_fields(fields, element, &self.redactor),
            None => (Err(Unreadable::default()), 0),
        };
        match read {
            Ok(item) => list.items.push(item),
            Err(unreadable) => list.unreadable.push(unreadable),
        }
        self.next = Next::ItemEnd;
        self.keep(length, size_of::<T>().max(size_of::<Unreadable>()) + heap_bytes)
    }

    fn end_array(&mut self) -> Result<(), JsonError> {
        self.is_in_array = false;
        let index = self.arrays.len() - 1;
        let list = self.arrays.last_mut().ok_or(JsonError::Syntax)?;
        let length = list.items.len() + list.unreadable.len();
        let numbers = [index, length].map(Value::from).into_iter().filter(|_| length > 0);
        let described = numbers.chain(self.first.take());
        let array = T::to_outline(list).unwrap_or_else(|| described.collect());
        self.complete(Value::Array(array))
    }

    /// Puts a value where it belongs in the outline.
    fn complete(&mut self, value: Value) -> Result<(), JsonError> {
        let Some((object, name)) = self.objects.last_mut() else {
            (self.outline, self.next) = (value, Next::End);
            return Ok(());
        };
        // Elements are not compared.
        if object.get(name).is_some_and(|other| other.get(0).is_some() || *other != value) {
            return Err(JsonError::Ambiguous);
        }
        object.insert(std::mem::take(name), value);
        self.next = Next::ItemEnd;
        Ok(())
    }

    /// Adds to the memory that is kept, and returns the length of the text.
    fn keep(&mut self, length: usize, bytes: usize) -> Result<Option<usize>, JsonError> {
        self.bytes += bytes;
        at_most(self.bytes, MAX_BYTES)?;
        Ok(Some(length))
    }
}

/// An element with all its fields.
impl Element for Value {
    type Fields = Self;

    fn from_fields(fields: Self, _: &str, _: &Redactor) -> (Result<Self, Unreadable>, usize) {
        let bytes = memory(&fields);
        (Ok(fields), bytes)
    }

    fn to_outline(Items { items, unreadable }: &mut Items<Self>) -> Option<Vec<Self>> {
        Some(items.drain(..).chain(unreadable.drain(..).map(|_| Self::Null)).collect())
    }
}

/// The index of an array of the outline among the arrays, which is its first value; `None` if it is empty.
pub(super) fn array_index(first: Option<&Value>) -> Option<usize> {
    usize::try_from(first?.as_u64()?).ok()
}

/// Skips white space and byte-order marks.
fn skip_space(text: &str) -> &str {
    text.trim_start_matches([' ', '\n', '\r', '\t', '\u{feff}'])
}

/// Reads a value at the start of a text, and returns its length; `None` if it has not arrived whole.
fn take<V: DeserializeOwned>(text: &str, is_last: bool) -> Result<Option<(V, usize)>, JsonError> {
    let mut values = Deserializer::from_str(text).into_iter();
    match values.next() {
        Some(Ok(value)) => {
            // A number at the end of the text may continue in the next chunk.
            let may_go_on =
                values.byte_offset() == text.len() && text.ends_with(|c: char| c.is_ascii_digit());
            Ok((is_last || !may_go_on).then(|| (value, values.byte_offset())))
        }
        // For serde_json, a skipped number that is cut off is invalid rather than incomplete.
        Some(Err(error)) if !is_last && (error.is_eof() || text.ends_with(['-', '+', '.', 'e', 'E'])) => {
            Ok(None)
        }
        _ => Err(JsonError::Syntax),
    }
}

/// The same, without the value if none can represent the text, such as a number that is too large.
fn take_or_skip<V: DeserializeOwned>(
    text: &str,
    is_last: bool,
) -> Result<Option<(Option<V>, usize)>, JsonError> {
    if let Ok(taken) = take(text, is_last) {
        return Ok(taken.map(|(value, length)| (Some(value), length)));
    }
    let skipped = take::<IgnoredAny>(text, is_last)?;
    Ok(skipped.map(|(_, length)| (None, length)))
}

/// The memory that a value takes apart from its own size, estimated from above.
pub(super) fn memory(value: &Value) -> usize {
    /// Vectors may have grown to twice their length.
    const ELEMENT: usize = 2 * size_of::<Value>();
    /// A node of a B-tree has room for eleven fields, and is at least half full.
    const NODE: usize = 11 * (size_of::<String>() + size_of::<Value>()) + 16;
    let field = |(name, value): (&String, &Value)| NODE / 5 + name.len() + 32 + memory(value);
    match value {
        Value::String(text) => text.len() + 32,
        Value::Array(items) => items.iter().map(|item| ELEMENT + memory(item)).sum(),
        Value::Object(fields) => NODE + fields.iter().map(field).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

#[cfg(test)]
mod tests;
