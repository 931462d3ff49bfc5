//! The modules of the `edgecert` program, as a library for its own binary, tests, fuzz targets and benchmarks. It promises no
//! stable API.

#[doc(hidden)]
pub mod api;
#[doc(hidden)]
pub mod app;
#[doc(hidden)]
pub mod bundle;
#[doc(hidden)]
pub mod cert;
#[doc(hidden)]
pub mod check;
mod cli;
mod clock;
mod cmd;
mod context;
mod deploy;
mod env;
mod error;
mod fields;
mod file;
mod inventory;
#[doc(hidden)]
pub mod key;
#[doc(hidden)]
pub mod names;
mod notify;
mod outcome;
#[doc(hidden)]
pub mod pem;
mod plan;
mod report;
#[doc(hidden)]
pub mod secret;
mod settings;
mod source;
mod state;
mod sync;
#[doc(hidden)]
pub mod text;
mod trust;
mod verify;
