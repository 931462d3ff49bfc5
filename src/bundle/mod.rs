//! Reads the files of a lineage into a leaf with its chain, and a private key.
//!
//! Repairs what is unambiguous (order, duplicates, blocks that do not belong) and reports each repair; what is ambiguous
//! is rejected. Whether the result may be deployed is decided by `check`.

mod chain;
mod defect;
mod files;
mod key;
mod load;
mod parse;

pub use self::chain::Chain;
pub use self::defect::Defect;
pub use self::files::{Files, MAX_BYTES};
pub use self::parse::Bundle;

pub(crate) use self::load::{leaf, load, load_chain, load_settled};
