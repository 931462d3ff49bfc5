//! Reads strace output.

use std::collections::BTreeSet;
use std::path::Path;

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
