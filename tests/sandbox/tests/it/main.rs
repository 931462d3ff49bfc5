//! The sandbox as a program, over HTTP: a test for each sentence of `edge-api.md`, sections 2 to 5 and 7, and
//! for what `design.md` promises of the sandbox. The name or the comment of a test says which sentence.
#![allow(
    clippy::doc_markdown,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, and quotes the document as it is"
)]

mod auth;
mod certs;
mod edge;
mod faults;
mod guard;
mod kills;
mod quirks;
mod sites;
mod states;
mod storage;
mod support;
mod upload;
