//! `edgecert status`: its flags.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// Show each lineage and site: on disk, on record, served; pending work; expiry
#[derive(Args, Clone, Debug, Default)]
#[expect(clippy::doc_markdown, reason = "help is plain text")]
#[command(after_help = "\
Examples:
  edgecert status
  edgecert status --verify
  edgecert status --check --max-lag 7200 --warn-days 20
  edgecert status --metrics /var/lib/prometheus/node-exporter/edgecert.prom")]
pub(crate) struct StatusArgs {
    /// Shake hands with the edge of each site to see what it serves
    #[arg(long)]
    pub(crate) verify: bool,

    /// One line for a monitoring system, with exit code 0, 1 (warning) or 2 (critical)
    #[arg(long)]
    pub(crate) check: bool,

    /// With --check: critical where a deployment is pending for longer [default: 86400]
    #[arg(long, value_name = "SECS", requires = "check")]
    pub(crate) max_lag: Option<u64>,

    /// With --check: a warning where what is deployed expires within so many days [default: 14]
    #[arg(long, value_name = "DAYS", requires = "check")]
    pub(crate) warn_days: Option<u32>,

    /// Write metrics for Prometheus into this file, and no table
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) metrics: Option<PathBuf>,

    /// Forget this lineage: its name as the table shows it, or its directory or certificate
    #[arg(long, value_name = "LINEAGE", conflicts_with_all = ["verify", "check", "metrics"])]
    pub(crate) forget: Option<String>,

    /// Directory of what is remembered between runs [env: EDGECERT_STATE_DIR]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) state_dir: Option<PathBuf>,

    /// Edge to shake hands with; several with commas [default: the site's cname, port 443] [env: EDGECERT_EDGE_ADDRESS]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) edge_address: Option<String>,
}
