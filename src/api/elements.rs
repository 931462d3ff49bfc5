//! The elements of a list, collected while it is read. One that cannot be read does not hide the others.

use super::envelope::ListKind;
use super::gap::{Gap, UnreadableDomains};
use super::json::{Element, ElementFields, Fields, JsonError};
use super::wire::{FromJson, ListedObject, binding, id};
use crate::secret::Redactor;

/// The elements of one array that have been read.
pub(super) struct Elements<T> {
    pub(super) items: Vec<T>,
    /// The number of elements.
    number: usize,
    /// The IDs of the elements that have one.
    ids: Vec<u64>,
    /// Records that unreadable elements are bound to.
    pub(super) unreadable: Vec<u64>,
    /// Whether an unreadable element may be bound to any record.
    pub(super) hides_bindings: bool,
    unreadable_domains: UnreadableDomains,
}

impl<T> Default for Elements<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            number: 0,
            ids: Vec::new(),
            unreadable: Vec::new(),
            hides_bindings: false,
            unreadable_domains: UnreadableDomains::default(),
        }
    }
}

impl<T: FromJson> Elements<T> {
    /// Adds the element at the start of a text. Returns the estimated memory that it takes, and where the comma or
    /// bracket after it is. `None` if it has to be added as an element.
    pub(super) fn add_first(
        &mut self,
        text: &str,
        max_depth: usize,
        redactor: &Redactor,
    ) -> Option<(usize, usize)> {
        let element = T::Fields::parse_first(text, T::Known::FIELDS, max_depth, redactor)?;
        self.number += 1;
        Some((self.add_fields(element.fields, element.bytes), element.end))
    }

    /// Adds an element. Returns the estimated memory that it takes.
    pub(super) fn add(&mut self, element: Element<'_>, redactor: &Redactor) -> Result<usize, JsonError> {
        self.number += 1;
        let parsed = match element {
            Element::Text(text) => T::Fields::parse(text, T::Known::FIELDS, redactor),
            Element::TooLarge => Ok((None, 0)),
        };
        let (fields, bytes) = match parsed {
            Err(JsonError::TooLarge(_)) => (None, 0),
            parsed => parsed?,
        };
        let Some(fields) = fields else {
            self.add_unreadable(None);
            return Ok(bytes);
        };
        Ok(self.add_fields(fields, bytes))
    }

    fn add_fields(&mut self, fields: T::Fields, bytes: usize) -> usize {
        self.ids.extend(fields.field("id").and_then(id));
        match T::from_element(fields) {
            Ok(item) => {
                self.items.push(item);
                size_of::<T>() + bytes
            }
            Err(fields) => {
                self.add_unreadable(Some(&fields));
                bytes
            }
        }
    }

    fn add_unreadable(&mut self, fields: Option<&dyn Fields>) {
        match fields.map(binding) {
            Some(Ok(record)) => self.unreadable.extend(record),
            Some(Err(_)) | None => self.hides_bindings = true,
        }
        self.unreadable_domains.add(fields);
    }

    /// Whether there are elements of which none can be read.
    pub(super) fn are_unreadable(&self) -> bool {
        self.items.is_empty() && self.number > 0
    }

    /// The number of elements, counting those with the same `id` once: a page may have been sent twice.
    pub(super) fn count_distinct(&mut self) -> usize {
        let with_id = self.ids.len();
        self.ids.sort_unstable();
        self.ids.dedup();
        self.number - (with_id - self.ids.len())
    }

    /// The gap that unreadable elements leave; `None` if there are none.
    pub(super) fn gap(&mut self, kind: ListKind) -> Option<Gap> {
        let number = self.number - self.items.len();
        let domains = std::mem::take(&mut self.unreadable_domains);
        (number > 0).then_some(Gap::Unreadable { kind, number, domains })
    }
}
