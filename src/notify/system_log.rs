//! The system log: syslog or journald.

use std::io::{self, IsTerminal as _};
use std::os::unix::net::UnixDatagram;

use crate::text::sanitize;

/// Socket of syslog or journald.
const LOG_SOCKET: &str = "/dev/log";

/// Priorities of log lines (RFC 3164): facility daemon, severity error or warning.
pub(super) const ERROR: u8 = 27;
const WARNING: u8 = 28;

/// Writes a warning to the system log.
pub fn log_warning(warning: &str) {
    log(WARNING, &sanitize(warning));
}

/// Writes a line to the system log, unless standard error is a terminal. It is dropped if nothing listens or the socket
/// is full; nothing waits for it.
pub(super) fn log(priority: u8, line: &str) {
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
