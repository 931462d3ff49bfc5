//! Hostile files: whatever they hold, the program ends with a documented exit code and within 64 MB.
//!
//! The bound is the kernel's: `prlimit --as` counts every page that a process maps, so what is resident is below it, in
//! the unoptimised binary too. An allocation beyond it would end the process by a signal.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::harness::Output;

mod bundle;
mod other_files;

const MOST_MEMORY: u64 = 64_000_000;
const MIB: usize = 1 << 20;

/// What is in a hostile file.
enum Content {
    Text(Vec<u8>),
    /// So many zeros, of which none takes room on the disk.
    Sparse(u64),
    /// A pipe into which this text is written without end.
    Endless(&'static str),
    /// A pipe that somebody opens and closes.
    Silent,
    /// Another file of the system.
    At(&'static str),
}

use Content::{At, Endless, Silent, Sparse, Text};

/// A file on disk, and the program that feeds it.
struct Planted {
    path: PathBuf,
    feeder: Option<Child>,
}

impl Content {
    fn plant(&self, path: PathBuf) -> Planted {
        let mut feeder = None;
        match self {
            Text(text) => fs::write(&path, text).unwrap(),
            Sparse(size) => fs::File::create(&path).unwrap().set_len(*size).unwrap(),
            Endless(word) => feeder = Some(pipe(&path, &["yes", "--", word])),
            Silent => feeder = Some(pipe(&path, &["true"])),
            At(other) => return Planted { path: other.into(), feeder },
        }
        Planted { path, feeder }
    }
}

/// Makes a named pipe that is fed by a program.
fn pipe(path: &Path, program: &[&str]) -> Child {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo must be installed (Debian package coreutils)").success());
    let script = "exec \"$@\" > \"$0\" 2> /dev/null";
    Command::new("sh").args(["-c", script]).arg(path).args(program).spawn().unwrap()
}

impl Drop for Planted {
    fn drop(&mut self) {
        if let Some(mut feeder) = self.feeder.take() {
            feeder.kill().unwrap();
            feeder.wait().unwrap();
        }
    }
}

/// As often as it goes into this many bytes.
fn filled_with(bytes: usize, text: &str) -> Content {
    Text(text.repeat(bytes / text.len()).into_bytes())
}

/// Runs the rows on a few threads; most of them wait for a file that could be in the middle of being written.
fn all_end_within_bounds<R: Sync>(rows: &[R], run: impl Fn(&R) -> Result<(), String> + Sync) {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    wrong.lock().unwrap().extend(run(row).err());
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The verdict on a row, and that neither output is of the file's size.
fn expect(name: &str, output: &Output, code: i32, words: &str) -> Result<(), String> {
    let shown: String = output.snapshot().chars().take(2000).collect();
    if output.code != code {
        return Err(format!("{name}: exit {}, not {code}: {shown}", output.code));
    }
    if !output.stderr.contains(words) {
        return Err(format!("{name}: {words:?} is missing: {shown}"));
    }
    let printed = output.stdout.len() + output.stderr.len();
    if printed > 64 << 10 { Err(format!("{name}: {printed} bytes of output: {shown}")) } else { Ok(()) }
}
