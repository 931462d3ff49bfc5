//! The signals that end the program.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Catches SIGINT, SIGTERM and SIGHUP, so that processes and temporary files can be removed.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` if it is ignored, as under `nohup`.
    hangup: Option<Signal>,
}

impl Signals {
    /// Installs the handlers. Must be called in the context of a runtime.
    pub(super) fn new() -> io::Result<Self> {
        let hangup = (!is_hangup_ignored()).then(|| signal(SignalKind::hangup())).transpose()?;
        let [interrupt, terminate] = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
        Ok(Self { interrupt: interrupt?, terminate: terminate?, hangup })
    }

    /// Waits for a signal and returns the exit code that shells report for a program that it ends.
    pub(super) async fn recv(&mut self) -> u8 {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => 130,
            _ = self.terminate.recv() => 143,
            _ = hangup => 129,
        }
    }
}

/// Whether the program was started with SIGHUP ignored. Only Linux shows this.
fn is_hangup_ignored() -> bool {
    const SIGHUP_BIT: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & SIGHUP_BIT != 0)
}
