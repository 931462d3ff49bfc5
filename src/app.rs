//! The program: parses the command line, runs the command, reports once.
//!
//! Parse, run, report once, exit. Only this file prints and exits.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use crate::cli::{Cli, Command, DeployArgs};
use crate::context::Context;
use crate::env::Env;
use crate::error::{AdHocError, CommandError, ErrorKind};
use crate::notify::Notification;
use crate::report::{Body, DeployReport, Report, Style};
use crate::source::dehydrated::{self, Call};
use crate::{cmd, file, notify, report, source};

/// Runs the program.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    report_panics(wants_json(&arguments));
    keep_memory_private();
    let env = Env::capture();
    match dehydrated::call(arguments.get(1..).unwrap_or_default()) {
        Some(Call::Nothing) => ExitCode::SUCCESS,
        Some(call) => {
            let style = style(&io::stdout(), &env);
            let context = Context::new(env, None, style);
            let report = run_for_dehydrated(&call, &context);
            let code = finish(&report, false, &context.env);
            notify(&Notification::new(&report), &context);
            code
        }
        None => run(&arguments, env),
    }
}

fn run(arguments: &[OsString], env: Env) -> ExitCode {
    let json = wants_json(arguments);
    let cli = match Cli::read(arguments.iter().cloned()) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, command_named(arguments), json, &env),
    };
    log_at(cli.common.verbose);
    let style = style(&io::stdout(), &env);
    let context = Context::new(env, cli.common.config.clone(), style);
    let env = &context.env;
    let deploy = |args: &DeployArgs| {
        let report = attempt("deploy", |report| cmd::deploy::run(args, &context, report));
        let code = finish(&report, json, env);
        if !args.dry_run {
            notify(&Notification::new(&report), &context);
        }
        code
    };
    let answer = match &cli.command {
        Some(Command::Check(args)) => {
            return finish(&attempt("check", |report| cmd::check::run(args, &context, report)), json, env);
        }
        Some(Command::Plan(args)) => {
            let args = DeployArgs { dry_run: true, ..args.deploy.clone() };
            let report = attempt("plan", |report| cmd::deploy::run(&args, &context, report));
            return finish(&report, json, env);
        }
        Some(Command::Deploy(args)) => return deploy(args),
        None if is_hook(&cli.deploy, env) || json => return deploy(&cli.deploy),
        None => {
            print(io::stderr(), &Cli::help());
            return ExitCode::from(ErrorKind::Usage.exit_code());
        }
        Some(Command::Sync(args)) => {
            let answer = attempt("sync", |answer| cmd::sync::run(args, &context, answer));
            let code = finish(&answer, json, env);
            notify(&Notification::new(&answer), &context);
            return code;
        }
        Some(Command::Status(args)) => attempt("status", |answer| cmd::status::run(args, &context, answer)),
        Some(Command::Doctor(args)) => attempt("doctor", |answer| {
            cmd::doctor::run(args, &context, answer);
            Ok(())
        }),
        Some(Command::Certs(args)) => attempt(args.word(), |answer| cmd::certs::run(args, &context, answer)),
        Some(Command::Sites(args)) => {
            let there =
                io::IsTerminal::is_terminal(&io::stdin()) && io::IsTerminal::is_terminal(&io::stderr());
            let person = there.then_some(&ask as &dyn Fn(&str) -> bool);
            attempt(args.word(), |answer| cmd::sites::run(args, &context, person, answer))
        }
        Some(Command::Completions(args)) => {
            attempt("completions", |answer| cmd::completions::run(*args, answer))
        }
    };
    finish(&answer, json, env)
}

/// Words that name a command in a usage error; everything else is the hook.
const COMMANDS: [&str; 18] = [
    "certs download",
    "certs list",
    "sites bind",
    "sites create",
    "sites delete",
    "sites disable",
    "sites enable",
    "sites get",
    "sites list",
    "sites update",
    "certs",
    "check",
    "completions",
    "doctor",
    "plan",
    "sites",
    "status",
    "sync",
];

fn command_named(arguments: &[OsString]) -> &'static str {
    let words = arguments.iter().map(|word| word.to_str().unwrap_or_default());
    // The one flag with a value that may stand before a command.
    let behind = words.clone().zip(words.skip(1)).filter(|(before, _)| *before != "--config");
    let words: Vec<&str> =
        behind.map(|(_, word)| word).filter(|word| !word.starts_with('-')).take(2).collect();
    let is_named = |name: &&&str| name.split(' ').eq(words.iter().copied().take(name.split(' ').count()));
    COMMANDS.iter().find(is_named).copied().unwrap_or("deploy")
}

/// Asks the person at the terminal; only a clear yes is one.
fn ask(question: &str) -> bool {
    print(io::stderr(), &format!("edgecert: {question} [y/N] "));
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line);
    read.is_ok() && matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
}

fn wants_json(arguments: &[OsString]) -> bool {
    arguments.iter().any(|argument| argument == "--json")
}

/// Whether there is anything to deploy without a subcommand.
fn is_hook(args: &DeployArgs, env: &Env) -> bool {
    args.certificate.cert.is_some() || args.certificate.lineage.is_some() || source::from_env(env).is_some()
}

