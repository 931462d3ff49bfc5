//! `edgecert sync`: its flags.

use clap::{Args, value_parser};

use crate::inventory::Shard;
use crate::settings::Layer;

/// Longest `--splay`, a day in seconds: more is a mistake, and nothing would be deployed meanwhile.
const MAX_SPLAY: u64 = 24 * 60 * 60;

/// Retry failures, deploy renewals, repair drift (for timers)
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  edgecert sync
  edgecert sync --splay 300
  edgecert sync --shard 0/4
  edgecert sync --kubernetes --selector edge=yes

A run covers every lineage deployed before and every [[lineage]] of the configuration file.
--timeout applies to each lineage.")]
pub(crate) struct SyncArgs {
    /// Start after a random delay of up to SECS
    #[arg(long, value_name = "SECS", default_value_t = 0, value_parser = value_parser!(u64).range(..=MAX_SPLAY))]
    pub(crate) splay: u64,

    /// Process only shard I of N of the lineages, for example 0/4 to 3/4
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,

    /// Also deploy the TLS secrets of the cluster that this pod runs in
    #[arg(long)]
    pub(crate) kubernetes: bool,

    /// Namespace of the secrets (repeatable) [default: that of the pod]
    #[arg(long = "namespace", value_name = "NAME", requires = "kubernetes", value_parser = namespace)]
    pub(crate) namespaces: Vec<String>,

    /// Label selector of the secrets, as in kubectl, for example edge=yes
    #[arg(long, value_name = "LABELS", requires = "kubernetes")]
    pub(crate) selector: Option<String>,

    #[command(flatten)]
    pub(crate) settings: Layer,
}

/// A namespace is a DNS label (RFC 1123).
fn namespace(text: &str) -> Result<String, &'static str> {
    let is_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_valid = !text.is_empty() && text.len() <= 63 && text.chars().all(is_label);
    if is_valid { Ok(text.to_owned()) } else { Err("expected lower-case letters, digits and hyphens") }
}

#[cfg(test)]
mod tests {
    use crate::cli::Cli;

    #[test]
    fn delay_is_at_most_a_day() {
        for (seconds, is_valid) in [
            ("0", true),
            ("86400", true),
            ("86401", false),
            ("9007199254740993", false),
            ("18446744073709551616", false),
            ("-1", false),
            ("1e308", false),
        ] {
            let arguments = ["edgecert", "sync", &format!("--splay={seconds}")].map(Into::into);
            assert_eq!(Cli::read(&arguments, 80).is_ok(), is_valid, "{seconds}");
        }
    }
}
