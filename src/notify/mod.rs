//! Reports failures that the ACME client would swallow: certbot drops the exit code, acmed the output.
//!
//! The `on_failure` program receives the report, and the system log a line. The heartbeat also tells of successes.
//! Nothing here changes the exit code.

mod heartbeat;
mod on_failure;
mod system_log;

use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::Start;
use crate::context::Context;
use crate::error::{CommandError, ErrorKind};
use crate::report::AnyReport;
use crate::text::sanitize;

pub(crate) use heartbeat::send_heartbeat;
pub use on_failure::NotifyError;
pub use system_log::log_warning;

/// What to report about a run.
struct Notification {
    command: &'static str,
    exit_code: u8,
    /// The messages on one line, each preceded by a semicolon.
    error: String,
    /// The JSON report.
    report: String,
}

impl Notification {
    /// Describes how a command ended.
    fn new(report: &dyn AnyReport) -> Self {
        let error = messages(report.errors());
        Self { command: report.command(), exit_code: report.exit_code(), error, report: report.to_json() }
    }

    /// Whether the run failed. A usage error does not count, because the user sees it.
    fn is_failure(&self) -> bool {
        self.exit_code != 0 && self.exit_code != ErrorKind::Usage.exit_code()
    }

    /// The line for the system log.
    fn line(&self) -> String {
        let Self { command, exit_code, error, .. } = self;
        format!("{command} failed with exit code {exit_code}{error}")
    }
}

/// Joins the first messages; a log may truncate longer lines.
fn messages(errors: &[CommandError]) -> String {
    const MAX_MESSAGES: usize = 3;
    errors.iter().take(MAX_MESSAGES).flat_map(|error| ["; ".to_owned(), sanitize(error.message())]).collect()
}

/// Reports a failure to the system log and to the `on_failure` program. Does nothing after a success.
pub fn report_failure(report: &dyn AnyReport, context: &Context) -> Result<(), NotifyError> {
    let notification = Notification::new(report);
    if notification.is_failure() { send(&notification, context) } else { Ok(()) }
}

/// Reports a panic like any failure. If `sync` panics, its heartbeat is sent, too: the host is alive.
pub fn report_panic(report: &dyn AnyReport, context: &Context) {
    // A second panic, in this function, would call it again.
    static IS_REPORTED: AtomicBool = AtomicBool::new(false);
    if IS_REPORTED.swap(true, Ordering::Relaxed) {
        return;
    }
    if report.command() == "sync" {
        let _ = send_heartbeat(report, Start::now().moment(), context);
    }
    let _ = report_failure(report, context);
}

/// Reports the usage error of a hook, unless the user sees it on a terminal.
pub fn report_usage_error(report: &dyn AnyReport, context: &Context) -> Result<(), NotifyError> {
    if io::stderr().is_terminal() { Ok(()) } else { send(&Notification::new(report), context) }
}

fn send(notification: &Notification, context: &Context) -> Result<(), NotifyError> {
    // First, because the program may take long.
    system_log::log(system_log::ERROR, &notification.line());
    let Some(program) = context.on_failure() else { return Ok(()) };
    on_failure::run(program, notification, &context.env)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Diagnostic;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Untrusted(&'static str);

    impl Diagnostic for Untrusted {
        fn kind(&self) -> ErrorKind {
            ErrorKind::Temporary
        }
    }

    #[test]
    fn log_entry_is_one_line() {
        let errors = [Untrusted("a\nb\u{1b}[2Jc").into()];
        let notification =
            Notification { command: "sync", exit_code: 75, error: messages(&errors), report: String::new() };
        assert_eq!(notification.line(), "sync failed with exit code 75; a b [2Jc");
    }
}
