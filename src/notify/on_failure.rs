//! The `on_failure` program: edgecert's only child process.
//!
//! It receives the report and a minimal environment, but no secret, and no open file other than standard error.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::env::Env;
use crate::error::Diagnostic as _;
use crate::report::AnyReport;
use crate::settings::Program;
use crate::text::path;

/// Time limit for the `on_failure` program. lego kills a hook after 120 seconds, of which the run itself may take 90.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(25);

/// Variables that the program inherits, besides `LC_…`. Never `EDGECERT_…`: one of them holds the API key.
const INHERITED_VARIABLES: [&str; 6] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ"];

/// Names the command that failed. A run that has it was started by the program, which must not start itself again.
const COMMAND_VARIABLE: &str = "EDGECERT_COMMAND";

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

/// Runs the program with the report on its standard input.
pub(super) fn run(program: &Program, report: &dyn AnyReport, env: &Env) -> Result<(), NotifyError> {
    if env.raw(COMMAND_VARIABLE).is_some() {
        return Err(NotifyError::Nested { name: program.name.clone() });
    }
    program.trust().map_err(|distrust| NotifyError::Untrusted {
        name: program.name.clone(),
        reason: distrust.to_string(),
        remedy: distrust.hint().map(String::from).unwrap_or_default(),
    })?;
    // Standard output is for the report alone, so the output of the program goes to standard error.
    let output = || io::stderr().as_fd().try_clone_to_owned().map_or_else(|_| Stdio::null(), Stdio::from);
    let mut command = Command::new(&program.name);
    command.args(&program.arguments).env_clear().envs(environment(report, env));
    command.stdin(Stdio::piped()).stdout(output()).stderr(output());
    run_with_timeout(&mut command, report.to_json() + "\n", PROGRAM_TIMEOUT)
}

fn environment<'a>(report: &dyn AnyReport, env: &'a Env) -> Vec<(&'a OsStr, std::ffi::OsString)> {
    let inherited = INHERITED_VARIABLES.iter().filter_map(|name| Some((OsStr::new(name), env.raw(name)?)));
    let all = inherited.chain(env.with_prefix("LC_")).map(|(name, value)| (name, value.to_owned()));
    let own = [
        (OsStr::new(COMMAND_VARIABLE), report.command().into()),
        (OsStr::new("EDGECERT_EXIT_CODE"), report.exit_code().to_string().into()),
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

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped());
        command
    }

    /// lego kills its hook after 120 seconds, whether the run has been recorded or not.
    #[test]
    fn run_and_program_end_before_lego_kills_them() {
        assert!(crate::settings::TIMEOUT + PROGRAM_TIMEOUT.as_secs() < 120);
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
}
