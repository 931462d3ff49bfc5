//! The `edgecert` program: parses the command line, runs one command, prints its report, exits.

mod early_exit;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use edgecert::cli::{CommandLine, Invocation, UsageError, command_name, is_monitoring, wants_json};
use edgecert::cmd;
use edgecert::context::Context;
use edgecert::dns;
use edgecert::env::Env;
use edgecert::notify;
use edgecert::ui::Ui;
use signal_hook::consts::SIGXFSZ;

use self::early_exit::{exit_after, exit_on_panic, exit_on_signals_as_first_process};

/// Exit code of a usage error.
const USAGE_ERROR: u8 = 2;

fn main() -> ExitCode {
    keep_memory_private();
    survive_size_limits();
    exit_on_signals_as_first_process();
    #[cfg(all(feature = "static", target_feature = "crt-static"))]
    dns::use_own_resolver();
    #[cfg(not(all(feature = "static", target_feature = "crt-static")))]
    dns::use_system_resolver();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let env = Env::capture();
    let ui = Ui::new(wants_json(&arguments), &env);
    exit_on_panic(ui, command_name(&arguments), is_monitoring(&arguments), None);
    match Invocation::parse(&arguments, &env, ui.width()) {
        Invocation::Ignored => ExitCode::SUCCESS,
        Invocation::Help(text) => ExitCode::from(ui.print(&text).map_or_else(|lost| ui.fail(lost), |()| 0)),
        Invocation::NoCommand(help) => {
            ui.print_to_stderr(&help);
            ExitCode::from(USAGE_ERROR)
        }
        Invocation::Usage(error) => ExitCode::from(fail_usage(error, &arguments, env, ui)),
        Invocation::Command(command_line) => ExitCode::from(run(&command_line, env, ui)),
    }
}

/// Prints a usage error, also for a monitoring system that runs `status --check`, and returns the exit code. That of a
/// hook also goes to [`notify`].
fn fail_usage(error: UsageError, arguments: &[OsString], env: Env, ui: Ui) -> u8 {
    let (json, is_check) = (wants_json(arguments), is_monitoring(arguments));
    if !json || is_check {
        ui.print_to_stderr(&format!("edgecert: {}", error.text));
    }
    let report = if is_check { cmd::failed_check(&error.message(), "") } else { error.report() };
    if json || is_check {
        let _ = ui.print_report(&report);
    }
    // On a terminal, the user sees it.
    if error.is_from_hook && !io::stderr().is_terminal() {
        let context = Context::new(env, error.config, ui.style());
        if let Err(error) = notify::send(&report, &context, &|text| ui.print_to_stderr(text)) {
            warn(ui, &error, Some(report.command()));
        }
    }
    report.exit_code()
}

/// Runs a command and returns the exit code.
fn run(command_line: &CommandLine, env: Env, ui: Ui) -> u8 {
    ui.start_log(command_line.verbosity);
    // The panic hook outlives this function.
    let context: &'static Context =
        Box::leak(Box::new(Context::new(env, command_line.config.clone(), ui.style())));
    let notifies = command_line.notifies_failure();
    exit_on_panic(ui, command_line.name, command_line.is_monitoring(), notifies.then_some(context));
    if let Some(limit) = command_line.time_limit() {
        exit_after(limit, ui);
    }
    let confirm = |question: &str| ui.confirm(question);
    let progress = move |phase| ui.show_progress(phase);
    let report = cmd::run(command_line, context, ui.is_interactive().then_some(&confirm), &progress);
    ui.claim_output();
    let exit_code = match ui.print_report(&report) {
        Ok(()) => report.exit_code(),
        Err(lost) if command_line.is_read() => {
            command_line.exit_code_without_output(report.exit_code(), ui.fail(lost))
        }
        // The exit code still reports the result of the change.
        Err(lost) => {
            warn(ui, &lost, notifies.then_some(command_line.name));
            report.exit_code()
        }
    };
    if notifies && let Err(error) = notify::report(&report, context, &|text| ui.print_to_stderr(text)) {
        warn(ui, &error, Some(report.command()));
    }
    exit_code
}

/// Prints a warning about the run itself. If `logged_for` names a command, also writes it to the system log, because
/// the caller may drop the output.
fn warn(ui: Ui, warning: &dyn Display, logged_for: Option<&str>) {
    ui.warn(&warning.to_string());
    if let Some(command) = logged_for {
        notify::log_warning(command, &warning.to_string());
    }
}

/// Disables core dumps and tracing by other processes of this user, because memory will hold a private key.
fn keep_memory_private() {
    use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Makes writing beyond a file size limit (`ulimit -f`) an error: without a handler, SIGXFSZ ends the process. Programs
/// that are started would inherit an ignored signal.
fn survive_size_limits() {
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}
