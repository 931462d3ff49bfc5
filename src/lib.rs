//! The modules of the `edgecert` program, as a library for its own binary, tests, fuzz targets and measurements. It
//! promises no stable API.

#[doc(hidden)]
pub mod api;
#[doc(hidden)]
pub mod bundle;
#[doc(hidden)]
pub mod cert;
#[doc(hidden)]
pub mod check;
#[doc(hidden)]
pub mod cli;
mod clock;
#[doc(hidden)]
pub mod cmd;
#[doc(hidden)]
pub mod context;
mod deploy;
mod der;
#[doc(hidden)]
pub mod dns;
#[doc(hidden)]
pub mod env;
mod error;
mod fields;
mod file;
pub mod hint;
mod inventory;
#[doc(hidden)]
pub mod key;
mod kubernetes;
mod leaf;
#[doc(hidden)]
pub mod names;
#[doc(hidden)]
pub mod notify;
mod outcome;
#[doc(hidden)]
pub mod pem;
mod plan;
mod progress;
#[doc(hidden)]
pub mod report;
mod runtime;
#[doc(hidden)]
pub mod secret;
mod settings;
mod sightings;
mod source;
mod state;
mod sync;
#[doc(hidden)]
pub mod text;
mod trust;
#[doc(hidden)]
pub mod ui;
mod verify;
