//! Lineages, accounts and state files in large numbers, and calls of the hook whose instructions are counted. Shared by the figures (`tests/figures`) and the tests.
//!
//! Number `n` is the lineage of `sN.example`, its site and its record.

mod account;
mod authority;
mod call;
pub mod der;
mod instructions;
mod lineage;
mod programs;
mod state;

pub use account::{site_json, write_listings};
pub use authority::{Authority, IssuedCert};
pub use call::Call;
pub use instructions::instructions;
pub use lineage::{Lineage, domain};
pub use programs::{find_program, run};
pub use state::StateTemplate;
