//! Types of settings that have no file of their own, and their flags.

use std::ffi::OsStr;
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, ValueEnum};
use serde::Serialize;

use crate::text::display_as_serialized;

/// A whole number of seconds, at least `MIN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Seconds<const MIN: u64 = 0>(u64);

impl<const MIN: u64> Seconds<MIN> {
    pub(crate) fn duration(self) -> Duration {
        Duration::from_secs(self.0)
    }
}

impl<const MIN: u64> FromStr for Seconds<MIN> {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.parse() {
            Ok(seconds) if seconds >= MIN => Ok(Self(seconds)),
            _ if MIN == 0 => Err("expected a whole number of seconds"),
            _ => Err("expected a whole number of seconds above 0"),
        }
    }
}

/// Whether TLS handshakes verify the result. The doc comments are the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verify {
    /// Verify; an unreachable edge is a warning
    Auto,
    /// Verify; an unreachable edge is a failure
    Require,
    /// Do not verify
    Off,
}

display_as_serialized!(Verify);

impl FromStr for Verify {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        ValueEnum::from_str(text, true).map_err(|_| "expected auto, require or off")
    }
}

/// Reads the words for a switch.
pub(super) fn parse_switch(text: &str) -> Result<bool, &'static str> {
    match &*text.to_ascii_lowercase() {
        "yes" | "true" | "on" | "1" => Ok(true),
        "no" | "false" | "off" | "0" => Ok(false),
        _ => Err("expected yes or no, true or false, on or off, 1 or 0"),
    }
}

/// The optional `name` of an upload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct RecordName(String);

impl RecordName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RecordName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_valid = !text.is_empty() && !text.chars().any(char::is_control);
        is_valid.then(|| Self(text.to_owned())).ok_or("expected text without control characters")
    }
}

/// Parser of a flag. Its errors do not repeat the value, which may be a misplaced secret.
#[derive(Clone)]
pub(crate) struct Quiet<T> {
    parse: fn(&str) -> Result<T, String>,
    /// The values that the help lists.
    choices: Vec<PossibleValue>,
}

/// Parses any text.
pub(crate) fn quiet<T: FromStr<Err: Display>>() -> Quiet<T> {
    let parse = |text: &str| text.parse().map_err(|reason: T::Err| reason.to_string());
    Quiet { parse, choices: Vec::new() }
}

/// Parses a mode of verification.
pub(super) fn verify() -> Quiet<Verify> {
    let choices = Verify::value_variants().iter().filter_map(ValueEnum::to_possible_value).collect();
    Quiet { choices, ..quiet() }
}

/// Parses the words for a switch.
pub(crate) fn switch() -> Quiet<bool> {
    let parse = |text: &str| parse_switch(text).map_err(str::to_owned);
    Quiet { parse, choices: ["yes", "no"].map(PossibleValue::new).into() }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Quiet<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        (self.parse)(value.to_str().unwrap_or_default().trim()).map_err(|reason| {
            let flag = arg.map(ToString::to_string).unwrap_or_default();
            let message = format!("invalid value for '{flag}': {reason}\n");
            clap::Error::raw(ErrorKind::ValueValidation, message).with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let is_listed = !self.choices.is_empty();
        is_listed.then(|| Box::new(self.choices.iter().cloned()) as Box<dyn Iterator<Item = PossibleValue>>)
    }
}
