//! `edgecert status`: its flags.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::settings::{Local, SettingArgs};

/// Show the state of each site and its lineage
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  edgecert status
  edgecert status --verify
  edgecert status --wide
  edgecert status --check --max-lag 7200 --warn-days 20
  edgecert status --metrics /var/lib/prometheus/node-exporter/edgecert.prom")]
pub(crate) struct StatusArgs {
    /// Check what the edge of each site serves, by TLS handshakes
    #[arg(long)]
    pub(crate) verify: bool,

    /// Add columns: the certificate on disk, the record, and the last outcome
    #[arg(long, conflicts_with_all = ["check", "metrics", "forget"])]
    pub(crate) wide: bool,

    /// Print one line for a monitoring system; exit 0 (OK), 1 (warning) or 2 (critical)
    #[arg(long)]
    pub(crate) check: bool,

    /// With --check: critical if a deployment has been pending for more than SECS [default: 86400]
    #[arg(long, value_name = "SECS", requires = "check")]
    pub(crate) max_lag: Option<u64>,

    /// With --check: warn if a deployed certificate expires within DAYS [default: 14]
    #[arg(long, value_name = "DAYS", requires = "check")]
    pub(crate) warn_days: Option<u32>,

    /// Write metrics for Prometheus to FILE instead of a table to standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) metrics: Option<PathBuf>,

    /// Delete the state file of a lineage, given by name, directory or certificate
    #[arg(long, value_name = "LINEAGE", conflicts_with_all = ["verify", "check", "metrics"])]
    pub(crate) forget: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) settings: SettingArgs<Local>,
}

impl StatusArgs {
    /// The exit code of a `--check` that failed.
    pub(super) const CRITICAL: u8 = 2;
}
