//! Reads strace output.

use std::collections::BTreeSet;

/// The names of all system calls in the output of `strace -f -o FILE`.
pub(crate) fn system_calls(trace: &str) -> BTreeSet<String> {
    let calls = trace.lines().filter_map(|line| line.split_once(' ')?.1.trim().split_once('('));
    let names = calls.map(|(name, _)| name.to_owned());
    names.filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')).collect()
}
