//! A file for each command. Commands fill a report and print nothing.

pub(crate) mod check;
pub(crate) mod deploy;
mod journal;
