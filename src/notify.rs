//! Tells of a failure where the caller would eat it (certbot drops the exit code, acmed the output): the program that the
//! configuration names gets the report, the system's log gets a line.
//!
//! That program is the only child process of edgecert. It gets the report and no secret: of the environment only what
//! programs need to find their way, and no open file but standard error. Nothing here changes how the run ended.

use std::ffi::OsStr;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, geteuid, kill_process_group, waitid};

use crate::context::Context;
use crate::env::Env;
use crate::error::{CommandError, ErrorKind};
use crate::report::AnyReport;
use crate::settings::Program;
use crate::text::{path, sanitize};

/// So long the program may take. lego kills a hook after 120 seconds, of which the run itself may use 90.
const LIMIT: Duration = Duration::from_secs(25);

/// What the program gets of the environment, besides `LC_…`. No `EDGECERT_…`: one of them holds the API key.
const PASSED_ON: [&str; 6] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ"];

/// Where the system's log listens, journald's too.
const LOG: &str = "/dev/log";

/// How a run ended.
struct Notification {
    command: &'static str,
    exit_code: u8,
    /// One line; empty where there is none.
    error: String,
    /// The JSON object.
    report: String,
}

/// Why the program was not told, or what it said to that.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{} is not run on this failure: others can change {}, which names it", path(name), path(file))]
    Foreign { name: PathBuf, file: PathBuf },
    #[error("cannot start {}, which on_failure names: {reason}", path(name))]
    NotStarted { name: PathBuf, reason: String },
    #[error("{}, which on_failure names, was killed, as it did not end within {} seconds", path(name), limit.as_secs())]
    TimedOut { name: PathBuf, limit: Duration },
    #[error(
        "{}, which on_failure names, failed ({status}); whether anybody was told is not known",
        path(name)
    )]
    Failed { name: PathBuf, status: ExitStatus },
}

impl Notification {
    /// Describes how a command ended.
    fn new(report: &dyn AnyReport) -> Self {
        let error = sentence(report.errors());
        Self { command: report.command(), exit_code: report.exit_code(), error, report: report.to_json() }
    }

    /// Whether somebody has to know. A wrong command line is seen by who wrote it.
    fn is_failure(&self) -> bool {
        self.exit_code != 0 && self.exit_code != ErrorKind::Usage.exit_code()
    }

    /// The line for the log (RFC 3164): facility daemon, priority error.
    fn line(&self, pid: u32) -> String {
        let Self { command, exit_code, error, .. } = self;
        format!("<27>edgecert[{pid}]: {command} failed with exit code {exit_code}{error}")
    }
}

/// The first sentences, cut where the log would cut them.
fn sentence(errors: &[CommandError]) -> String {
    const MAX_MESSAGES: usize = 3;
    errors.iter().take(MAX_MESSAGES).flat_map(|error| ["; ".to_owned(), sanitize(error.message())]).collect()
}

/// Notifies a failure beyond the output and the exit code, which some callers drop: a line in the system's log, unless
/// someone watches a terminal, and the program of `on_failure`. A success is not notified.
pub fn failure(report: &dyn AnyReport, context: &Context) -> Result<(), Error> {
    let notification = Notification::new(report);
    if !notification.is_failure() {
        return Ok(());
    }
    if !io::stderr().is_terminal() {
        log(&notification);
    }
    let program = context.configuration().ok().and_then(|configuration| configuration.on_failure.as_ref());
    program.map_or(Ok(()), |program| tell(program, &notification, &context.env))
}

/// Writes the line to the system's log. Where none listens, or it is busy, the line is lost: nothing waits for it.
fn log(alarm: &Notification) {
    let Ok(socket) = UnixDatagram::unbound() else { return };
    let _ = socket
        .set_nonblocking(true)
        .and_then(|()| socket.connect(LOG))
        .and_then(|()| socket.send(alarm.line(std::process::id()).as_bytes()));
}

/// Runs the program with the report on its standard input.
fn tell(program: &Program, alarm: &Notification, env: &Env) -> Result<(), Error> {
    if is_of_others(program) {
        return Err(Error::Foreign { name: program.name.clone(), file: program.file.clone() });
    }
    // What reads our standard output expects the report alone, so that whatever the program says goes to standard error.
    let output = || io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
    let mut command = Command::new(&program.name);
    command.args(&program.arguments).env_clear().envs(environment(alarm, env));
    command.stdin(Stdio::piped()).stdout(output()).stderr(output());
    run(&mut command, alarm.report.clone() + "\n", LIMIT)
}

