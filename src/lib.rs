//! The modules of the `edgecert` program, as a library for its own binary, tests, fuzz targets and measurements. It
//! promises no stable API.

#![allow(missing_docs, reason = "none of it is public outside this repository")]

pub mod api;
pub mod bundle;
pub mod cert;
pub mod check;
pub mod cli;
mod clock;
pub mod cmd;
pub mod context;
mod deploy;
mod der;
pub mod dns;
pub mod env;
mod error;
mod fields;
mod file;
pub mod hint;
mod inventory;
pub mod key;
mod kubernetes;
mod leaf;
pub mod names;
pub mod notify;
mod outcome;
pub mod pem;
mod plan;
mod progress;
pub mod report;
mod runtime;
pub mod secret;
mod settings;
mod sightings;
mod source;
mod state;
mod sync;
pub mod text;
mod trust;
pub mod ui;
mod verify;
