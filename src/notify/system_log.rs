//! The system log: fields for journald where it runs, otherwise the same text as a line for syslog.
//!
//! The journal's native protocol is a datagram of `NAME=value` lines. The crates for it (libsystemd 0.7,
//! systemd-journal-logger 2.2) send on blocking sockets, so a journald that does not read could hang a hook. An entry
//! has at most a few KiB, so it never needs the memory file by which the protocol passes large ones.

use std::io::{self, IsTerminal as _};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use super::log_entry::LogEntry;

/// Socket of journald's native protocol.
const JOURNAL_SOCKET: &str = "/run/systemd/journal/socket";

/// Socket of syslog.
const SYSLOG_SOCKET: &str = "/dev/log";

/// Time limit for one entry. A burst of entries can fill the queue of the log for a moment.
const TIMEOUT: Duration = Duration::from_millis(100);

/// Writes entries to the log, unless standard error is a terminal. Entries that nothing reads in time are lost.
pub(super) fn write(entries: &[LogEntry<'_>]) {
    if entries.is_empty() || io::stderr().is_terminal() {
        return;
    }
    let Ok(socket) = UnixDatagram::unbound() else { return };
    let format = if socket.connect(JOURNAL_SOCKET).is_ok() {
        LogEntry::fields
    } else if socket.connect(SYSLOG_SOCKET).is_ok() {
        LogEntry::line
    } else {
        return;
    };
    if socket.set_write_timeout(Some(TIMEOUT)).is_ok() {
        // After a failure, the others are not tried, so that the time limits do not add up.
        let _ = entries.iter().try_for_each(|entry| socket.send(format(entry).as_bytes()).map(drop));
    }
}