/// Who can write the configuration must not run programs as somebody else: `HOME`, and with it the file, may be another
/// user's.
fn is_of_others(program: &Program) -> bool {
    const WRITABLE_BY_OTHERS: u32 = 0o002;
    std::fs::metadata(&program.file).map_or(true, |file| {
        let is_ours = file.uid() == 0 || file.uid() == geteuid().as_raw();
        !is_ours || (file.is_file() && file.mode() & WRITABLE_BY_OTHERS != 0)
    })
}

fn environment<'a>(alarm: &Notification, env: &'a Env) -> Vec<(&'a OsStr, std::ffi::OsString)> {
    let passed_on = PASSED_ON.iter().filter_map(|name| Some((OsStr::new(name), env.raw(name)?)));
    let all = passed_on.chain(env.with_prefix("LC_")).map(|(name, value)| (name, value.to_owned()));
    let own = [
        (OsStr::new("EDGECERT_COMMAND"), alarm.command.into()),
        (OsStr::new("EDGECERT_EXIT_CODE"), alarm.exit_code.to_string().into()),
    ];
    all.chain(own).collect()
}

/// Runs it to its end or to the limit. It leads a process group of its own, so that the limit ends what it started, too.
fn run(command: &mut Command, input: String, limit: Duration) -> Result<(), Error> {
    let name = PathBuf::from(command.get_program());
    let mut child = command
        .process_group(0)
        .spawn()
        .map_err(|error| Error::NotStarted { name: name.clone(), reason: crate::file::reason(&error) })?;
    if let Some(mut pipe) = child.stdin.take() {
        // It may read nothing, or go away before the end; both are its own affair.
        std::thread::spawn(move || pipe.write_all(input.as_bytes()));
    }
    let in_time = ends_within(&child, limit);
    if !in_time {
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    match child.wait() {
        _ if !in_time => Err(Error::TimedOut { name, limit }),
        Ok(status) if !status.success() => Err(Error::Failed { name, status }),
        // Where nobody may wait for children (SIGCHLD is ignored), nobody knows how they ended.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Waits without taking the exit status, so that its number stays the program's until it is killed.
fn ends_within(child: &Child, limit: Duration) -> bool {
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
    use crate::error::AdHocError;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped());
        command
    }

    #[test]
    fn at_its_limit_a_program_is_killed_with_all_that_it_started() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut command = shell("sleep 1000 & echo started; sleep 1000");
        command.stdout(writer);
        let limit = Duration::from_secs(1);
        assert!(matches!(run(&mut command, String::new(), limit), Err(Error::TimedOut { .. })));
        drop(command);
        // The end comes when the last process that could write into it is gone.
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        assert_eq!(said, "started\n");
    }

    #[test]
    fn a_program_need_not_read_what_it_is_told() {
        let report = "x".repeat(1 << 20);
        assert!(run(&mut shell("exec <&-; exit 0"), report.clone(), LIMIT).is_ok());
        assert!(run(&mut shell("exit 0"), report, LIMIT).is_ok());
    }

    #[test]
    fn how_it_went_is_said_in_words() {
        let failed = |script: &str| run(&mut shell(script), String::new(), LIMIT).unwrap_err().to_string();
        assert_eq!(
            failed("exit 3"),
            "sh, which on_failure names, failed (exit status: 3); whether anybody was told is not known"
        );
        assert!(failed("kill -9 $$").contains("(signal: 9 (SIGKILL))"));
        let missing = run(&mut Command::new("./no-such-program"), String::new(), LIMIT).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "cannot start ./no-such-program, which on_failure names: no such file"
        );
    }

    #[test]
    fn a_line_of_the_log_is_one_line() {
        let kind = ErrorKind::Temporary;
        let errors = [AdHocError { kind, message: "a\nb\u{1b}[2Jc".into(), hint: None }.into()];
        let alarm =
            Notification { command: "sync", exit_code: 75, error: sentence(&errors), report: String::new() };
        assert_eq!(alarm.line(7), "<27>edgecert[7]: sync failed with exit code 75; a b [2Jc");
    }
}
