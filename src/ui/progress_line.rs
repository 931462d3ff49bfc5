//! A line on standard error that shows what a run is doing. It is erased before anything else is written.

use std::io;
use std::mem::discriminant;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use super::{width, write};
use crate::clock::Start;
use crate::progress::{Phase, Progress};
use crate::text::count;

/// Columns of a terminal that does not say how many it has.
const USUAL_WIDTH: usize = 80;

/// Time between two frames of the spinner.
const TICK: Duration = Duration::from_millis(120);

/// Erases the line that the cursor is on.
const ERASE: &str = "\r\u{1b}[2K";

/// The line, while a run shows one.
static LINE: Mutex<Option<Line>> = Mutex::new(None);

/// Starts the thread that draws the line.
static TICKER: Once = Once::new();

/// Shows the progress of a run on a terminal.
pub(super) struct ProgressLine {
    pub(super) is_shown: bool,
    pub(super) unicode: bool,
}

struct Line {
    phase: Phase,
    since: Start,
    unicode: bool,
}

impl Progress for ProgressLine {
    /// Shows a line. The elapsed time restarts with each phase; a push and its verification are one wait.
    fn enter(&self, phase: Phase) {
        if !self.is_shown || matches!(phase, Phase::Lineages { total: 0..=1, .. }) {
            return;
        }
        let is_wait = |phase| matches!(phase, Phase::Pushing { .. } | Phase::Verifying { .. });
        let is_same =
            |shown| discriminant(&shown) == discriminant(&phase) || (is_wait(shown) && is_wait(phase));
        let mut shown = line();
        let since = shown.as_ref().filter(|line| is_same(line.phase)).map(|line| line.since);
        shown.insert(Line { phase, since: since.unwrap_or_else(Start::now), unicode: self.unicode }).draw();
        // Without a thread, the line stands still.
        TICKER.call_once(|| _ = thread::Builder::new().spawn(tick));
    }
}

impl Line {
    fn draw(&self) {
        let width = width(&io::stderr()).unwrap_or(USUAL_WIDTH);
        // The last column stays free: some terminals wrap after it. All characters are one column wide.
        let text: String = self.text().chars().take(width - 1).collect();
        let _ = write(io::stderr(), &format!("{ERASE}{text}"));
    }

    fn text(&self) -> String {
        let frames = if self.unicode { "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" } else { "|/-\\" };
        let (elapsed, seconds) = (self.since.elapsed().as_millis(), self.since.elapsed().as_secs());
        let frame = usize::try_from(elapsed / TICK.as_millis()).unwrap_or_default();
        let spinner = frames.chars().cycle().nth(frame).unwrap_or_default();
        let text = match self.phase {
            Phase::Checking => "checking  certificate and key".to_owned(),
            Phase::Reading => "reading   sites, certificates and edges".to_owned(),
            Phase::Uploading { uploads } => format!("uploading  {}", count(uploads, "certificate")),
            Phase::Pushing { limit } => {
                format!("waiting   edge push, {seconds} of {} s", limit.as_secs())
            }
            Phase::Verifying { served, sites, limit } => {
                let (sites, limit) = (count(sites, "site"), limit.as_secs());
                format!("waiting   {served} of {sites} served, {seconds} of {limit} s")
            }
            Phase::Lineages { done, total } => format!("{done} of {total} lineages after {seconds} s"),
        };
        format!("  {spinner} {text}")
    }
}

/// Draws the line again and again, until the process exits.
fn tick() {
    loop {
        thread::sleep(TICK);
        if let Some(line) = &*line() {
            line.draw();
        }
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
    let shown = line();
    let erased = if shown.is_some() { ERASE } else { "" };
    let _ = write(io::stderr(), &format!("{erased}{text}"));
    if let Some(line) = &*shown {
        line.draw();
    }
}

fn line() -> MutexGuard<'static, Option<Line>> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}
