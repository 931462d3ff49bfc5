//! Reads strace output, and injects a fault.

use std::collections::BTreeSet;
use std::path::Path;

/// Runs a program in which a thread that sleeps panics, because the system call fails in a way that cannot be.
pub(crate) const PANIC_IN_SLEEP: [&str; 7] =
    ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=nanosleep,clock_nanosleep:error=EINVAL"];

/// How often a file is opened in the output of `strace -f -o FILE`.
pub(crate) fn open_count(trace: &str, path: &Path) -> usize {
    let name = format!("\"{}\"", path.display());
    trace.lines().filter(|line| line.contains("open") && line.contains(&name)).count()
}

/// The names of all system calls in the output of `strace -f -o FILE`.
pub(crate) fn system_calls(trace: &str) -> BTreeSet<String> {
    let calls = trace.lines().filter_map(|line| line.split_once(' ')?.1.trim().split_once('('));
    let names = calls.map(|(name, _)| name.to_owned());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')).collect()
}
