//! The commands and their flags; those of `sites` and `status` have files of their own.
//!
//! The structs of flags have no doc comments: clap would take them for the summary of every command that has these flags.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint, value_parser};
use clap_complete::Shell;
use time::OffsetDateTime;

use super::sites::SitesCommand;
use super::status::StatusArgs;
use crate::names::Domain;
use crate::settings::{Connection, Guards, Layer, switch};
use crate::source::{Named, Source};
use crate::state::Shard;
use crate::text::rfc3339;

/// The commands. With `defer`, only the flags of the command that runs are built, which saves the hook time.
#[derive(Subcommand, Debug)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Deploy a renewed certificate (the default in an ACME client's hook)
    #[command(after_help = "\
Examples:
  RENEWED_LINEAGE=/etc/letsencrypt/live/example.com edgecert deploy
  edgecert deploy --lineage /etc/letsencrypt/live/example.com
  edgecert deploy --cert fullchain.pem --key privkey.pem --domain example.com
  edgecert deploy --lineage /etc/letsencrypt/live/example.com --dry-run

Without --lineage and --cert, the variables or arguments of the ACME client that runs the hook
name the files: certbot, acme.sh, lego and dehydrated are recognised.")]
    Deploy(DeployArgs),
    /// Run the local checks, without network or configuration
    #[command(after_help = "\
Examples:
  edgecert check --lineage /etc/letsencrypt/live/example.com
  edgecert check --cert fullchain.pem --key privkey.pem --domain example.com
  edgecert check --cert fullchain.pem --at 2027-01-31T00:00:00Z

With --cert and without --key, the check of the key is skipped.")]
    Check(CheckArgs),
    /// Show what deploy would do, and why
    #[command(after_help = "\
Examples:
  edgecert plan --lineage /etc/letsencrypt/live/example.com
  edgecert plan --lineage /etc/letsencrypt/live/example.com --domain example.com
  edgecert plan --cert fullchain.pem --key privkey.pem --json

A plan reads the account's sites and certificates and what the edge serves, and changes nothing.")]
    Plan(DeployArgs),
    /// Retry failures, deploy renewals, repair drift (for timers)
    #[command(after_help = "\
Examples:
  edgecert sync
  edgecert sync --splay 300
  edgecert sync --shard 0/4
  edgecert sync --kubernetes --selector edge=yes

A run covers every lineage deployed before and every [[lineage]] of the configuration file.
--timeout applies to each lineage.")]
    Sync(SyncArgs),
    /// Show the state of each site and its lineage
    Status(StatusArgs),
    /// Check settings, service, lineages, hooks and timers
    #[command(after_help = "\
Examples:
  edgecert doctor
  edgecert doctor --json
  edgecert doctor --settings

Run it as the user that the ACME client runs as. The exit code is 0 if no finding is `fail`,
else that of the most severe one. The last line says what to do next.")]
    Doctor(DoctorArgs),
    /// List and download certificates
    #[command(
        subcommand,
        after_help = "Examples:\n  edgecert certs list\n  edgecert certs download 5 --out certs"
    )]
    Certs(CertsCommand),
    /// List, show, create, change and delete sites
    #[command(
        subcommand,
        after_help = "Examples:\n  edgecert sites list\n  edgecert sites create new.example.com --origin 192.0.2.10"
    )]
    Sites(SitesCommand),
    /// Print a completion script for a shell
    #[command(after_help = "\
Examples:
  edgecert completions bash > edgecert.bash
  edgecert completions zsh > _edgecert
  edgecert completions fish > edgecert.fish

On Debian, the shells load these files:
  /usr/share/bash-completion/completions/edgecert
  /usr/share/zsh/vendor-completions/_edgecert
  /usr/share/fish/vendor_completions.d/edgecert.fish")]
    Completions {
        /// Shell to print the script for
        shell: Shell,
    },
    /// `deploy_cert` by dehydrated.
    #[command(skip)]
    DehydratedDeploy(Source),
    /// `unchanged_cert` by dehydrated.
    #[command(skip)]
    DehydratedSync(Source),
}

