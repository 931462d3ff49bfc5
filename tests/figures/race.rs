//! Wall time as a ratio: two commands in turn, so that whatever else the machine does falls on both.

use std::fmt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::scene::Scene;

/// Pairs that are run and not counted: they fill the caches.
const WARM_UPS: usize = 3;

/// An odd number, so that there is one in the middle.
const PAIRS: usize = 25;

/// Who runs against whom.
#[derive(Clone, Copy)]
pub(crate) enum Contest {
    HookAgainstCurl,
    /// Tells how far from 1 the ratio of two equal commands comes to lie.
    CurlAgainstItself,
}

/// The ratios of all pairs in ascending order.
pub(crate) struct Ratios(Vec<f64>);

/// Runs all pairs; below 1 the first of the contest is faster.
pub(crate) fn run(scene: &Scene, contest: Contest) -> Result<Ratios> {
    let port = scene.server()?.port();
    let curl = || scene.curl(port);
    let first = || match contest {
        Contest::HookAgainstCurl => Ok(scene.command(scene.upload(port))),
        Contest::CurlAgainstItself => curl(),
    };
    ratios(PAIRS, first, curl)
}

/// The ratios of this many pairs of any two commands.
pub(crate) fn ratios(
    pairs: usize,
    ours: impl Fn() -> Result<Command>,
    theirs: impl Fn() -> Result<Command>,
) -> Result<Ratios> {
    let mut ratios = Vec::new();
    for pair in 0..WARM_UPS + pairs {
        let (ours, theirs) = (seconds(ours()?)?, seconds(theirs()?)?);
        if pair >= WARM_UPS {
            ratios.push(ours.as_secs_f64() / theirs.as_secs_f64());
        }
    }
    ratios.sort_by(f64::total_cmp);
    Ok(Ratios(ratios))
}

/// How long the whole process takes, seen from outside.
#[expect(clippy::disallowed_methods, reason = "measuring time is the purpose")]
fn seconds(mut command: Command) -> Result<Duration> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let name = command.get_program().to_string_lossy().into_owned();
    let start = Instant::now();
    let status = command.status().with_context(|| format!("cannot start {name}"))?;
    let taken = start.elapsed();
    if !status.success() {
        bail!("{name} failed ({status})");
    }
    Ok(taken)
}

impl fmt::Display for Ratios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |place: usize| self.0.get(place).copied().unwrap_or(f64::NAN);
        let last = self.0.len().saturating_sub(1);
        write!(f, "{:.3} ({:.3} to {:.3}, {} pairs)", at(last / 2), at(0), at(last), self.0.len())
    }
}
