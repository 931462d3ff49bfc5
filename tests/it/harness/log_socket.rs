//! Sockets of the system log that replace the host's for a run of the hook.
//!
//! Creating them needs root, so proot maps sockets of the test to their paths.

use std::os::unix::net::UnixDatagram;
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

use super::{Hook, Output};

/// Path of journald's socket.
pub(crate) const JOURNAL: &str = "/run/systemd/journal/socket";

/// Path of syslog's socket.
pub(crate) const SYSLOG: &str = "/dev/log";

/// A socket that replaces another one.
pub(crate) struct LogSocket {
    directory: TempDir,
    replaced: &'static str,
    socket: Option<UnixDatagram>,
}

impl LogSocket {
    /// Listens on a replacement for a socket.
    pub(crate) fn replacing(replaced: &'static str) -> Self {
        let directory = TempDir::new().unwrap();
        let socket = UnixDatagram::bind(directory.path().join("socket")).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self { directory, replaced, socket: Some(socket) }
    }

    /// Stops listening, but keeps the file of the socket.
    pub(crate) fn deaf(self) -> Self {
        Self { socket: None, ..self }
    }

    /// Fills the queue of the socket.
    pub(crate) fn full(self) -> Self {
        let sender = UnixDatagram::unbound().unwrap();
        sender.set_nonblocking(true).unwrap();
        sender.connect(self.directory.path().join("socket")).unwrap();
        while sender.send(&[0; 1024]).is_ok() {}
        self
    }

    /// The messages received so far.
    pub(crate) fn received(&self) -> Vec<String> {
        let mut buffer = vec![0; 65536];
        let mut messages = Vec::new();
        while let Some(Ok(length)) = self.socket.as_ref().map(|socket| socket.recv(&mut buffer)) {
            messages.push(String::from_utf8(buffer[..length].to_vec()).unwrap());
        }
        messages
    }

    fn binding(&self) -> String {
        format!("{}:{}", self.directory.path().join("socket").display(), self.replaced)
    }
}

/// Runs a hook that finds these sockets, under a wrapper. One at a time: proot creates a path that is missing on the
/// host, and removes it at its end, although another proot may need it.
pub(crate) fn run_with_sockets(sockets: &[&LogSocket], hook: Hook, wrapper: &[&str]) -> Output {
    static PATHS: Mutex<()> = Mutex::new(());
    let _paths = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
    let bindings: Vec<String> = sockets.iter().map(|socket| socket.binding()).collect();
    let bindings: Vec<&str> = bindings.iter().flat_map(|binding| ["-b", binding]).collect();
    hook.under(&[&["proot"], &*bindings, wrapper].concat()).run()
}

/// Runs a hook and returns the lines that it sends to syslog. There is no journald.
pub(crate) fn run_with_syslog(hook: Hook, wrapper: &[&str]) -> (Output, Vec<String>) {
    let (journal, syslog) = (LogSocket::replacing(JOURNAL).deaf(), LogSocket::replacing(SYSLOG));
    let output = run_with_sockets(&[&journal, &syslog], hook, wrapper);
    (output, syslog.received())
}
