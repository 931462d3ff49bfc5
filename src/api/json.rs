//! Reads JSON from the service within limits: a hostile or broken response cannot exhaust memory or the stack, and
//! objects that contradict themselves are not used.
//!
//! A list is read twice: without most of its elements, to find it in its wrapper, and then element by element, so
//! that it is never in memory at once.

mod value;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Deserializer, Value};

use self::value::ValueSeed;

/// Maximum nesting of arrays and objects, a little below the limit of `serde_json`.
const MAX_DEPTH: usize = 100;

/// Maximum estimated memory of a value.
const MAX_VALUE_BYTES: usize = 32 << 20;

/// Why a response cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum JsonError {
    #[error("it is not JSON")]
    Syntax,
    #[error("it is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    /// The limit that it exceeds, such as `32 MiB`.
    #[error("it holds more than {0}")]
    TooLarge(&'static str),
    /// The outermost object has a field twice. A nested object that does is replaced by this message.
    #[error("the field `{0}` occurs twice with different values")]
    Ambiguous(String),
}

/// Parses JSON text. An object that has a field twice with different values is replaced by a message, because
/// programs differ in which value they use.
pub(super) fn parse(text: &str) -> Result<Value, JsonError> {
    let limits = Limits::default();
    limits.read(text, ValueSeed { limits: &limits, depth: 0, is_outline: false })
}

/// Parses JSON text, but keeps only the first elements of arrays that are not elements themselves.
pub(super) fn outline(text: &str) -> Result<Value, JsonError> {
    let limits = Limits::default();
    limits.read(text, ValueSeed { limits: &limits, depth: 0, is_outline: true })
}

/// The fields that lead to `target`, a value in an outline.
pub(super) fn path_of(outline: &Value, target: &Value) -> Option<Vec<String>> {
    if std::ptr::eq(outline, target) {
        return Some(Vec::new());
    }
    outline.as_object()?.iter().find_map(|(name, value)| {
        let mut path = path_of(value, target)?;
        path.insert(0, name.clone());
        Some(path)
    })
}

/// Parses the elements of the array at `path` one by one. `visit` also gets the element's estimated memory.
pub(super) fn for_each_element(
    text: &str,
    path: &[String],
    visit: &mut dyn FnMut(Value, usize) -> Result<(), JsonError>,
) -> Result<(), JsonError> {
    let limits = Limits::default();
    limits.read(text, ElementsSeed { limits: &limits, path, visit })
}

/// The limits of one pass over a text.
struct Limits {
    /// Memory that the value may still take.
    left: Cell<usize>,
    /// Why the pass was ended.
    error: RefCell<Option<JsonError>>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { left: Cell::new(MAX_VALUE_BYTES), error: RefCell::default() }
    }
}

impl Limits {
    fn read<'t, S: DeserializeSeed<'t>>(&self, text: &'t str, seed: S) -> Result<S::Value, JsonError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
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
            None => Err(self.end(JsonError::TooLarge("32 MiB of values"))),
        }
    }

    /// Ends the pass.
    fn end<E: Error>(&self, error: JsonError) -> E {
        *self.error.borrow_mut() = Some(error);
        E::custom("")
    }
}

/// Finds an array and visits its elements.
struct ElementsSeed<'l> {
    limits: &'l Limits,
    path: &'l [String],
    visit: &'l mut dyn FnMut(Value, usize) -> Result<(), JsonError>,
}

impl<'de> DeserializeSeed<'de> for ElementsSeed<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ElementsSeed<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list at this path")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let Some((first, path)) = self.path.split_first() else { return Err(Error::custom("")) };
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            if name == *first {
                fields.next_value_seed(ElementsSeed { path, visit: self.visit, ..self })?;
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let element = ValueSeed { limits: self.limits, depth: 1, is_outline: false };
        loop {
            self.limits.left.set(MAX_VALUE_BYTES);
            let Some(value) = elements.next_element_seed(element)? else { return Ok(()) };
            let bytes = MAX_VALUE_BYTES - self.limits.left.get();
            (self.visit)(value, bytes).map_err(|error| self.limits.end::<A::Error>(error))?;
        }
    }
}

#[cfg(test)]
mod tests;
