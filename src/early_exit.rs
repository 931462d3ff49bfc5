//! Exits before the end of a run: after a panic, when `status --check` exceeds its time limit, or when a container is
//! stopped. Like `main.rs`, this is part of the program, not of the library.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use edgecert::cmd;
use edgecert::context::Context;
use edgecert::notify;
use edgecert::report::Report;
use edgecert::text::count;
use edgecert::ui::Ui;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_shutdown;

/// Exits as UNKNOWN after this time, unless `status --check` prints its verdict first; at once if that cannot be ensured.
pub(super) fn exit_after(limit: Duration, ui: Ui) {
    let end_check = move || {
        std::thread::sleep(limit);
        let seconds = count(usize::try_from(limit.as_secs()).unwrap_or(usize::MAX), "second");
        exit(&cmd::failed_check(&format!("timed out after {seconds}"), ""), ui, None);
    };
    if std::thread::Builder::new().spawn(end_check).is_err() {
        let reason = "cannot limit the time of this check: no thread can be started";
        exit(&cmd::failed_check(reason, ""), ui, None);
    }
}

/// Reports a panic as an internal error and exits with code 70, or with 3 if a monitoring system runs this, instead of
/// dying by a signal. The panic message is not shown, because the values in it may be secret. With a context, the
/// failure also goes to [`notify`].
pub(super) fn exit_on_panic(
    ui: Ui,
    command: &'static str,
    is_monitoring: bool,
    context: Option<&'static Context>,
) {
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let report = if is_monitoring {
            cmd::failed_check("internal error", &format!(": panic at {place}"))
        } else {
            Report::internal_error(command, &place)
        };
        exit(&report, ui, context);
    }));
}

/// Prints a report, passes it on to [`notify`] if there is a context, and exits.
#[expect(clippy::exit, reason = "other threads may wait for ever, and an abort would have another exit code")]
fn exit(report: &Report, ui: Ui, context: Option<&Context>) -> ! {
    ui.claim_output();
    let _ = ui.print_report(report);
    if let Some(context) = context {
        notify::report_panic(report, context, &|text| ui.print_to_stderr(text));
    }
    std::process::exit(i32::from(report.exit_code()))
}

/// Makes SIGTERM and SIGINT end the first process of a container, which Linux does not do by itself. The exit code is
/// the one that shells report for these signals. What the run has begun is recorded before each request, as for any
/// other process that a signal ends.
pub(super) fn exit_on_signals_as_first_process() {
    const FIRST_PROCESS: u32 = 1;
    if std::process::id() == FIRST_PROCESS {
        for signal in [SIGINT, SIGTERM] {
            let _ = register_conditional_shutdown(signal, 128 + signal, Arc::new(AtomicBool::new(true)));
        }
    }
}
