//! A line on standard error that shows what a run is doing. It is erased before anything else is written.

use std::io;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

use super::write;
use crate::clock::Start;
use crate::progress::{Phase, Progress};
use crate::text::count;

/// Fewest columns for a progress line.
pub(super) const MIN_WIDTH: usize = 40;

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
    content: Content,
    since: Start,
    /// Number of the spinner's frame.
    frame: usize,
    unicode: bool,
}

enum Content {
    /// What a deployment is doing.
    Step(String),
    /// What it waits for, and for how long at most.
    Wait(String, Duration),
    Lineages {
        done: usize,
        total: usize,
    },
}

impl ProgressLine {
    /// Shows a line. The elapsed time restarts with a wait, and with work on several lineages.
    fn show(&self, content: Content) {
        if !self.is_shown {
            return;
        }
        let mut shown = line();
        let since = match (&content, &*shown) {
            (Content::Wait(..), Some(Line { content: Content::Wait(..), since, .. })) => *since,
            _ => Start::now(),
        };
        let frame = shown.as_ref().map_or(0, |line| line.frame);
        shown.insert(Line { content, since, frame, unicode: self.unicode }).draw();
        drop(shown);
        // Without a thread, the line stands still.
        TICKER.call_once(|| _ = thread::Builder::new().spawn(tick));
    }
}

impl Progress for ProgressLine {
    fn enter(&self, phase: Phase) {
        let step = |word: &str, text: &str| format!("{word:<8}  {text}");
        self.show(match phase {
            Phase::Checking => Content::Step(step("checking", "certificate and key")),
            Phase::Reading => Content::Step(step("reading", "sites, certificates and edges")),
            Phase::Uploading { uploads } => Content::Step(step("uploading", &count(uploads, "certificate"))),
            Phase::Pushing { limit } => Content::Wait(step("waiting", "edge push"), limit),
            Phase::Verifying { served, sites, limit } => {
                let served = format!("{served} of {} served", count(sites, "site"));
                Content::Wait(step("waiting", &served), limit)
            }
        });
    }

    fn start(&self, lineages: usize) {
        if lineages > 1 {
            self.show(Content::Lineages { done: 0, total: lineages });
        }
    }

    fn advance(&self) {
        if let Some(Line { content: Content::Lineages { done, .. }, .. }) = &mut *line() {
            *done += 1;
        }
    }
}

impl Line {
    fn draw(&self) {
        let size = rustix::termios::tcgetwinsize(io::stderr());
        let width = size.map_or(0, |size| usize::from(size.ws_col)).max(MIN_WIDTH);
        // The last column stays free: some terminals wrap after it. All characters are one column wide.
        let text: String = self.text().chars().take(width - 1).collect();
        let _ = write(io::stderr(), &format!("{ERASE}{text}"));
    }

    fn text(&self) -> String {
        let frames = if self.unicode { "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" } else { "|/-\\" };
        let spinner = frames.chars().cycle().nth(self.frame).unwrap_or_default();
        let seconds = self.since.elapsed().as_secs();
        match &self.content {
            Content::Step(text) => format!("  {spinner} {text}"),
            Content::Wait(text, limit) => format!("  {spinner} {text}, {seconds} of {} s", limit.as_secs()),
            Content::Lineages { done, total } => {
                format!("  {spinner} {done} of {total} lineages after {seconds} s")
            }
        }
    }
}

/// Draws the line again and again, until the process exits.
fn tick() {
    loop {
        thread::sleep(TICK);
        if let Some(line) = &mut *line() {
            line.frame = (line.frame + 1) % 20;
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
