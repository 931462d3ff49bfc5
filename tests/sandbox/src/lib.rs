//! The edge acceleration service of `edge-api.md`, for rehearsal and tests: every endpoint, rule and state on
//! SQLite, asynchronous pushes, a TLS edge that serves what was pushed, fault injection, and quirks for what
//! the document leaves open. It shares no code with the hook, so that neither hides a mistake of the other.
//!
//! [`Sandbox`] has a blocking interface and runs its own thread; tests need no async runtime.

mod accept;
mod api;
mod app;
mod authority;
mod cert;
mod clock;
mod control;
mod digest;
mod drift;
mod edge;
mod error;
mod faults;
mod key;
mod names;
mod openapi;
mod options;
mod probe;
mod push;
mod quirks;
mod records;
mod rehearse;
mod request_log;
mod response;
mod sandbox;
mod server;
mod site_fields;
mod store;
mod transport;
mod validation;
mod world;

pub use authority::{Authority, IssuedCert};
pub use edge::address::{EdgeAddress, EdgeMode};
pub use edge::handshakes::{AddressHandshakes, Handshakes};
pub use error::Error;
pub use faults::{Fault, FaultAction};
pub use options::{Endpoints, Options};
pub use probe::{ProbeResult, probe};
pub use rehearse::{Event, Hook, Interrupt, SCENARIOS, Scenario, rehearse, set_times_back};
pub use request_log::RecordedRequest;
pub use sandbox::Sandbox;
pub use world::{Account, Cert, Package, Site, World};
