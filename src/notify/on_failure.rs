//! The `on_failure` program: edgecert's only child process.
//!
//! It receives the report and a minimal environment, but no secret, and no open file of edgecert.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, PipeReader, Read as _, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::clock::Deadline;
use crate::env::Env;
use crate::file;
use crate::report::Report;
use crate::settings::Program;
use crate::text::{path, sanitize_untruncated, sentence};

/// Time limit for the `on_failure` program. lego kills a hook after 120 seconds, of which the run itself may take 90.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(25);

/// Variables that the program inherits, besides `LC_…`. Never `EDGECERT_…`: one of them holds the API key.
const INHERITED_VARIABLES: [&str; 6] = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ"];

/// Names the command that failed. A run that has it was started by the program, which must not start itself again.
const COMMAND_VARIABLE: &str = "EDGECERT_COMMAND";

/// Longer lines are broken, in bytes. lego stops reading at a line of 64 KiB.
const MAX_LINE: usize = 16 * 1024;

/// The rest of the output is dropped, in bytes.
const MAX_OUTPUT: usize = 64 * 1024;

/// How often to check whether the child has exited.
const TICK: Duration = Duration::from_millis(20);

/// Runs the program with the report on its standard input, and prints what it prints.
pub(super) fn run(program: &Program, report: &Report, env: &Env, print: &dyn Fn(&str)) -> Result<(), String> {
    let not_run = format!("did not run {}, named by on_failure", path(&program.name));
    // It would call itself endlessly.
    if env.raw(COMMAND_VARIABLE).is_some() {
        return Err(format!("{not_run}, because it started this run itself"));
    }
    // Another user could make this one run any program.
    let trusted = program.trust();
    trusted.map_err(|distrust| format!("{not_run}: {}", sentence(&distrust, distrust.hint.as_ref())))?;
    let mut command = Command::new(&program.name);
    let inherited = INHERITED_VARIABLES.iter().filter_map(|name| Some((OsStr::new(name), env.raw(name)?)));
    command.args(&program.arguments).env_clear().envs(inherited.chain(env.with_prefix("LC_")));
    command.env(COMMAND_VARIABLE, report.command());
    command.env("EDGECERT_EXIT_CODE", report.exit_code().to_string());
    run_with_timeout(command, &(report.to_json() + "\n"), PROGRAM_TIMEOUT, print)
}

