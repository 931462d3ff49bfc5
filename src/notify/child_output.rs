//! What the `on_failure` program prints, passed on until the program exits.
//!
//! The pipe is edgecert's own, because certbot and lego wait for every process that holds theirs, also for one that the
//! program left in the background.

use std::io::{self, PipeReader, Read as _};
use std::process::Child;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::clock::Deadline;

/// Longer lines are broken, in bytes. lego stops reading at a line of 64 KiB.
const MAX_LINE: usize = 16 * 1024;

/// Prints the lines of a child until it exits, or until the time limit; returns whether it exited in time. The child is
/// not reaped, so that its process ID cannot be reused before it is killed.
pub(super) fn print_until_exit(
    child: &Child,
    mut output: PipeReader,
    limit: Duration,
    print: &dyn Fn(&str),
) -> io::Result<bool> {
    let deadline = Deadline::after(limit);
    let exit = exit_of(child)?;
    let mut lines = Lines { unfinished: Vec::new(), print };
    let mut is_open = true;
    let mut buffer = [0; 4096];
    loop {
        let left = deadline.left();
        if left.is_zero() {
            return Ok(false);
        }
        let mut files = [PollFd::new(&exit, PollFlags::IN), PollFd::new(&output, PollFlags::IN)];
        let files = if is_open { &mut files[..] } else { &mut files[..1] };
        match poll(files, Some(&Timespec::try_from(left).unwrap_or_default())) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let [has_exited, is_readable] =
            [0, 1].map(|file| files.get(file).is_some_and(|file| !file.revents().is_empty()));
        if is_readable {
            let length = output.read(&mut buffer)?;
            is_open = length > 0;
            lines.add(buffer.get(..length).unwrap_or_default());
        } else if has_exited {
            return Ok(true);
        }
    }
}

/// A pipe that is at its end once the child has exited.
fn exit_of(child: &Child) -> io::Result<PipeReader> {
    let (reader, writer) = io::pipe()?;
    let pid = Pid::from_child(child);
    thread::spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
        drop(writer);
    });
    Ok(reader)
}

/// Prints whole lines, so that no character is cut.
struct Lines<'a> {
    unfinished: Vec<u8>,
    print: &'a dyn Fn(&str),
}

impl Lines<'_> {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.unfinished.push(*byte);
            if *byte == b'\n' || self.unfinished.len() == MAX_LINE {
                self.print_line();
            }
        }
    }

    fn print_line(&mut self) {
        let line = String::from_utf8_lossy(&self.unfinished);
        (self.print)(&format!("{}\n", line.trim_end_matches('\n')));
        self.unfinished.clear();
    }
}

impl Drop for Lines<'_> {
    fn drop(&mut self) {
        if !self.unfinished.is_empty() {
            self.print_line();
        }
    }
}
