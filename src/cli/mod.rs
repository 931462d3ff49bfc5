//! The command line: commands, flags and help. Completions come from the same definition.
//!
//! Parsing only. Defaults belong to `settings`, because a default here would shadow the configuration file.

mod certs;
mod doctor;
mod invocation;
mod service;
mod settings;
mod sites;
mod status;
mod sync;

use std::path::PathBuf;

use clap::{
    ArgAction, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum, ValueHint,
};
use time::OffsetDateTime;

pub(crate) use self::certs::{CertsCommand, DownloadArgs};
pub(crate) use self::doctor::DoctorArgs;
pub(crate) use self::invocation::Action;
pub use self::invocation::{CommandLine, Invocation, UsageError, command_name, wants_json};
pub(crate) use self::service::{ServiceArgs, WaitArgs};
pub(crate) use self::settings::SettingArgs;
pub(crate) use self::sites::{
    BindArgs, CreateArgs, DeleteArgs, FieldArgs, ListArgs, OneArgs, Origin, SiteName, SitesCommand,
    UpdateArgs,
};
pub(crate) use self::status::StatusArgs;
pub(crate) use self::sync::SyncArgs;
use crate::names::Domain;
use crate::settings::Guards;
use crate::source::Named;
use crate::text::rfc3339;

const ABOUT: &str = "Deploy renewed certificates to the edge and verify what it serves";

const LONG_ABOUT: &str = "\
Deploy renewed certificates to the edge and verify what it serves

Run as the deploy hook of an ACME client, edgecert reads the client's variables,
checks the renewed certificate and its key, uploads them for every covered site,
and waits until the edge serves the certificate.";

/// Examples first: they are what most people open the help for.
const HELP_TEMPLATE: &str = "\
{about}

{usage-heading} {usage}

Examples:
  certbot reconfigure --cert-name example.com --deploy-hook edgecert
  acme.sh --install-cert -d example.com --reloadcmd edgecert
  edgecert --lineage /etc/letsencrypt/live/example.com
  edgecert plan --lineage /etc/letsencrypt/live/example.com
  edgecert check --cert fullchain.pem --key privkey.pem
  edgecert sync
  edgecert status

{all-args}{after-help}
";

const AFTER_HELP: &str = "\
Without a command, edgecert deploys the certificate that --lineage, --cert or the
environment of an ACME client's hook names: see `edgecert help deploy`.";

const AFTER_LONG_HELP: &str = "\
Exit codes:
   0  every covered site has the certificate, or there was nothing to do
   2  usage error
  65  a local check or a guard refused; nothing was sent
  66  a file is missing or cannot be read
  69  the service refused, or no site is covered
  70  internal error
  75  temporary: network, 429, 5xx, deadline, or an edge that still serves the old
      certificate; recorded for `edgecert sync` to retry
  76  the service sent an unintelligible response
  77  the service rejected the API key
  78  configuration error

The API key is never an argument: set EDGECERT_API_KEY, or name a file that holds it.";

/// The parsed command line.
#[derive(Parser, Debug)]
#[command(
    name = "edgecert",
    version,
    about = ABOUT,
    long_about = LONG_ABOUT,
    help_template = HELP_TEMPLATE,
    after_help = AFTER_HELP,
    after_long_help = AFTER_LONG_HELP
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) deploy: DeployArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Flags that every command takes.
#[derive(Args, Clone, Debug)]
#[expect(clippy::doc_markdown, reason = "help is plain text")]
pub(crate) struct Common {
    /// Configuration file [default: /etc/edgecert/config.toml] [env: EDGECERT_CONFIG]
    #[arg(long, value_name = "FILE", global = true, display_order = GLOBAL_FLAGS, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,

    /// Print one JSON object to standard output
    #[arg(long, global = true, display_order = GLOBAL_FLAGS)]
    pub(crate) json: bool,

    /// Log more to standard error (-vv for everything)
    #[arg(short, long, action = ArgAction::Count, global = true, display_order = GLOBAL_FLAGS)]
    pub(crate) verbose: u8,
}

/// Position in the help: after a command's own flags.
const GLOBAL_FLAGS: usize = 500;

/// The commands. `defer` builds the flags of a command only when it runs; the hook has no use for the others.
///
/// A variant's summary is for the list of commands; the help of the command itself begins with the summary of its
/// arguments, so both are the same.
#[derive(Subcommand, Debug)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Deploy a renewed certificate (the default in an ACME client's hook)
    Deploy(DeployArgs),
    /// Run the local checks, without network or configuration
    Check(CheckArgs),
    /// Show what deploy would do, and why
    Plan(PlanArgs),
    /// Retry failures, deploy renewals, repair drift (for timers)
    Sync(SyncArgs),
    /// Show each lineage and its sites: on disk, on record, served
    Status(StatusArgs),
    /// Check the setup before the first renewal does
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
    Completions(CompletionsArgs),
}

/// Print a completion script for a shell
#[derive(Args, Clone, Copy, Debug)]
#[command(after_help = "\
Examples:
  edgecert completions bash > edgecert.bash
  edgecert completions zsh > _edgecert
  edgecert completions fish > edgecert.fish

On Debian, the shells load these files:
  /usr/share/bash-completion/completions/edgecert
  /usr/share/zsh/vendor-completions/_edgecert
  /usr/share/fish/vendor_completions.d/edgecert.fish")]
pub(crate) struct CompletionsArgs {
    /// Shell to print the script for
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// A shell with a completion script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Show what deploy would do, and why
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  edgecert plan --lineage /etc/letsencrypt/live/example.com
  edgecert plan --lineage /etc/letsencrypt/live/example.com --domain example.com
  edgecert plan --cert fullchain.pem --key privkey.pem --json

It reads the account's sites and certificates and what the edge serves, and changes nothing.")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) deploy: DeployArgs,
}

