//! Builds a value, accounts for its memory, and replaces objects that contradict themselves.

use std::fmt;

use edgecert_json::{FieldText, MAX_DEPTH};
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{JsonError, Limits};
use crate::text::sanitize;

/// Memory of a value in an array, which may have grown to twice its length.
const ELEMENT_BYTES: usize = 2 * size_of::<Value>();
/// Memory of an object with one field: a node of a B-tree has room for eleven.
const OBJECT_BYTES: usize = 11 * (size_of::<String>() + size_of::<Value>()) + 16;
/// Memory of a further field, in nodes that are half full.
const FIELD_BYTES: usize = OBJECT_BYTES / 5;

/// Memory of a text.
fn text_bytes(text: &str) -> usize {
    text.len().max(16) + 16
}

/// Builds a value.
#[derive(Clone, Copy)]
pub(super) struct ValueSeed<'l> {
    pub(super) limits: &'l Limits,
    /// Number of arrays and objects around the value.
    pub(super) depth: usize,
}

impl ValueSeed<'_> {
    /// Makes the value of a field.
    pub(super) fn read(self, field: FieldText<'_>) -> Result<Value, JsonError> {
        Ok(match field {
            FieldText::Null => Value::Null,
            FieldText::Bool(value) => Value::Bool(value),
            FieldText::Integer(number) => Value::Number(number.into()),
            FieldText::Plain(text) => {
                self.visit_str::<serde_json::Error>(text).map_err(|_| JsonError::Syntax)?
            }
            FieldText::Json(text) => self.limits.read(text, self)?,
        })
    }

    fn nested<E: Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(self.limits.end(JsonError::TooDeep));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number.into()))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(Number::from_f64(number).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        self.limits.spend(text_bytes(text))?;
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let element = self.nested()?;
        let mut array = Vec::new();
        while let Some(value) = elements.next_element_seed(element)? {
            self.limits.spend(ELEMENT_BYTES)?;
            array.push(value);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let field = self.nested()?;
        let (mut object, mut ambiguous) = (Map::new(), None);
        while let Some(name) = fields.next_key::<String>()? {
            let node = if object.is_empty() { OBJECT_BYTES } else { FIELD_BYTES };
            self.limits.spend(node + text_bytes(&name))?;
            let value = fields.next_value_seed(field)?;
            match object.get(&name) {
                Some(other) if is_same_scalar(other, &value) => {}
                Some(_) => ambiguous = Some(JsonError::Ambiguous(sanitize(&name))),
                None => drop(object.insert(name, value)),
            }
        }
        match ambiguous {
            None => Ok(Value::Object(object)),
            Some(error) if self.depth == 0 => Err(self.limits.end(error)),
            Some(error) => Ok(Value::String(error.to_string())),
        }
    }
}

/// Whether two values of one field do not contradict each other.
pub(super) fn is_same_scalar(one: &Value, other: &Value) -> bool {
    one == other && !one.is_array() && !one.is_object()
}
