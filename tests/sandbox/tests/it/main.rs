//! Tests of the sandbox: the service and its control port in process, the rest over sockets and in processes.
//!
//! They cover every sentence of `edge-api.md`, sections 2 to 5 and 7, and the sandbox's own features. A test quotes the
//! sentence that it checks. What the document does not show is the sandbox's choice.
#![allow(
    clippy::doc_markdown,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking and quote the document verbatim"
)]

mod addresses;
mod auth;
mod drift;
mod edge;
mod kills;
mod process;
mod quirks;
mod readme;
mod rehearse;
mod requests;
mod schemathesis;
mod seeds;
mod sites;
mod support;
mod upload;