/// Deploy a renewed certificate (the default in an ACME client's hook)
#[derive(Args, Clone, Debug, Default)]
#[command(after_help = "\
Examples:
  RENEWED_LINEAGE=/etc/letsencrypt/live/example.com edgecert deploy
  edgecert deploy --lineage /etc/letsencrypt/live/example.com
  edgecert deploy --cert fullchain.pem --key privkey.pem --domain example.com
  edgecert deploy --lineage /etc/letsencrypt/live/example.com --dry-run

Without --lineage and --cert, the variables or arguments of the ACME client that runs the hook
name the files: certbot, acme.sh, lego and dehydrated are recognised.")]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    pub(crate) certificate: CertificateArgs,

    /// Site to deploy to (repeatable) [default: every covered site]
    #[arg(long = "domain", value_name = "DOMAIN")]
    pub(crate) domains: Vec<Domain>,

    /// Show what would be done, and why, without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) guards: GuardArgs,

    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

// Overrides for what a deployment may break elsewhere. No doc comment: clap would take it for the summary of the command.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Guards (a refusal names the flag that overrides it)")]
pub(crate) struct GuardArgs {
    /// Replace a record even if another site bound to it loses coverage
    #[arg(long)]
    pub(crate) allow_shrink: bool,

    /// Replace a certificate that was issued later than this one
    #[arg(long)]
    pub(crate) allow_older: bool,

    /// Replace a record that the service issues and renews itself (type lets)
    #[arg(long)]
    pub(crate) replace_lets: bool,
}

/// Run the local checks, without network or configuration
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  edgecert check --lineage /etc/letsencrypt/live/example.com
  edgecert check --cert fullchain.pem --key privkey.pem --domain example.com
  edgecert check --lineage /etc/letsencrypt/live/example.com --at 2027-01-31T00:00:00Z

With --cert and without --key, the check of the key is skipped.")]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) certificate: CertificateArgs,

    /// Domain that the certificate must cover (repeatable)
    #[arg(long = "domain", value_name = "DOMAIN")]
    pub(crate) domains: Vec<Domain>,

    /// Require a path to a root in FILE, or in the system's trust store with `system`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trust_anchors: Option<PathBuf>,

    /// Check as of this time instead of now, for example 2027-01-31T00:00:00Z
    #[arg(long, value_name = "RFC3339", value_parser = parse_time)]
    pub(crate) at: Option<OffsetDateTime>,
}

// The certificate's files; without any of these flags, the ACME client's variables name them.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Certificate")]
pub(crate) struct CertificateArgs {
    /// Certificate chain in PEM, leaf first
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cert: Option<PathBuf>,

    /// Private key in PEM
    #[arg(long, value_name = "FILE", requires = "cert", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,

    /// Directory of certbot, acme.sh, lego or dehydrated, or a mounted Kubernetes secret
    #[arg(long, value_name = "DIR", conflicts_with_all = ["cert", "key"], value_hint = ValueHint::DirPath)]
    pub(crate) lineage: Option<PathBuf>,
}

impl Cli {
    /// Parses the arguments. Help and version are errors that print themselves, as clap has it.
    pub(crate) fn read(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Result<Self, clap::Error> {
        let mut command = Self::root();
        let matches = command.try_get_matches_from_mut(arguments)?;
        if let Some((name, _)) = matches.subcommand()
            && let Some(flag) = misplaced_flag(&matches)
        {
            let message = format!("--{flag} must follow `{name}`");
            return Err(command.error(clap::error::ErrorKind::ArgumentConflict, message));
        }
        Self::from_arg_matches(&matches)
    }

    /// All commands and flags, for completion scripts.
    pub(crate) fn definition() -> clap::Command {
        let mut command = Self::root();
        // Builds the flags that `defer` puts off.
        command.build();
        command
    }

    /// The short help, for a call with nothing to do.
    pub(crate) fn help() -> String {
        Self::root().render_help().to_string()
    }

    /// The definition. The short help omits the flags of `deploy`, so that it fits a terminal.
    fn root() -> clap::Command {
        Self::command().mut_args(|flag| {
            let is_of_deploy = !flag.is_global_set();
            flag.hide_short_help(is_of_deploy)
        })
    }
}

impl CertificateArgs {
    /// The files as the command line names them.
    pub(crate) fn named(&self) -> Named {
        Named { cert: self.cert.clone(), key: self.key.clone(), lineage: self.lineage.clone() }
    }
}

impl GuardArgs {
    /// Converts the flags to what the engine takes.
    pub(crate) fn guards(&self) -> Guards {
        Guards {
            allow_shrink: self.allow_shrink,
            allow_older: self.allow_older,
            replace_lets: self.replace_lets,
        }
    }
}

/// A flag of `deploy` that precedes a subcommand, where it would be ignored.
fn misplaced_flag(matches: &clap::ArgMatches) -> Option<String> {
    let is_given = |id: &str| {
        matches!(matches.try_contains_id(id), Ok(true))
            && matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine)
    };
    let flags = DeployArgs::augment_args(clap::Command::new(""));
    let ids = flags.get_arguments().map(|flag| flag.get_id().as_str());
    ids.into_iter().find(|id| is_given(id)).map(|id| id.replace('_', "-"))
}

fn parse_time(text: &str) -> Result<OffsetDateTime, &'static str> {
    rfc3339::parse(text).map_err(|_| "expected an RFC 3339 time such as 2027-01-31T00:00:00Z")
}
