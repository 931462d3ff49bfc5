//! What the `on_failure` program prints, passed on until the program exits.
//!
//! The pipe is edgecert's own, because certbot and lego wait for every process that holds theirs, also for one that the
//! program left in the background.

use std::io::{self, PipeReader, Read as _};
use std::process::Child;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::clock::Deadline;
use crate::text::sanitize_untruncated;

/// Longer lines are broken, in bytes. lego stops reading at a line of 64 KiB.
const MAX_LINE: usize = 16 * 1024;

/// The rest of the output is dropped, in bytes.
const MAX_OUTPUT: usize = 64 * 1024;

/// How often to check whether the child has exited.
const TICK: Duration = Duration::from_millis(20);

/// Prints the lines of a child until it exits, or until the time limit; returns whether it exited in time. The child is not reaped, so that its process ID cannot be reused before it is killed.
pub(super) fn print_until_exit(
    child: &Child,
    mut output: PipeReader,
    limit: Duration,
    print: &dyn Fn(&str),
) -> io::Result<bool> {
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
            Err(error) => return Err(error.into()),
        };
        if deadline.left().is_zero() {
            break false;
        }
        if is_readable {
            let length = output.read(&mut buffer)?;
            is_open = length > 0;
            unprinted.extend(buffer.iter().take(length.min(room)));
            room = room.saturating_sub(length);
            print_lines(&mut unprinted, false, print);
        } else if has_exited {
            break true;
        }
    };
    print_lines(&mut unprinted, true, print);
    Ok(in_time)
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
