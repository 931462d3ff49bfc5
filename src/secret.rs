//! Secrets: the API key and private keys.
//!
//! A `Secret` has no `Display`, an empty `Debug`, and is zeroized on drop. The `Redactor` withholds texts from outside
//! that repeat a secret, because a service may echo what it was sent.

mod decode;
mod redactor;

use std::fmt;

use zeroize::Zeroizing;

pub use self::redactor::{Redactor, WITHHELD};

/// Text that may only be sent to the service or written to a key file, never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The secret itself, for the code that sends or writes it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
