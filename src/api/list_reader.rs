//! Reads a list while it arrives. Only what is known of its elements is kept.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::body::Body;
use super::elements::Elements;
use super::error::AttemptError;
use super::json::{Element, JsonError, Splitter, Utf8Decoder, Visitor};
use super::list::List;
use super::response::Response;
use super::wire::FromJson;
use crate::secret::Redactor;

/// Maximum number of elements.
const MAX_ELEMENTS: usize = 2_000_000;

/// Maximum estimated memory of what is kept of them.
const MAX_BYTES: usize = 256 << 20;

/// How much of a response is kept for messages, at least, unless it is shorter.
const START_BYTES: usize = 4 << 10;

/// Reads a list while it arrives.
pub(super) struct ListReader<T> {
    decoder: Utf8Decoder,
    splitter: Splitter,
    arrays: Arrays<T>,
    /// The start of the text, for messages about a response that is not JSON.
    start: String,
    result: Result<(), JsonError>,
    redactor: Arc<Redactor>,
}

/// The arrays of a response. Which one is the list is known only at its end; hardly any response has several.
struct Arrays<T> {
    elements: Vec<Elements<T>>,
    /// Number of their elements.
    number: usize,
    /// Estimated memory of their elements.
    bytes: usize,
    redactor: Arc<Redactor>,
}

impl<T: FromJson> ListReader<T> {
    fn new(redactor: Arc<Redactor>) -> Self {
        Self {
            decoder: Utf8Decoder::default(),
            splitter: Splitter::default(),
            arrays: Arrays { elements: Vec::new(), number: 0, bytes: 0, redactor: Arc::clone(&redactor) },
            start: String::new(),
            result: Ok(()),
            redactor,
        }
    }

    fn push(&mut self, chunk: &[u8]) -> ControlFlow<()> {
        let Self { decoder, splitter, arrays, start, result, .. } = self;
        decoder.decode(chunk, |text| {
            let missing = START_BYTES.saturating_sub(start.len());
            start.extend(text.chars().take(missing));
            if result.is_ok() {
                *result = splitter.push(text, arrays);
            }
        });
        match self.result {
            Ok(()) => ControlFlow::Continue(()),
            Err(JsonError::Syntax) if self.start.len() < START_BYTES => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn end(mut self, status: u16) -> Result<List<T>, AttemptError> {
        if self.result.is_ok() {
            let Self { decoder, splitter, arrays, .. } = &mut self;
            self.result = decoder.end(|text| splitter.push(text, arrays));
        }
        let (outline, paths) = self.splitter.end();
        let mut arrays = self.arrays.elements.into_iter();
        let elements_at = |path: &[String]| {
            let number = paths.iter().position(|other| other == path);
            number.and_then(|number| arrays.nth(number)).unwrap_or_default()
        };
        let body = match self.result {
            Ok(()) => Ok(outline),
            // It is not JSON either, and says more than the error.
            Err(JsonError::Syntax) => Ok(self.start),
            Err(error) => Err(error),
        };
        Response::new(status, body, self.redactor).read_list(elements_at)
    }
}

impl<T: FromJson> List<T> {
    /// Receives a list.
    pub(super) async fn receive(mut body: Body<'_>) -> Result<Self, AttemptError> {
        let mut reader = ListReader::new(Arc::clone(body.redactor));
        while let Some(chunk) = body.chunk().await? {
            if reader.push(&chunk).is_break() {
                break;
            }
        }
        reader.end(body.status())
    }

    /// Reads a response that arrives in these chunks.
    pub(super) fn read<'c>(
        chunks: impl IntoIterator<Item = &'c [u8]>,
        redactor: Arc<Redactor>,
    ) -> Result<Self, AttemptError> {
        let mut reader = ListReader::new(redactor);
        let _ = chunks.into_iter().try_for_each(|chunk| reader.push(chunk));
        reader.end(200)
    }
}

impl<T: FromJson> Visitor for Arrays<T> {
    fn read_first(&mut self, array: usize, text: &str, max_depth: usize) -> Result<Option<usize>, JsonError> {
        let (elements, redactor) = self.at(array);
        match elements.and_then(|elements| elements.add_first(text, max_depth, redactor)) {
            Some((bytes, end)) => self.count(bytes).map(|()| Some(end)),
            None => Ok(None),
        }
    }

    fn read(&mut self, array: usize, element: Element<'_>) -> Result<(), JsonError> {
        let (elements, redactor) = self.at(array);
        let Some(elements) = elements else { return Ok(()) };
        let bytes = elements.add(element, redactor)?;
        self.count(bytes)
    }
}

impl<T> Arrays<T> {
    /// The elements of an array, and the redactor for them.
    fn at(&mut self, array: usize) -> (Option<&mut Elements<T>>, &Redactor) {
        if self.elements.len() <= array {
            self.elements.resize_with(array + 1, Elements::default);
        }
        (self.elements.get_mut(array), &self.redactor)
    }

    /// Accounts for an element.
    fn count(&mut self, bytes: usize) -> Result<(), JsonError> {
        self.number += 1;
        self.bytes += bytes;
        match () {
            () if self.number > MAX_ELEMENTS => Err(JsonError::TooLarge("2,000,000 elements")),
            () if self.bytes > MAX_BYTES => Err(JsonError::TooLarge("256 MiB of values")),
            () => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
