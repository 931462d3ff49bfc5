//! Reads JSON from the service within limits: a hostile or broken response cannot exhaust memory or the stack, and
//! objects that contradict themselves are not used.
//!
//! A list is read while it arrives: [`Splitter`] splits it into elements, of which only the known fields are kept. Other
//! fields may contradict themselves, because nothing uses them.

mod fields;
mod utf8;
mod value;

use std::cell::{Cell, RefCell};

use serde::de::{DeserializeSeed, Error};
use serde_json::{Deserializer, Value};

pub(super) use edgecert_json::{Element, JsonError, Splitter, Visitor};

pub(super) use self::fields::{ElementFields, Fields, KnownFields};
pub(super) use self::utf8::Utf8Decoder;
use self::value::ValueSeed;

/// Maximum estimated memory of the value of a response.
const MAX_VALUE_BYTES: usize = 128 << 20;

/// The same for an element of a list.
const MAX_ELEMENT_BYTES: usize = 32 << 20;

/// Parses JSON text. An object that has a field twice with different values is replaced by a message, because
/// programs differ in which value they use.
pub(super) fn parse(text: &str) -> Result<Value, JsonError> {
    let limits = Limits::new(MAX_VALUE_BYTES);
    limits.read(text.strip_prefix('\u{feff}').unwrap_or(text), ValueSeed { limits: &limits, depth: 0 })
}

/// The fields that lead to `target`, a value in `json`.
pub(super) fn path_of(json: &Value, target: &Value) -> Option<Vec<String>> {
    if std::ptr::eq(json, target) {
        return Some(Vec::new());
    }
    json.as_object()?.iter().find_map(|(name, value)| {
        let mut path = path_of(value, target)?;
        path.insert(0, name.clone());
        Some(path)
    })
}

/// The limits of one text.
struct Limits {
    /// Memory that the value may take.
    max_bytes: usize,
    /// Memory that the value may still take.
    left: Cell<usize>,
    /// Why reading was ended.
    error: RefCell<Option<JsonError>>,
}

impl Default for Limits {
    fn default() -> Self {
        Self::new(MAX_ELEMENT_BYTES)
    }
}

impl Limits {
    fn new(max_bytes: usize) -> Self {
        Self { max_bytes, left: Cell::new(max_bytes), error: RefCell::default() }
    }

    fn read<'t, S: DeserializeSeed<'t>>(&self, text: &'t str, seed: S) -> Result<S::Value, JsonError> {
        let mut deserializer = Deserializer::from_str(text);
        let value = seed.deserialize(&mut deserializer).and_then(|value| deserializer.end().map(|()| value));
        value.map_err(|_| self.error.take().unwrap_or(JsonError::Syntax))
    }

    /// Accounts for memory.
    fn spend<E: Error>(&self, bytes: usize) -> Result<(), E> {
        match self.left.get().checked_sub(bytes) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => Err(self.end(JsonError::TooLarge("128 MiB of values"))),
        }
    }

    fn spent(&self) -> usize {
        self.max_bytes - self.left.get()
    }

    /// Ends reading.
    fn end<E: Error>(&self, error: JsonError) -> E {
        *self.error.borrow_mut() = Some(error);
        E::custom("")
    }
}

#[cfg(test)]
mod tests;