// `edgecert deploy` and `edgecert plan`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    pub(crate) certificate: Named,

    /// Site to deploy to (repeatable) [default: every covered site]
    #[arg(long = "domain", value_name = "DOMAIN", help_heading = None::<&'static str>)]
    pub(crate) domains: Vec<Domain>,

    /// Show what would be done, and why, without changing anything
    #[arg(long, help_heading = None::<&'static str>)]
    pub(crate) dry_run: bool,

    /// Upload even if every address already serves the certificate
    #[arg(long, help_heading = None::<&'static str>)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) guards: Guards,

    #[command(flatten)]
    pub(crate) settings: Layer,
}

// `edgecert check`.
#[derive(Args, Clone, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) certificate: Named,

    /// Domain that the certificate must cover (repeatable)
    #[arg(long = "domain", value_name = "DOMAIN", help_heading = None::<&'static str>)]
    pub(crate) domains: Vec<Domain>,

    /// Require a path to a root in FILE, or with `system` to a root of the system
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = None::<&'static str>)]
    pub(crate) trust_anchors: Option<PathBuf>,

    /// Warn of a test, staging or self-signed issuer instead of refusing it
    #[arg(long, value_name = "BOOL", value_parser = switch(), num_args = 0..=1, require_equals = true,
        default_missing_value = "yes", help_heading = None::<&'static str>)]
    pub(crate) allow_untrusted: Option<bool>,

    /// Check as of this time instead of now, for example 2027-01-31T00:00:00Z
    #[arg(long, value_name = "RFC3339", value_parser = parse_time, help_heading = None::<&'static str>)]
    pub(crate) at: Option<OffsetDateTime>,
}

fn parse_time(text: &str) -> Result<OffsetDateTime, &'static str> {
    rfc3339::parse(text).ok_or("expected an RFC 3339 time such as 2027-01-31T00:00:00Z")
}

// `edgecert sync`.
#[derive(Args, Clone, Debug, Default)]
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

/// Longest `--splay`, a day in seconds: more is a mistake, and nothing would be deployed meanwhile.
const MAX_SPLAY: u64 = 24 * 60 * 60;

/// A namespace is a DNS label (RFC 1123).
fn namespace(text: &str) -> Result<String, &'static str> {
    let is_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_valid = !text.is_empty() && text.len() <= 63 && text.chars().all(is_label);
    if is_valid { Ok(text.to_owned()) } else { Err("expected lower-case letters, digits and hyphens") }
}

// `edgecert doctor`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorArgs {
    /// Only list the settings in effect, and where each comes from
    #[arg(long = "settings")]
    pub(crate) lists_settings: bool,
    /// Look for ACME clients and hooks below DIR, for example in a mounted image
    #[arg(long, value_name = "DIR", default_value = "/", hide_default_value = true, value_hint = ValueHint::DirPath)]
    pub(crate) root: PathBuf,
    #[command(flatten)]
    pub(crate) settings: Layer,
}

// `edgecert certs …`.
#[derive(Subcommand, Clone, Debug)]
#[command(defer = true)]
pub(crate) enum CertsCommand {
    /// List the account's certificates and the sites bound to each
    #[command(after_help = "Examples:\n  edgecert certs list\n  edgecert certs list --json")]
    List(Connection),
    /// Save a certificate and its private key to a directory
    Download(DownloadArgs),
}

// `edgecert certs download`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  edgecert certs download 5 --out certs
  edgecert certs download 5 --out certs --force
  edgecert certs download 5 --cert-only --out -

The files are NAME.crt and NAME.key (mode 0600). The private key is never printed.")]
pub(crate) struct DownloadArgs {
    /// Certificate ID, from `edgecert certs list`
    #[arg(value_name = "ID")]
    pub(crate) id: u64,

    /// Directory to write to, created if missing; `-` with --cert-only prints the certificate
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,

    /// Omit the private key
    #[arg(long)]
    pub(crate) cert_only: bool,

    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) service: Connection,
}

impl DownloadArgs {
    /// Whether the certificate is printed instead of written to files.
    pub(crate) fn is_to_stdout(&self) -> bool {
        self.out == Path::new("-")
    }
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
