//! Reads the JSON of a response while it arrives, element by element.
//!
//! Which array of a response is the list is known only at its end, so the elements of all arrays are read, and the
//! outline around them is kept as a value. Only one element at a time is in memory as text.

use bytes::Bytes;
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

/// The bytes around the name and the value of a field.
const PUNCTUATION: usize = 3;

/// How much of a response is kept for messages.
pub(super) const START_BYTES: usize = 4 << 10;

/// Fails if a number exceeds a limit.
fn at_most(number: usize, max: usize) -> Result<(), JsonError> {
    if number > max { Err(JsonError::TooLarge) } else { Ok(()) }
}

/// Reads one response from a source of chunks, which returns none at the end.
pub(super) struct Reader<'r, S, T> {
    source: S,
    /// Its secrets may be in the response.
    redactor: &'r Redactor,
    /// The first bytes, for messages.
    pub(super) start: Vec<u8>,
    /// Bytes at the end of what has arrived that begin a character.
    begun: Vec<u8>,
    /// What has arrived before them.
    text: String,
    /// The part of it that is read.
    position: usize,
    /// Whether all has arrived.
    pub(super) is_ended: bool,
    pub(super) arrays: Vec<Items<T>>,
    /// The memory that elements and outline take.
    bytes: usize,
}

impl<'r, T: Element, S: AsyncFnMut() -> Option<Bytes>> Reader<'r, S, T> {
    pub(super) fn new(source: S, redactor: &'r Redactor) -> Self {
        let (start, begun, text, arrays) = (Vec::new(), Vec::new(), String::new(), Vec::new());
        Self { source, redactor, start, begun, text, position: 0, is_ended: false, arrays, bytes: 0 }
    }

    /// Reads the response to its end, and returns the outline. There, an array that is not empty holds its index, its
    /// length and its first element; in place of one that is large, `{}` or null. An array of values holds them, and null
    /// for any other element.
    pub(super) async fn read(&mut self) -> Result<Value, JsonError> {
        let outline = self.value(1).await?;
        if self.peek().await.is_none() { Ok(outline) } else { Err(JsonError::Syntax) }
    }

    /// Receives another chunk.
    pub(super) async fn receive(&mut self) {
        let chunk = (self.source)().await;
        self.is_ended = chunk.is_none();
        let chunk = chunk.unwrap_or_default();
        self.start.extend(chunk.iter().take(START_BYTES - self.start.len()));
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(&chunk);
        // A character may be cut off: its bytes wait for the next chunk.
        let begun = bytes.iter().rev().take(3).position(|byte| *byte >= 0xc0).map_or(0, |at| at + 1);
        self.begun = bytes.split_off(bytes.len() - if self.is_ended { 0 } else { begun });
        // Bytes that are not UTF-8 are replaced.
        let text = String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        self.text.drain(..std::mem::take(&mut self.position));
        self.text.push_str(&text);
    }

    fn rest(&self) -> &str {
        self.text.get(self.position..).unwrap_or_default()
    }

    /// The next byte after white space and byte-order marks; `None` at the end.
    async fn peek(&mut self) -> Option<u8> {
        loop {
            let rest = self.rest().trim_start_matches([' ', '\n', '\r', '\t', '\u{feff}']);
            let next = rest.bytes().next();
            self.position = self.text.len() - rest.len();
            if next.is_some() || self.is_ended {
                return next;
            }
            self.receive().await;
        }
    }

    /// Skips this byte if it comes next.
    async fn skip(&mut self, byte: u8) -> bool {
        let is_next = self.peek().await == Some(byte);
        self.position += usize::from(is_next);
        is_next
    }

    /// Skips a comma, after which another item follows, or the end of an object or array.
    async fn has_more(&mut self, end: u8) -> Result<bool, JsonError> {
        let is_comma = self.skip(b',').await;
        if is_comma || self.skip(end).await { Ok(is_comma) } else { Err(JsonError::Syntax) }
    }

