//! Wall time as a ratio of two commands that run in turn, so that other load on the machine affects both.

use std::fmt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::fixture::Fixture;

/// Uncounted pairs that fill the caches.
const WARM_UPS: usize = 3;

/// Odd, so that the median is one of them.
const PAIRS: usize = 25;

#[derive(Clone, Copy)]
pub(crate) enum Comparison {
    HookToCurl,
    /// The noise: how far the ratio of two equal commands is from 1.
    CurlToCurl,
}

/// Ratios of all pairs in ascending order. Displayed as median, minimum and maximum.
pub(crate) struct Ratios(Vec<f64>);

/// Compares two commands; below 1 the first is faster.
pub(crate) fn compare(fixture: &Fixture, comparison: Comparison) -> Result<Ratios> {
    let port = fixture.server()?.port();
    let curl = || fixture.curl(port);
    let first = || match comparison {
        Comparison::HookToCurl => Ok(fixture.command(fixture.upload_call(port))),
        Comparison::CurlToCurl => curl(),
    };
    ratios(PAIRS, first, curl)
}

/// Runs pairs of two commands and returns the ratios of their wall times.
pub(crate) fn ratios(
    pairs: usize,
    first: impl Fn() -> Result<Command>,
    second: impl Fn() -> Result<Command>,
) -> Result<Ratios> {
    let mut ratios = Vec::new();
    for pair in 0..WARM_UPS + pairs {
        let (first, second) = (wall_time(first()?)?, wall_time(second()?)?);
        if pair >= WARM_UPS {
            ratios.push(first.as_secs_f64() / second.as_secs_f64());
        }
    }
    ratios.sort_by(f64::total_cmp);
    Ok(Ratios(ratios))
}

/// Runs a command and returns its wall time.
#[expect(clippy::disallowed_methods, reason = "measuring time is the purpose")]
fn wall_time(mut command: Command) -> Result<Duration> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let name = command.get_program().to_string_lossy().into_owned();
    let start = Instant::now();
    let status = command.status().with_context(|| format!("cannot start {name}"))?;
    let elapsed = start.elapsed();
    if !status.success() {
        bail!("{name} failed ({status})");
    }
    Ok(elapsed)
}

impl fmt::Display for Ratios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |index: usize| self.0.get(index).copied().unwrap_or(f64::NAN);
        let last = self.0.len().saturating_sub(1);
        write!(f, "{:.3} ({:.3} to {:.3}, {} pairs)", at(last / 2), at(0), at(last), self.0.len())
    }
}
