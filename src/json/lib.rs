//! Splits JSON that arrives in pieces into the elements of its arrays, and finds the fields that are needed of them.
//!
//! Every byte of a long list passes through here, so this is a crate of its own, compiled for speed. It decides neither
//! what JSON is nor what the fields mean: [`Splitter`] only finds where elements end, and [`scan_fields`] leaves unusual
//! elements to a parser.

mod scanner;
mod splitter;

pub use self::scanner::{FieldText, scan_fields};
pub use self::splitter::{Element, Splitter, Visitor};

/// Maximum nesting of arrays and objects, a little below the limit of `serde_json`.
pub const MAX_DEPTH: usize = 100;

/// Why a response cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// It is not JSON.
    #[error("it is not JSON")]
    Syntax,
    /// It exceeds [`MAX_DEPTH`].
    #[error("it is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    /// The limit that it exceeds, such as `32 MiB`.
    #[error("it holds more than {0}")]
    TooLarge(&'static str),
    /// The outermost object has a field twice. A nested object that does is replaced by this message.
    #[error("the field `{0}` occurs twice with different values")]
    Ambiguous(String),
}
