//! Reports how `deploy` and `sync` ended, because an ACME client may hide it: certbot drops the exit code, acmed the
//! output.
//!
//! The system log receives failures and deployments, the `on_failure` program the report of a failed run, and the
//! heartbeat URL a call after each `sync`. Nothing here changes the exit code.

mod heartbeat;
mod on_failure;
mod syslog;

use std::sync::atomic::{AtomicBool, Ordering};

use crate::context::Context;
use crate::error::ErrorKind;
use crate::report::Report;

pub(crate) use heartbeat::send_heartbeat;
use syslog::LogEntry;

/// Reports the result of a run: failures and deployments that changed something to the system log, and failures to the
/// `on_failure` program, whose output is printed. A usage error does not count, because the user sees it. An error is the
/// text of a warning.
pub fn report(report: &Report, context: &Context, print: &dyn Fn(&str)) -> Result<(), String> {
    if report.exit_code() == ErrorKind::Usage.exit_code() { Ok(()) } else { send(report, context, print) }
}

/// Reports a panic like any failure. If `sync` panics, its heartbeat is sent, too, because its timer still runs.
pub fn report_panic(report: &Report, context: &Context, print: &dyn Fn(&str)) {
    // A second panic, in this function, would call it again.
    static IS_REPORTED: AtomicBool = AtomicBool::new(false);
    if IS_REPORTED.swap(true, Ordering::Relaxed) {
        return;
    }
    // Reading it now could wait for this very thread.
    if !context.has_read_configuration() {
        return syslog::write(&syslog::entries(report));
    }
    if report.command() == "sync" {
        let _ = send_heartbeat(report, context);
    }
    let _ = send(report, context, print);
}

/// Writes a warning about a run to the system log.
pub fn log_warning(command: &str, warning: &str) {
    syslog::write(&[LogEntry::warning(command, warning.to_owned())]);
}

/// Reports a result like [`report`], also a usage error.
pub fn send(report: &Report, context: &Context, print: &dyn Fn(&str)) -> Result<(), String> {
    // Before the program runs, which may take long.
    syslog::write(&syslog::entries(report));
    match &context.configuration().on_failure {
        Some(program) if report.exit_code() != 0 => on_failure::run(program, report, &context.env, print),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use crate::report::Style;

    /// A thread that has panicked while it read the configuration does not read it again.
    #[test]
    fn panic_does_not_read_the_configuration() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config.toml");
        std::fs::write(&file, "").unwrap();
        let context = Context::new(Env::default(), Some(file), Style::PLAIN);
        report_panic(&Report::internal_error("sync", "x"), &context, &|_| ());
        assert!(!context.has_read_configuration());
    }
}
