//! Reports failures that the ACME client would swallow: certbot drops the exit code, acmed the output.
//!
//! The `on_failure` program receives the report, and the system log a line. The program is edgecert's only child
//! process; it gets a minimal environment, no secret, and no open file but standard error. Nothing here changes the
//! exit code.

use std::ffi::OsStr;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::context::Context;
use crate::env::Env;
use crate::error::{CommandError, Diagnostic as _, ErrorKind};
use crate::report::AnyReport;
use crate::settings::Program;
use crate::text::{path, sanitize};

/// Time limit for the `on_failure` program. lego kills a hook after 120 seconds, of which the run itself may take 90.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(25);

/// Variables that the program inherits, besides `LC_…`. Never `EDGECERT_…`: one of them holds the API key.
const INHERITED_VARIABLES: [&str; 6] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ"];

/// Names the command that failed. A run that has it was started by the program, which must not start itself again.
const COMMAND_VARIABLE: &str = "EDGECERT_COMMAND";

/// Socket of syslog or journald.
const LOG_SOCKET: &str = "/dev/log";

/// Priorities of log lines (RFC 3164): facility daemon, severity error or warning.
const ERROR: u8 = 27;
const WARNING: u8 = 28;

/// What to report about a run.
struct Notification {
    command: &'static str,
    exit_code: u8,
    /// The messages on one line, each preceded by a semicolon.
    error: String,
    /// The JSON report.
    report: String,
}

/// The `on_failure` program did not run, or failed.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    /// Another user could make this one run any program.
    #[error("did not run {}, named by on_failure: {reason}; {remedy}", path(name))]
    Untrusted { name: PathBuf, reason: String, remedy: String },
    /// It would call itself endlessly.
    #[error("did not run {}, named by on_failure, because it started this run itself", path(name))]
    Nested { name: PathBuf },
    #[error("cannot start {}, named by on_failure: {reason}", path(name))]
    NotStarted { name: PathBuf, reason: String },
    #[error("killed {}, named by on_failure, after {} seconds", path(name), limit.as_secs())]
    TimedOut { name: PathBuf, limit: Duration },
    #[error("{}, named by on_failure, failed ({status}); the notification may be lost", path(name))]
    Failed { name: PathBuf, status: ExitStatus },
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

/// Reports the usage error of a hook, unless the user sees it on a terminal.
pub fn report_usage_error(report: &dyn AnyReport, context: &Context) -> Result<(), NotifyError> {
    if io::stderr().is_terminal() { Ok(()) } else { send(&Notification::new(report), context) }
}

fn send(notification: &Notification, context: &Context) -> Result<(), NotifyError> {
    // First, because the program may take long.
    log(ERROR, &notification.line());
    let Some(program) = context.on_failure() else { return Ok(()) };
    if context.env.raw(COMMAND_VARIABLE).is_some() {
        return Err(NotifyError::Nested { name: program.name.clone() });
    }
    run_program(program, notification, &context.env)
}

/// Writes a warning to the system log.
pub fn log_warning(warning: &str) {
    log(WARNING, &sanitize(warning));
}

/// Writes a line to the system log, unless standard error is a terminal. It is dropped if nothing listens or the socket
/// is full; nothing waits for it.
fn log(priority: u8, line: &str) {
    if io::stderr().is_terminal() {
        return;
    }
    let Ok(socket) = UnixDatagram::unbound() else { return };
    let message = format!("<{priority}>edgecert[{}]: {line}", std::process::id());
    let _ = socket
        .set_nonblocking(true)
        .and_then(|()| socket.connect(LOG_SOCKET))
        .and_then(|()| socket.send(message.as_bytes()));
}

/// Runs the program with the report on its standard input.
fn run_program(program: &Program, notification: &Notification, env: &Env) -> Result<(), NotifyError> {
    program.trust().map_err(|distrust| NotifyError::Untrusted {
        name: program.name.clone(),
        reason: distrust.to_string(),
        remedy: distrust.hint().map(String::from).unwrap_or_default(),
    })?;
    // Standard output is for the report alone, so the output of the program goes to standard error.
    let output = || io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
    let mut command = Command::new(&program.name);
    command.args(&program.arguments).env_clear().envs(environment(notification, env));
    command.stdin(Stdio::piped()).stdout(output()).stderr(output());
    run_with_timeout(&mut command, notification.report.clone() + "\n", PROGRAM_TIMEOUT)
}