    /// Reads the next value as soon as it has arrived, and returns its length.
    async fn take<V: DeserializeOwned>(&mut self) -> Result<(Option<V>, usize), JsonError> {
        self.peek().await;
        loop {
            let rest = self.rest();
            if let Some((value, length)) = take_or_skip(rest, self.is_ended)? {
                at_most(length, MAX_ELEMENT_BYTES)?;
                self.position += length;
                return Ok((value, length));
            }
            at_most(rest.len(), MAX_ELEMENT_BYTES)?;
            // A long element is not read again for every chunk.
            let wanted = (2 * rest.len()).min(MAX_ELEMENT_BYTES + 1);
            while !self.is_ended && self.rest().len() < wanted {
                self.receive().await;
            }
        }
    }

    /// Reads a value for the outline, with this many objects around it if it is one, itself included.
    async fn value(&mut self, depth: usize) -> Result<Value, JsonError> {
        if self.skip(b'{').await {
            return Box::pin(self.object(depth)).await;
        }
        if self.skip(b'[').await {
            return self.array().await;
        }
        let (value, length) = self.take().await?;
        self.keep(OUTLINE_FACTOR * length)?;
        // A value that serde_json cannot represent: null would count as absent, and its text as a valid value.
        let raw = || json!({"message": self.text.get(self.position - length..self.position)});
        Ok(value.unwrap_or_else(raw))
    }

    async fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        at_most(depth, MAX_DEPTH)?;
        let mut object = Map::new();
        let mut has_more = !self.skip(b'}').await;
        while has_more {
            let (Some(name), length) = self.take::<String>().await? else { return Err(JsonError::Syntax) };
            self.keep(OUTLINE_FACTOR * (length + PUNCTUATION))?;
            if !self.skip(b':').await {
                return Err(JsonError::Syntax);
            }
            let value = self.value(depth + 1).await?;
            // Elements are not compared.
            if object.get(&name).is_some_and(|other| other.get(0).is_some() || *other != value) {
                return Err(JsonError::Ambiguous);
            }
            object.insert(name, value);
            has_more = self.has_more(b'}').await?;
        }
        Ok(Value::Object(object))
    }

    async fn array(&mut self) -> Result<Value, JsonError> {
        let (mut list, mut first) = (Items { items: Vec::new(), unreadable: Vec::new() }, None);
        let mut has_more = !self.skip(b']').await;
        while has_more {
            let (fields, length) = self.take::<T::Fields>().await?;
            let text = self.text.get(self.position - length..self.position).unwrap_or_default();
            if first.is_none() {
                let value = if length <= MAX_FIRST_BYTES { serde_json::from_str(text).ok() } else { None };
                // Whether it is an object decides which array is the list.
                let value =
                    value.unwrap_or_else(|| if text.starts_with('{') { json!({}) } else { Value::Null });
                self.bytes += memory(&value);
                first = Some(value);
            }
            let (read, heap_bytes) = match fields {
                Some(fields) => T::from_fields(fields, text, self.redactor),
                None => (Err(Unreadable::default()), 0),
            };
            match read {
                Ok(item) => list.items.push(item),
                Err(unreadable) => list.unreadable.push(unreadable),
            }
            self.keep(size_of::<T>().max(size_of::<Unreadable>()) + heap_bytes)?;
            has_more = self.has_more(b']').await?;
        }
        let (index, length) = (self.arrays.len(), list.items.len() + list.unreadable.len());
        let described = first.map(|first| vec![index.into(), length.into(), first]).unwrap_or_default();
        let array = T::to_outline(&mut list).unwrap_or(described);
        self.arrays.push(list);
        Ok(Value::Array(array))
    }

    /// Adds to the memory that is kept.
    fn keep(&mut self, bytes: usize) -> Result<(), JsonError> {
        self.bytes += bytes;
        at_most(self.bytes, MAX_BYTES)
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