/// Runs a command, and kills it after the time limit. It leads a process group, so that its children are killed too.
fn run_with_timeout(
    mut command: Command,
    input: &str,
    limit: Duration,
    print: &dyn Fn(&str),
) -> Result<(), String> {
    let name = format!("{}, named by on_failure", path(Path::new(command.get_program())));
    let not_started = |error: io::Error| format!("cannot start {name}: {}", file::reason(&error));
    let (output, writer) = io::pipe().map_err(not_started)?;
    command.stdin(in_memory(input).map_err(not_started)?);
    command.stdout(writer.try_clone().map_err(not_started)?).stderr(writer);
    let mut child = command.process_group(0).spawn().map_err(not_started)?;
    // It holds the writing end, too.
    drop(command);
    let in_time = print_until_exit(&child, output, limit, print);
    if !in_time {
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
    }
    match child.wait() {
        _ if !in_time => Err(format!("killed {name}, after {} seconds", limit.as_secs())),
        Ok(status) if !status.success() => {
            Err(format!("{name}, failed ({status}); the notification may be lost"))
        }
        // With SIGCHLD ignored there is no exit status.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Prints the lines of a child until it exits, or until the time limit; returns whether it exited in time, and could be
/// watched until then. The pipe is edgecert's own, because certbot and lego wait for every process that holds theirs, also
/// for one that the program left in the background. The child is not reaped, so that its process ID cannot be reused before
/// it is killed.
fn print_until_exit(child: &Child, mut output: PipeReader, limit: Duration, print: &dyn Fn(&str)) -> bool {
    let deadline = Deadline::after(limit);
    let (mut is_open, mut room, mut unprinted) = (true, MAX_OUTPUT, Vec::new());
    let mut buffer = [0; 4096];
    let in_time = loop {
        // First: what it printed before is then in the pipe.
        let has_exited = has_exited(child);
        let pause = if has_exited { Duration::ZERO } else { deadline.left().min(TICK) };
        let mut files = [PollFd::new(&output, PollFlags::IN)];
        let files = if is_open { &mut files[..] } else { &mut [] };
        let is_readable = match poll(files, Some(&Timespec::try_from(pause).unwrap_or_default())) {
            Ok(readable) => readable > 0,
            Err(Errno::INTR) => false,
            Err(_) => break false,
        };
        if deadline.left().is_zero() {
            break false;
        }
        if is_readable {
            let Ok(length) = output.read(&mut buffer) else { break false };
            is_open = length > 0;
            unprinted.extend(buffer.iter().take(length.min(room)));
            room = room.saturating_sub(length);
            print_lines(&mut unprinted, false, print);
        } else if has_exited {
            break true;
        }
    };
    print_lines(&mut unprinted, true, print);
    in_time
}

/// Whether the child has exited; with SIGCHLD ignored, whether it no longer exists.
fn has_exited(child: &Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    !matches!(waitid(WaitId::Pid(Pid::from_child(child)), options), Ok(None) | Err(Errno::INTR))
}

/// Prints and removes whole lines, so that no character is cut, and at the end the rest.
fn print_lines(output: &mut Vec<u8>, is_end: bool, print: &dyn Fn(&str)) {
    let mut printed = 0;
    for line in output.split_inclusive(|byte| *byte == b'\n').flat_map(|line| line.chunks(MAX_LINE)) {
        if is_end || line.ends_with(b"\n") || line.len() == MAX_LINE {
            print(&format!("{}\n", sanitize_untruncated(&String::from_utf8_lossy(line))));
            printed += line.len();
        }
    }
    output.drain(..printed);
}

/// A file in memory. The program need not read it, which a pipe would have to wait for.
fn in_memory(text: &str) -> io::Result<File> {
    let create = |flags| memfd_create("report", MemfdFlags::CLOEXEC | flags);
    // Some systems require the flag, and Linux before 6.3 does not know it.
    let created = create(MemfdFlags::NOEXEC_SEAL).or_else(|_| create(MemfdFlags::empty()))?;
    let mut file = File::from(created);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Runs a script, and returns what it printed, too.
    fn run(script: &str, input: &str, limit: Duration) -> (Result<(), String>, String) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let printed = RefCell::new(String::new());
        let result = run_with_timeout(command, input, limit, &|text| printed.borrow_mut().push_str(text));
        (result, printed.into_inner())
    }

    /// lego kills its hook after 120 seconds, whether the run has been recorded or not.
    #[test]
    fn run_and_program_end_before_lego_kills_them() {
        assert!(crate::settings::TIMEOUT + PROGRAM_TIMEOUT.as_secs() < 120);
    }

    #[test]
    fn timeout_kills_the_process_group() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let script = format!("exec 3>{}; sleep 1000 & echo started; sleep 1000", fifo.display());
        // Its end means that no process holds it.
        let end_of_file = std::thread::spawn(move || std::fs::read_to_string(fifo).unwrap());
        let (result, printed) = run(&script, "", Duration::from_secs(1));
        assert_eq!(result.unwrap_err(), "killed sh, named by on_failure, after 1 seconds");
        assert_eq!(printed, "started\n");
        assert_eq!(end_of_file.join().unwrap(), "");
    }

    #[test]
    fn program_may_ignore_its_input() {
        let report = "x".repeat(1 << 20);
        for script in ["exec <&-; exit 0", "exit 0"] {
            assert!(run(script, &report, PROGRAM_TIMEOUT).0.is_ok());
        }
    }

    /// lego stops reading at a line of 64 KiB.
    #[test]
    fn long_lines_are_broken() {
        let (result, printed) =
            run("exec 2>&1; head -c 40000 /dev/zero | tr '\\0' x; echo; echo last >&2", "", PROGRAM_TIMEOUT);
        result.unwrap();
        let lengths: Vec<usize> = printed.lines().map(str::len).collect();
        assert_eq!((lengths, printed.ends_with("last\n")), (vec![16384, 16384, 7232, 4], true));
    }

    #[test]
    fn long_input_arrives() {
        let report = "x".repeat(1 << 20);
        let (result, printed) = run("sleep 0.1; wc -c", &report, PROGRAM_TIMEOUT);
        result.unwrap();
        assert_eq!(printed, "1048576\n");
    }

    #[test]
    fn output_is_limited_and_sanitized() {
        let (result, printed) = run("yes 0123456789abcde | head -c 1000000", "", PROGRAM_TIMEOUT);
        result.unwrap();
        assert_eq!(printed, "0123456789abcde\n".repeat(4096), "64 KiB");
        let (result, printed) = run(r"printf 'a\033[2Jb\rc\n\n\302\233d'", "", PROGRAM_TIMEOUT);
        result.unwrap();
        assert_eq!(printed, "a [2Jb c\n\nd\n");
    }

    #[test]
    fn output_may_be_closed() {
        let (result, printed) = run("printf unfinished; exec >&- 2>&-; exit 0", "", PROGRAM_TIMEOUT);
        result.unwrap();
        assert_eq!(printed, "unfinished\n");
    }

    #[test]
    fn failures_are_described() {
        let failed = |script: &str| run(script, "", PROGRAM_TIMEOUT).0.unwrap_err();
        assert_eq!(
            failed("exit 3"),
            "sh, named by on_failure, failed (exit status: 3); the notification may be lost"
        );
        assert!(failed("kill -9 $$").contains("(signal: 9 (SIGKILL))"));
        let missing = Command::new("./no-such-program");
        let missing = run_with_timeout(missing, "", PROGRAM_TIMEOUT, &|_| {}).unwrap_err();
        assert_eq!(missing, "cannot start ./no-such-program, named by on_failure: no such file");
    }
}
