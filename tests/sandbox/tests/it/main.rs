//! Tests of `edgecert-sandbox serve` over HTTP.
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
mod certs;
mod drift;
mod edge;
mod faults;
mod handshakes;
mod keys;
mod kills;
mod quirks;
mod readme;
mod request_log;
mod sites;
mod startup;
mod states;
mod storage;
mod support;
mod upload;
