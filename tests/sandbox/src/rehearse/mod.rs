//! The rehearsal: the real hook against a service of its own, called as certbot calls it, with every step told
//! so that a stranger sees what the product does. What is true afterwards is read from the service and from the
//! edge, never from the hook's own words.
//!
//! A step is a function in `steps`; [`STEPS`] is their order.

mod hook;
mod lineage;
mod steps;

use std::path::Path;

use tempfile::TempDir;

use crate::{Authority, Error, Options, Sandbox};
pub use hook::Hook;
use lineage::Lineage;

/// A line of the story, for whoever prints it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A step begins.
    Step(String),
    /// What happens and why.
    Say(String),
    /// What the hook is called with, or printed.
    Quote(String),
    /// Something is as it should be.
    Good(String),
    /// Something is not.
    Bad(String),
}

/// What a step works with.
struct Stage<'a> {
    sandbox: Sandbox,
    hook: &'a Hook,
    lineage: Lineage,
    authority: Authority,
    files: TempDir,
    /// The number of the record that the first deployment made.
    record: Option<i64>,
    tell: &'a mut dyn FnMut(Line),
    failed: bool,
}

type Step = fn(&mut Stage<'_>) -> Result<(), Error>;

/// The steps in their order.
const STEPS: &[Step] =
    &[steps::first_deployment, steps::renewal, steps::stumbling_service, steps::failing_service];

/// Runs every step; true when each one did what it should. With `given`, the first deployment takes the
/// certificate of that directory.
pub fn rehearse(hook: &Hook, given: Option<&Path>, tell: &mut dyn FnMut(Line)) -> Result<bool, Error> {
    let files = tempfile::Builder::new().prefix("edgecert-rehearsal-").tempdir();
    let files = files.map_err(|source| Error::File { path: std::env::temp_dir(), source })?;
    let authority = Authority::new("edgecert rehearsal")?;
    let lineage = match given {
        Some(directory) => Lineage::given(directory)?,
        None => Lineage::create(files.path(), &authority, &["shop.example", "*.shop.example"])?,
    };
    let sandbox = Sandbox::start(Options { tls: true, ..Options::default() })?;
    let mut stage = Stage { sandbox, hook, lineage, authority, files, record: None, tell, failed: false };
    steps::open(&mut stage);
    for step in STEPS {
        step(&mut stage)?;
        if stage.failed {
            break;
        }
    }
    Ok(!stage.failed)
}

impl Stage<'_> {
    fn step(&mut self, title: &str) {
        (self.tell)(Line::Step(title.to_owned()));
    }

    fn say(&mut self, text: impl Into<String>) {
        (self.tell)(Line::Say(text.into()));
    }

    fn quote(&mut self, text: impl Into<String>) {
        (self.tell)(Line::Quote(text.into()));
    }

    /// Tells whether something is as it should be; `found` is told only when it is not.
    fn expect(&mut self, holds: bool, wanted: &str, found: &str) {
        if holds {
            (self.tell)(Line::Good(wanted.to_owned()));
        } else {
            self.failed = true;
            (self.tell)(Line::Bad(format!("{wanted}; found: {found}")));
        }
    }
}
