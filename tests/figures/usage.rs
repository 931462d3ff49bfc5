//! Wall and CPU time of commands that run in turn, so that other load on the machine affects both.

use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};

/// What a command took.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) wall: f64,
    /// Of the command and its children, user and system.
    pub(crate) cpu: f64,
}

/// Pairs of runs, ours and the peer's.
pub(crate) struct Pairs(Vec<(Usage, Usage)>);

/// A ratio of pairs.
pub(crate) struct Spread {
    /// In ascending order.
    ratios: Vec<f64>,
    /// Medians of the values that were compared.
    pub(crate) ours: f64,
    pub(crate) peer: f64,
}

/// Runs two commands in turn, once uncounted to fill the caches. Each function prepares its run and returns what [`run`] measured.
pub(crate) fn pairs(
    count: usize,
    mut ours: impl FnMut() -> Result<Usage>,
    mut peer: impl FnMut() -> Result<Usage>,
) -> Result<Pairs> {
    let mut pairs = Vec::new();
    for _ in 0..=count {
        pairs.push((ours()?, peer()?));
    }
    Ok(Pairs(pairs.split_off(1)))
}

impl Pairs {
    /// Ratio of the wall times, ours to the peer's.
    pub(crate) fn wall(&self) -> Spread {
        self.spread(|usage| usage.wall, |ours, peer| ours / peer)
    }

    /// Ratio of the CPU times, ours to the peer's.
    pub(crate) fn cpu(&self) -> Spread {
        self.spread(|usage| usage.cpu, |ours, peer| ours / peer)
    }

    /// How many times faster ours is: the ratio of the peer's wall time to ours.
    pub(crate) fn speed(&self) -> Spread {
        self.spread(|usage| usage.wall, |ours, peer| peer / ours)
    }

    fn spread(&self, value: fn(&Usage) -> f64, ratio: fn(f64, f64) -> f64) -> Spread {
        let (ours, peer): (Vec<f64>, Vec<f64>) =
            self.0.iter().map(|(ours, peer)| (value(ours), value(peer))).unzip();
        let ratios = ours.iter().zip(&peer).map(|(ours, peer)| ratio(*ours, *peer)).collect();
        Spread { ratios: sorted(ratios), ours: quantile(&sorted(ours), 2), peer: quantile(&sorted(peer), 2) }
    }
}

impl Spread {
    /// Number of pairs.
    pub(crate) fn pairs(&self) -> usize {
        self.ratios.len()
    }

    pub(crate) fn median(&self) -> f64 {
        self.quarter(2)
    }

    /// Minimum, quartiles and maximum, for 0 to 4.
    pub(crate) fn quarter(&self, quarter: usize) -> f64 {
        quantile(&self.ratios, quarter)
    }
}

/// The value at a quarter of the way through ascending values.
fn quantile(ascending: &[f64], quarter: usize) -> f64 {
    let at = ascending.len().saturating_sub(1) * quarter;
    let (low, high) = (at / 4, at.div_ceil(4));
    let value = |index: usize| ascending.get(index).copied().unwrap_or(f64::NAN);
    let weight = [0.0, 0.25, 0.5, 0.75].get(at % 4).copied().unwrap_or_default();
    value(low) * (1.0 - weight) + value(high) * weight
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// Runs a command that must succeed, and measures it.
#[expect(clippy::disallowed_methods, reason = "measuring time is the purpose")]
pub(crate) fn run(mut command: Command) -> Result<Usage> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let name = command.get_program().to_string_lossy().into_owned();
    let (start, before) = (Instant::now(), children_cpu()?);
    let status = command.status().with_context(|| format!("cannot start {name}"))?;
    let (wall, after) = (start.elapsed(), children_cpu()?);
    if !status.success() {
        bail!("{name} failed ({status})");
    }
    Ok(Usage { wall: wall.as_secs_f64(), cpu: after - before })
}

/// CPU time of all children that have ended, in seconds.
fn children_cpu() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let times = [usage.user_time(), usage.system_time()];
    let micros: i64 = times.iter().map(|time| time.tv_sec() * 1_000_000 + time.tv_usec()).sum();
    Ok(micros as f64 / 1e6)
}