fn run_for_dehydrated(call: &Call, context: &Context) -> DeployReport {
    log_at(0);
    attempt("deploy", |report| match call {
        Call::Deploy(source) => cmd::deploy::deploy(&DeployArgs::default(), source, context, report),
        Call::Tick(source) => cmd::sync::tick(source, context, report),
        Call::Incomplete | Call::Nothing => {
            let hint =
                "dehydrated calls deploy_cert DOMAIN KEYFILE CERTFILE FULLCHAINFILE CHAINFILE TIMESTAMP";
            Err(AdHocError::new(ErrorKind::Usage, "deploy_cert lacks its arguments", hint).into())
        }
    })
}

/// Runs a command; its error becomes part of the report.
fn attempt<B: Body>(
    command: &'static str,
    run: impl FnOnce(&mut Report<B>) -> Result<(), CommandError>,
) -> Report<B> {
    let mut report = Report::new(command);
    let result = run(&mut report);
    report.record(result);
    report
}

/// Prints the report, once.
fn finish<B: Body>(report: &Report<B>, json: bool, env: &Env) -> ExitCode {
    print_diagnostics(&report.warnings, report.errors(), env);
    let text = if json { report.to_json() + "\n" } else { report.to_text(style(&io::stdout(), env)) };
    match write(io::stdout(), &text) {
        // Half a certificate must not pass for a whole one.
        Err(error) if report.body.is_product() && error.kind() != io::ErrorKind::BrokenPipe => {
            let message = format!("cannot write standard output: {}", file::reason(&error));
            let hint = "the output is incomplete; free some space and run the command again";
            let error = AdHocError::new(ErrorKind::NoInput, message, hint);
            print_diagnostics(&[], &[error.into()], env);
            ExitCode::from(ErrorKind::NoInput.exit_code())
        }
        _ => ExitCode::from(report.exit_code()),
    }
}

/// Tells of a failure beyond standard output and the exit code, which some callers drop. Whatever comes of that, the exit
/// code stays.
fn notify(alarm: &Notification, context: &Context) {
    if !alarm.is_failure() {
        return;
    }
    if !io::stderr().is_terminal() {
        notify::log(alarm);
    }
    let program = context.configuration().ok().and_then(|file| file.on_failure.as_ref());
    if let Some(Err(error)) = program.map(|program| notify::tell(program, alarm, &context.env)) {
        print_diagnostics(&[error.to_string()], &[], &context.env);
    }
}

fn print_diagnostics(warnings: &[String], errors: &[CommandError], env: &Env) {
    let style = style(&io::stderr(), env);
    for warning in warnings {
        print(io::stderr(), &report::warning_line(warning, style));
    }
    print(io::stderr(), &report::error_lines(errors, style));
}

/// Help and version are answers; everything else is a usage error, in JSON too where that is asked for.
fn usage(error: &clap::Error, command: &'static str, json: bool, env: &Env) -> ExitCode {
    let text = error.render().to_string();
    if !error.use_stderr() {
        print(io::stdout(), &text);
        return ExitCode::SUCCESS;
    }
    if json {
        // What is missing stands in the lines below the first.
        let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
        let message = lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned();
        let mut report = DeployReport::new(command);
        report.fail(AdHocError { kind: ErrorKind::Usage, message, hint: None });
        return finish(&report, true, env);
    }
    print(io::stderr(), &format!("edgecert: {text}"));
    ExitCode::from(ErrorKind::Usage.exit_code())
}

fn style(stream: &(impl io::IsTerminal + std::os::fd::AsFd), env: &Env) -> Style {
    if !stream.is_terminal() {
        return Style { colour: false, width: None };
    }
    let size = rustix::termios::tcgetwinsize(stream);
    let width = size.ok().map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
    let plain = env.raw("NO_COLOR").is_some() || env.raw("TERM").is_some_and(|term| term == "dumb");
    Style { colour: !plain, width }
}

/// A reader that went away is no error: the certificate matters more than the text about it.
fn print(stream: impl io::Write, text: &str) {
    let _ = write(stream, text);
}

fn write(mut stream: impl io::Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes()).and_then(|()| stream.flush())
}

/// Lines of this program on standard error; the libraries' own lines are left out.
struct Logger;

impl log::Log for Logger {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.target().starts_with("edgecert")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            print(io::stderr(), &format!("edgecert: {}\n", record.args()));
        }
    }

    fn flush(&self) {}
}

fn log_at(verbosity: u8) {
    let level = match verbosity {
        0 => log::LevelFilter::Warn,
        1 => log::LevelFilter::Info,
        _ => log::LevelFilter::Trace,
    };
    if log::set_logger(&Logger).is_ok() {
        log::set_max_level(level);
    }
}

/// A panic is a fault of edgecert itself: exit code 70, never a signal, and nothing of the memory in its message.
#[expect(
    clippy::exit,
    reason = "the process must not go on after a panic, and must not abort with another code"
)]
fn report_panics(json: bool) {
    std::panic::set_hook(Box::new(move |panic| {
        let place =
            panic.location().map(|place| format!("{}:{}", place.file(), place.line())).unwrap_or_default();
        print(
            io::stderr(),
            &format!("edgecert: error: internal error at {place}\nedgecert: hint: please report this\n"),
        );
        if json {
            let mut report = DeployReport::new("deploy");
            let message = format!("internal error at {place}");
            report.fail(AdHocError { kind: ErrorKind::Internal, message, hint: None });
            print(io::stdout(), &(report.to_json() + "\n"));
        }
        std::process::exit(i32::from(ErrorKind::Internal.exit_code()));
    }));
}

/// No core dump and no tracing by other processes of the user: the memory will hold a private key.
fn keep_memory_private() {
    use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}
