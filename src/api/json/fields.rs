//! The objects in a list, of which only the needed fields are kept.

use std::fmt;
use std::marker::PhantomData;

use edgecert_json::scan_fields;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::value::{ValueSeed, is_same_scalar};
use super::{JsonError, Limits};
use crate::secret::Redactor;

/// An object whose fields can be looked up.
pub(crate) trait Fields {
    fn field(&self, name: &str) -> Option<&Value>;
}

/// What is kept of an object in a list.
pub(crate) trait ElementFields: Fields + Sized {
    /// Parses an element and removes secrets. `needed` names the fields that are not dropped. `None` if it is not an
    /// object, or contradicts itself. Also returns the estimated memory of the values.
    fn parse(
        text: &str,
        needed: &'static [&'static str],
        redactor: &Redactor,
    ) -> Result<(Option<Self>, usize), JsonError>;

    /// Parses the object at the start of a text in the same way if it has a usual form and at most `max_depth` levels.
    fn parse_first(
        _text: &str,
        _needed: &'static [&'static str],
        _max_depth: usize,
        _redactor: &Redactor,
    ) -> Option<FirstElement<Self>> {
        None
    }
}

/// The object at the start of a text.
pub(crate) struct FirstElement<T> {
    pub(crate) fields: T,
    /// Estimated memory of the values.
    pub(crate) bytes: usize,
    /// Where the comma or bracket after it is.
    pub(crate) end: usize,
}

/// An object without the fields that are not needed.
pub(crate) struct KnownFields(Vec<(&'static str, Value)>);

impl Fields for Map<String, Value> {
    fn field(&self, name: &str) -> Option<&Value> {
        self.get(name)
    }
}

impl Fields for KnownFields {
    fn field(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }
}

/// Keeps all fields.
impl ElementFields for Map<String, Value> {
    fn parse(
        text: &str,
        _: &'static [&'static str],
        redactor: &Redactor,
    ) -> Result<(Option<Self>, usize), JsonError> {
        let limits = Limits::default();
        let mut value = limits.read(text, ValueSeed { limits: &limits, depth: 1 })?;
        redactor.clean_json(&mut value);
        let fields = if let Value::Object(fields) = value { Some(fields) } else { None };
        Ok((fields, limits.spent()))
    }
}

impl ElementFields for KnownFields {
    fn parse(
        text: &str,
        needed: &'static [&'static str],
        redactor: &Redactor,
    ) -> Result<(Option<Self>, usize), JsonError> {
        let limits = Limits::default();
        if !text.trim_ascii_start().starts_with('{') {
            limits.read(text, PhantomData::<IgnoredAny>)?;
            return Ok((None, 0));
        }
        let mut fields = limits.read(text, KnownFieldsSeed { needed, limits: &limits })?;
        if let Some(fields) = &mut fields {
            fields.clean(redactor);
        }
        Ok((fields, limits.spent()))
    }

    fn parse_first(
        text: &str,
        needed: &'static [&'static str],
        max_depth: usize,
        redactor: &Redactor,
    ) -> Option<FirstElement<Self>> {
        let limits = Limits::default();
        let mut fields = Self(Vec::with_capacity(needed.len()));
        let mut is_readable = true;
        let end = scan_fields(text, needed, max_depth, &mut |at, value| {
            let value = ValueSeed { limits: &limits, depth: 2 }.read(value);
            match (needed.get(at), value) {
                (Some(name), Ok(value)) => fields.0.push((name, value)),
                _ => is_readable = false,
            }
        })?;
        fields.clean(redactor);
        is_readable.then_some(FirstElement { fields, bytes: limits.spent(), end })
    }
}

impl KnownFields {
    /// Removes secrets.
    fn clean(&mut self, redactor: &Redactor) {
        self.0.iter_mut().for_each(|(_, value)| redactor.clean_json(value));
    }
}

/// Reads an object; `None` if it has a needed field twice with different values.
struct KnownFieldsSeed<'l> {
    needed: &'static [&'static str],
    limits: &'l Limits,
}

impl<'de> DeserializeSeed<'de> for KnownFieldsSeed<'_> {
    type Value = Option<KnownFields>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for KnownFieldsSeed<'_> {
    type Value = Option<KnownFields>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut known: Vec<(&'static str, Value)> = Vec::with_capacity(self.needed.len());
        let mut is_ambiguous = false;
        while let Some(name) = fields.next_key_seed(NameSeed(self.needed))? {
            let Some(name) = name else {
                fields.next_value::<IgnoredAny>()?;
                continue;
            };
            let value = fields.next_value_seed(ValueSeed { limits: self.limits, depth: 2 })?;
            match known.iter().find(|(other, _)| *other == name) {
                None => known.push((name, value)),
                Some((_, other)) => is_ambiguous |= !is_same_scalar(other, &value),
            }
        }
        Ok((!is_ambiguous).then_some(KnownFields(known)))
    }
}

/// Reads the name of a field; `None` if the field is not needed.
struct NameSeed(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = Option<&'static str>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NameSeed {
    type Value = Option<&'static str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().find(|needed| **needed == name).copied())
    }
}
