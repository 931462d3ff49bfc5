//! A file for each command. Commands fill a report and print nothing.

pub(crate) mod certs;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod deploy;
pub(crate) mod doctor;
mod service;
pub(crate) mod sites;
pub(crate) mod status;
pub(crate) mod sync;
