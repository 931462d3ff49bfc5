//! `edgecert status`: its flags.

use std::borrow::Cow;
use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use time::Duration;

use super::settings::{Local, SettingArgs, SettingParser};
use super::threshold::{LAG, SYNC_AGE, SyncThreshold, Threshold};

/// Show the state of each site and its lineage
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  edgecert status
  edgecert status --verify
  edgecert status --wide
  edgecert status --check
  edgecert status --check --verify -t 30
  edgecert status --check -w 20% -c 36h --lag-critical 12h --sync-warning off
  edgecert status --metrics /var/lib/prometheus/node-exporter/edgecert.prom

LIMIT is a number of days (14, 1.5), a duration (36h, 90m, 45s, 2d, 1w) or, for -w, -c
and --lag-*, a share of the certificate's lifetime (25%); off disables --sync-* limits.
Where two defaults are given, the lower one applies.")]
pub(crate) struct StatusArgs {
    /// Check what the edge of each site serves, by TLS handshakes
    #[arg(long)]
    pub(crate) verify: bool,

    /// Add columns: the certificate on disk, the record, and the last outcome
    #[arg(long, conflicts_with_all = ["check", "metrics", "forget"])]
    pub(crate) wide: bool,

    /// Write metrics for Prometheus to FILE instead of a table to standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) metrics: Option<PathBuf>,

    /// Delete the state file of a lineage, given by name, directory or certificate
    #[arg(long, value_name = "LINEAGE", conflicts_with_all = ["verify", "check", "metrics"])]
    pub(crate) forget: Option<PathBuf>,

    /// Print a verdict for a monitoring system; exit 0 (OK), 1 (warning), 2 (critical) or 3 (unknown)
    #[arg(long)]
    pub(crate) check: bool,

    #[command(flatten)]
    pub(crate) monitoring: MonitoringArgs,

    #[command(flatten)]
    pub(crate) settings: SettingArgs<Local>,
}

/// The flags of `status --check`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "With --check")]
#[group(skip)]
pub(crate) struct MonitoringArgs {
    /// Warn if a certificate expires in less than this [default: 14d or 25%]
    #[arg(short, long, value_name = "LIMIT", requires = "check", allow_negative_numbers = true,
        value_parser = Threshold::time_left)]
    pub(crate) warning: Option<Threshold>,

    /// Critical if a certificate expires in less than this [default: 3d or 10%]
    #[arg(short, long, value_name = "LIMIT", requires = "check", allow_negative_numbers = true,
        value_parser = Threshold::time_left)]
    pub(crate) critical: Option<Threshold>,

    /// Warn if a deployment has been pending for more than this [default: 6h or 2.5%]
    #[arg(long, value_name = "LIMIT", requires = "check", allow_negative_numbers = true,
        value_parser = Threshold::lag)]
    pub(crate) lag_warning: Option<Threshold>,

    /// Critical if a deployment has been pending for more than this [default: 1d or 5%]
    #[arg(long, value_name = "LIMIT", requires = "check", allow_negative_numbers = true,
        value_parser = Threshold::lag)]
    pub(crate) lag_critical: Option<Threshold>,

    /// Warn if the last sync ended more than this ago [default: 3h]
    #[arg(long, value_name = "LIMIT", requires = "check", allow_negative_numbers = true,
        value_parser = SyncThreshold::parse)]
    pub(crate) sync_warning: Option<SyncThreshold>,

    /// Critical if the last sync ended more than this ago [default: 1d]
    #[arg(long, value_name = "LIMIT", requires = "check", allow_negative_numbers = true,
        value_parser = SyncThreshold::parse)]
    pub(crate) sync_critical: Option<SyncThreshold>,

    /// Report unknown if the check takes longer than this many seconds
    #[arg(short = 't', long = "timeout", value_name = "SECS", requires = "check", allow_negative_numbers = true,
        value_parser = SettingParser::<NonZeroU64>::NEW)]
    pub(crate) check_timeout: Option<NonZeroU64>,

    /// Report OK instead of unknown if there is no lineage
    #[arg(long, requires = "check")]
    pub(crate) allow_empty: bool,

    /// Earlier name of --warning.
    #[arg(long, value_name = "DAYS", requires = "check", conflicts_with = "warning", hide = true)]
    pub(crate) warn_days: Option<u32>,

    /// Earlier form of --lag-critical, in seconds.
    #[arg(long, value_name = "SECS", requires = "check", conflicts_with = "lag_critical", hide = true)]
    pub(crate) max_lag: Option<u64>,
}

