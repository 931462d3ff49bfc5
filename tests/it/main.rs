//! Tests of the hook as a program: the real binary, in an emptied environment, against the real sandbox.
//!
//! A file for each noun. What needs no process is tested beside its code in `src`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_raw_string_hashes,
    missing_docs,
    reason = "a test fails by panicking, and snapshots are written by a program"
)]

mod harness;

mod canary;
mod checks;
mod cli;
mod clients;
mod deploy;
mod exit_codes;
mod faults;
mod limbo;
mod readme;
mod settings;
mod tidy;
