//! A line on standard error that says what a run is doing. It is erased before anything else is written.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::write;
use crate::progress::Phase;
use crate::text::count;

/// Erases the line that the cursor is on.
const ERASE: &str = "\r\u{1b}[2K";

/// The line, while a run shows one.
static LINE: Mutex<Option<String>> = Mutex::new(None);

/// Replaces the line.
pub(super) fn show(phase: Phase) {
    if !matches!(phase, Phase::Lineages { total: 0..=1, .. }) {
        let mut shown = line();
        let _ = write(io::stderr(), &format!("{ERASE}{}", shown.insert(text(phase))));
    }
}

/// Describes a phase in few words: a line that wraps could not be erased.
fn text(phase: Phase) -> String {
    match phase {
        Phase::Checking => "  checking  certificate and key".to_owned(),
        Phase::Reading => "  reading   sites, certificates and edges".to_owned(),
        Phase::Uploading { uploads } => format!("  uploading  {}", count(uploads, "certificate")),
        Phase::Pushing { limit } => format!("  waiting   edge push, up to {} s", limit.as_secs()),
        Phase::Verifying { served, sites, limit } => {
            let (sites, limit) = (count(sites, "site"), limit.as_secs());
            format!("  waiting   {served} of {sites} served, up to {limit} s")
        }
        Phase::Lineages { done, total } => format!("  {done} of {total} lineages"),
    }
}

/// Erases the line for good.
pub(super) fn erase() {
    if line().take().is_some() {
        let _ = write(io::stderr(), ERASE);
    }
}

/// Writes above the line.
pub(super) fn write_above(text: &str) {
    let _ = match &*line() {
        Some(shown) => write(io::stderr(), &format!("{ERASE}{text}{shown}")),
        None => write(io::stderr(), text),
    };
}

fn line() -> MutexGuard<'static, Option<String>> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}