impl StatusArgs {
    /// The exit code of a `--check` that failed.
    pub(crate) const UNKNOWN: u8 = 3;
}

impl MonitoringArgs {
    /// Whether a word of the command line is `--check`, or a flag for it, perhaps with a value.
    pub(super) fn is_among<'a>(words: impl IntoIterator<Item = Cow<'a, str>>) -> bool {
        let flags = Self::augment_args(clap::Command::new(""));
        words.into_iter().any(|word| {
            let is_short = |short: char| word.strip_prefix('-').is_some_and(|rest| rest.starts_with(short));
            let is_long = |long: &str| {
                let rest = word.strip_prefix("--").and_then(|rest| rest.strip_prefix(long));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
            };
            let is_word = |flag: &clap::Arg| {
                flag.get_short().is_some_and(is_short) || flag.get_long().is_some_and(is_long)
            };
            is_long("check") || flags.get_arguments().any(is_word)
        })
    }

    /// The value of `--warning`, or of its earlier name.
    pub(crate) fn time_left_warning(&self) -> Option<Threshold> {
        let days = || self.warn_days.map(|days| Threshold::Fixed(Duration::days(days.into())));
        self.warning.or_else(days)
    }

    /// The value of `--lag-critical`, or of its earlier form.
    pub(crate) fn lag_critical(&self) -> Option<Threshold> {
        self.lag_critical.or(self.max_lag())
    }

    /// The value of `--lag-warning`. With `--max-lag`, that is also the warning, so that none comes earlier.
    pub(crate) fn lag_warning(&self) -> Option<Threshold> {
        self.lag_warning.or(self.max_lag())
    }

    fn max_lag(&self) -> Option<Threshold> {
        let seconds = i64::try_from(self.max_lag?).unwrap_or(i64::MAX);
        Some(Threshold::Fixed(Duration::seconds(seconds)))
    }

    /// Describes two thresholds that contradict each other because the warning would come after the critical alert.
    pub(super) fn contradiction(&self) -> Option<String> {
        if let (Some(warning), Some(critical)) = (self.time_left_warning(), self.critical)
            && warning.is_below(critical) == Some(true)
        {
            return Some(format!(
                "--warning {warning} is less than --critical {critical}; the warning would come after the critical alert"
            ));
        }
        let sync_age = |threshold| match threshold {
            SyncThreshold::Off => None,
            SyncThreshold::After(duration) => Some(Threshold::Fixed(duration)),
        };
        let lag_critical = self.lag_critical().map_or(LAG[1].both().to_vec(), |critical| vec![critical]);
        let sync_critical = sync_age(self.sync_critical.unwrap_or(SyncThreshold::After(SYNC_AGE[1])));
        late_warning("lag", self.lag_warning(), &lag_critical)
            .or_else(|| late_warning("sync", self.sync_warning.and_then(sync_age), sync_critical.as_slice()))
    }
}

/// Describes a warning threshold that is above any of the critical ones.
fn late_warning(what: &str, warning: Option<Threshold>, critical: &[Threshold]) -> Option<String> {
    let warning = warning?;
    let critical = critical.iter().find(|critical| critical.is_below(warning) == Some(true))?;
    let days = warning.whole_days().map(|days| format!("write {days}h if you mean hours, or "));
    Some(format!(
        "--{what}-warning {warning} is more than --{what}-critical {critical}; {}raise --{what}-critical too",
        days.unwrap_or_default()
    ))
}
