//! Hostile input files and responses: the hook exits with a documented code within limits of memory and time.
//!
//! `prlimit --as` limits mapped memory, so resident memory stays below that too, even in a debug build. An allocation
//! beyond the limit aborts the process, which the tests report as a death by signal.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::harness::{Output, in_parallel};

mod bundle;
mod other_files;
mod pipes;
mod responses;

const MAX_MEMORY: u64 = 64_000_000;
const MIB: usize = 1 << 20;

/// The content of a hostile file.
enum Content {
    Text(Vec<u8>),
    /// A pipe with this text. Unlike a file, it is not read again for two seconds in case it is half written.
    Piped(Vec<u8>),
    /// A sparse file of this size.
    Zeros(u64),
    /// A pipe that repeats this text forever.
    EndlessPipe(&'static str),
    /// A pipe whose writer closes it without writing.
    EmptyPipe,
    /// A pipe that nothing writes to or opens.
    PipeWithoutWriter,
    /// A pipe whose writer writes nothing and keeps it open.
    SilentPipe,
    /// An existing file of the system.
    Existing(&'static str),
}

use Content::{EmptyPipe, EndlessPipe, Existing, PipeWithoutWriter, Piped, SilentPipe, Text, Zeros};

/// A hostile file, and the process that writes to it if it is a pipe.
struct HostileFile {
    path: PathBuf,
    writer: Option<Child>,
}

impl Content {
    fn create(&self, path: PathBuf) -> HostileFile {
        let mut writer = None;
        match self {
            Text(text) => fs::write(&path, text).unwrap(),
            Piped(text) => {
                let file = path.with_extension("text");
                fs::write(&file, text).unwrap();
                writer = Some(pipe(&path, &["cat", "--", file.to_str().unwrap()]));
            }
            Zeros(size) => fs::File::create(&path).unwrap().set_len(*size).unwrap(),
            EndlessPipe(word) => writer = Some(pipe(&path, &["yes", "--", word])),
            EmptyPipe => writer = Some(pipe(&path, &["true"])),
            PipeWithoutWriter => make_pipe(&path),
            SilentPipe => writer = Some(pipe(&path, &["sleep", "600"])),
            Existing(other) => return HostileFile { path: other.into(), writer },
        }
        HostileFile { path, writer }
    }
}

fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo must be installed (Debian package coreutils)").success());
}

/// Creates a named pipe and starts a program that writes to it.
fn pipe(path: &Path, program: &[&str]) -> Child {
    make_pipe(path);
    let script = "exec \"$@\" > \"$0\" 2> /dev/null";
    Command::new("sh").args(["-c", script]).arg(path).args(program).spawn().unwrap()
}

impl Drop for HostileFile {
    fn drop(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            writer.kill().unwrap();
            writer.wait().unwrap();
        }
    }
}

/// Repeats a text as often as it fits into this many bytes.
fn repeated(bytes: usize, text: &str) -> Content {
    Text(text.repeat(bytes / text.len()).into_bytes())
}

/// Runs all rows and reports every failure.
fn assert_all_bounded<R: Sync>(rows: &[R], run: impl Fn(&R) -> Result<(), String> + Sync) {
    let failures: Vec<String> = in_parallel(4, rows, run).into_iter().filter_map(Result::err).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Checks exit code, message, and that the output does not grow with the file.
fn check_output(name: &str, output: &Output, code: i32, message: &str) -> Result<(), String> {
    let shown: String = output.snapshot().chars().take(2000).collect();
    if output.code != code {
        return Err(format!("{name}: exit {}, not {code}: {shown}", output.code));
    }
    if !output.stderr.contains(message) {
        return Err(format!("{name}: no {message:?} in: {shown}"));
    }
    let printed = output.stdout.len() + output.stderr.len();
    if printed > 64 << 10 { Err(format!("{name}: {printed} bytes of output: {shown}")) } else { Ok(()) }
}