fn environment<'a>(notification: &Notification, env: &'a Env) -> Vec<(&'a OsStr, std::ffi::OsString)> {
    let inherited = INHERITED_VARIABLES.iter().filter_map(|name| Some((OsStr::new(name), env.raw(name)?)));
    let all = inherited.chain(env.with_prefix("LC_")).map(|(name, value)| (name, value.to_owned()));
    let own = [
        (OsStr::new(COMMAND_VARIABLE), notification.command.into()),
        (OsStr::new("EDGECERT_EXIT_CODE"), notification.exit_code.to_string().into()),
    ];
    all.chain(own).collect()
}

/// Runs a command, and kills it after the time limit. It leads a process group, so that its children are killed too.
fn run_with_timeout(command: &mut Command, input: String, limit: Duration) -> Result<(), NotifyError> {
    let name = PathBuf::from(command.get_program());
    let mut child = command.process_group(0).spawn().map_err(|error| NotifyError::NotStarted {
        name: name.clone(),
        reason: crate::file::reason(&error),
    })?;
    if let Some(mut pipe) = child.stdin.take() {
        // The program need not read its input, so writing may fail or block.
        std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    }
    let in_time = exits_within(&child, limit);
    if !in_time {
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    match child.wait() {
        _ if !in_time => Err(NotifyError::TimedOut { name, limit }),
        Ok(status) if !status.success() => Err(NotifyError::Failed { name, status }),
        // With SIGCHLD ignored there is no exit status.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Whether a child exits in time. It is not reaped, so that its process ID cannot be reused before it is killed.
fn exits_within(child: &Child, limit: Duration) -> bool {
    let pid = Pid::from_child(child);
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
        sender.send(())
    });
    receiver.recv_timeout(limit).is_ok()
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

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

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped());
        command
    }

    #[test]
    fn timeout_kills_the_process_group() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut command = shell("sleep 1000 & echo started; sleep 1000");
        command.stdout(writer);
        let limit = Duration::from_secs(1);
        assert!(matches!(
            run_with_timeout(&mut command, String::new(), limit),
            Err(NotifyError::TimedOut { .. })
        ));
        drop(command);
        // The end of file means that no process holds the other end.
        let mut output = String::new();
        reader.read_to_string(&mut output).unwrap();
        assert_eq!(output, "started\n");
    }

    #[test]
    fn program_may_ignore_its_input() {
        let report = "x".repeat(1 << 20);
        assert!(run_with_timeout(&mut shell("exec <&-; exit 0"), report.clone(), PROGRAM_TIMEOUT).is_ok());
        assert!(run_with_timeout(&mut shell("exit 0"), report, PROGRAM_TIMEOUT).is_ok());
    }

    #[test]
    fn failures_are_described() {
        let failed = |script: &str| {
            run_with_timeout(&mut shell(script), String::new(), PROGRAM_TIMEOUT).unwrap_err().to_string()
        };
        assert_eq!(
            failed("exit 3"),
            "sh, named by on_failure, failed (exit status: 3); the notification may be lost"
        );
        assert!(failed("kill -9 $$").contains("(signal: 9 (SIGKILL))"));
        let missing =
            run_with_timeout(&mut Command::new("./no-such-program"), String::new(), PROGRAM_TIMEOUT)
                .unwrap_err();
        assert_eq!(missing.to_string(), "cannot start ./no-such-program, named by on_failure: no such file");
    }

    #[test]
    fn log_entry_is_one_line() {
        let errors = [Untrusted("a\nb\u{1b}[2Jc").into()];
        let notification =
            Notification { command: "sync", exit_code: 75, error: messages(&errors), report: String::new() };
        assert_eq!(notification.line(), "sync failed with exit code 75; a b [2Jc");
    }
}
