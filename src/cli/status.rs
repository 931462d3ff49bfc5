//! `edgecert status`: its flags.

use std::borrow::Cow;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::threshold::Threshold;
use crate::settings::{Local, Seconds, quiet};

// `edgecert status`.
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
    pub(crate) settings: Local,
}

// The flags of `status --check`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "With --check")]
#[group(requires = "check", multiple = true)]
pub(crate) struct MonitoringArgs {
    /// Warn if a certificate expires in less than this [default: 14d or 25%]
    #[arg(short, long, value_name = "LIMIT", allow_negative_numbers = true, value_parser = Threshold::time_left)]
    pub(crate) warning: Option<Threshold>,

    /// Critical if a certificate expires in less than this [default: 3d or 10%]
    #[arg(short, long, value_name = "LIMIT", allow_negative_numbers = true, value_parser = Threshold::time_left)]
    pub(crate) critical: Option<Threshold>,

    /// Warn if a deployment has been pending for more than this [default: 6h or 2.5%]
    #[arg(long, value_name = "LIMIT", allow_negative_numbers = true, value_parser = Threshold::lag)]
    pub(crate) lag_warning: Option<Threshold>,

    /// Critical if a deployment has been pending for more than this [default: 1d or 5%]
    #[arg(long, value_name = "LIMIT", allow_negative_numbers = true, value_parser = Threshold::lag)]
    pub(crate) lag_critical: Option<Threshold>,

    /// Warn if the last sync ended more than this ago [default: 3h]
    #[arg(long, value_name = "LIMIT", allow_negative_numbers = true, value_parser = Threshold::sync_age)]
    pub(crate) sync_warning: Option<Threshold>,

    /// Critical if the last sync ended more than this ago [default: 1d]
    #[arg(long, value_name = "LIMIT", allow_negative_numbers = true, value_parser = Threshold::sync_age)]
    pub(crate) sync_critical: Option<Threshold>,

    /// Report unknown if the check takes longer than this many seconds
    #[arg(short = 't', long = "timeout", value_name = "SECS", allow_negative_numbers = true,
        value_parser = quiet::<Seconds<1>>())]
    pub(crate) check_timeout: Option<Seconds<1>>,

    /// Report OK instead of unknown if there is no lineage
    #[arg(long)]
    pub(crate) allow_empty: bool,
}

impl MonitoringArgs {
    /// Whether a word of the command line is `--check`, or a flag for it, perhaps with a value.
    pub(super) fn is_among<'a>(words: impl IntoIterator<Item = Cow<'a, str>>) -> bool {
        let flags = Self::augment_args(clap::Command::new(""));
        words.into_iter().any(|word| {
            let name = word.split('=').next().unwrap_or_default();
            let is_word = |flag: &clap::Arg| {
                flag.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long))
                    || flag.get_short().is_some_and(|short| word.starts_with(&format!("-{short}")))
            };
            name == "--check" || flags.get_arguments().any(is_word)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_the_check_are_recognised() {
        let is_among = |line: &str| MonitoringArgs::is_among(line.split(' ').map(Cow::from));
        for line in ["--check", "--check=true", "-w14", "-c 3", "-t 5", "--lag-warning=5h", "--allow-empty"] {
            assert!(is_among(line), "{line}");
        }
        assert!(!is_among("--wide --verify --checks -v"));
    }
}
