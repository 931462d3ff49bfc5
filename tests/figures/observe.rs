//! What a single run does: system calls and memory.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use edgecert_workload::{Call, find_program, run};

/// How often a call makes what it wrote durable.
pub(crate) fn fsyncs(scratch: &Path, call: &Call) -> Result<usize> {
    let strace = find_program("strace", "strace")?;
    let report = scratch.join("strace.out");
    let wrapper: [OsString; 6] = [
        strace.into(),
        "-f".into(),
        "-e".into(),
        "trace=fsync,fdatasync,sync,syncfs,sync_file_range,msync".into(),
        "-o".into(),
        report.clone().into(),
    ];
    run(call.under(&wrapper))?;
    let text = fs::read_to_string(&report).context("strace wrote no report")?;
    Ok(text.lines().filter(|line| line.contains("sync") && !line.contains("resumed>")).count())
}

/// Peak resident set of a call, in bytes.
pub(crate) fn peak_memory(scratch: &Path, call: &Call) -> Result<u64> {
    let time = find_program("time", "time")?;
    let report = scratch.join("time.out");
    run(call.under(&[time.as_os_str(), "-f".as_ref(), "%M".as_ref(), "-o".as_ref(), report.as_os_str()]))?;
    let text = fs::read_to_string(&report).context("time wrote no report")?;
    let kibibytes: u64 = text.trim().parse().context("time's report is not a number")?;
    Ok(kibibytes * 1024)
}

/// Peak of the memory of a call that is private and was written to, in bytes. It falls only where memory is returned, so
/// strace delays these system calls, and it is read meanwhile.
pub(crate) fn peak_private_memory(call: &Call) -> Result<u64> {
    const RETURNING: &str = "munmap,mremap,brk,madvise,exit_group";
    const PAUSE: Duration = Duration::from_millis(1);
    let strace = find_program("strace", "strace")?;
    let inject = format!("inject={RETURNING}:delay_enter=10000");
    let wrapper: [OsString; 8] = [
        strace.into(),
        "-f".into(),
        "-qq".into(),
        "-e".into(),
        inject.into(),
        "-e".into(),
        format!("trace={RETURNING}").into(),
        "-o/dev/null".into(),
    ];
    let mut tracer = call.under(&wrapper);
    tracer.stdout(Stdio::null()).stderr(Stdio::null());
    let mut tracer = tracer.spawn().context("cannot start strace")?;
    let mut peak = 0;
    let status = loop {
        if let Some(status) = tracer.try_wait()? {
            break status;
        }
        peak = peak.max(child_of(tracer.id()).and_then(private_memory).unwrap_or_default());
        sleep(PAUSE);
    };
    if !status.success() {
        bail!("the call failed under strace ({status})");
    }
    if peak == 0 {
        bail!("the memory of another process cannot be read without root");
    }
    Ok(peak)
}

/// The only child of a process.
fn child_of(parent: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

fn private_memory(process: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Private_Dirty:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}
