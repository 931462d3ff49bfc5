//! The command line: commands, flags and help. No defaults stand here; see `settings`.

mod certs;
mod doctor;
mod service;
mod sites;
mod status;
mod sync;

use std::path::PathBuf;

use clap::{
    ArgAction, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum, ValueHint,
};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

pub(crate) use self::certs::{CertsCommand, DownloadArgs};
pub(crate) use self::doctor::DoctorArgs;
pub(crate) use self::service::{ServiceArgs, WaitArgs};
pub(crate) use self::sites::{
    BindArgs, CreateArgs, DeleteArgs, FieldArgs, ListArgs, OneArgs, Origin, SiteName, SitesCommand,
    UpdateArgs,
};
pub(crate) use self::status::StatusArgs;
pub(crate) use self::sync::{Shard, SyncArgs};
use crate::names::Domain;
use crate::settings::Layer;
use crate::source::Named;

const LONG_ABOUT: &str = "\
Bring a renewed certificate to the edge and report what became of every site

Called by an ACME client, edgecert reads the client's variables, checks the renewed
certificate and its key, uploads them, and does not stop until the edge shows them.";

const AFTER_HELP: &str = "\
Examples:
  certbot renew --deploy-hook edgecert
  acme.sh --install-cert -d example.com --reloadcmd edgecert
  edgecert --lineage /etc/letsencrypt/live/example.com
  edgecert plan --lineage /etc/letsencrypt/live/example.com
  edgecert check --cert fullchain.pem --key privkey.pem --domain example.com
  edgecert sync

Exit codes:
   0  every covered site has what was asked for
   2  wrong command line
  65  a local check or a guard refused; nothing was sent
  66  a file is missing or cannot be read
  69  the service refused, or no site is covered
  70  a fault of edgecert itself
  75  temporary: network, 429, 5xx, deadline, an edge that still serves the old leaf;
      remembered, `edgecert sync` will finish it
  76  the service answered something that cannot be understood
  77  the service does not accept the API key
  78  configuration

The API key is never an argument: set EDGECERT_API_KEY or name a file.";

/// Everything on the command line.
#[derive(Parser, Debug)]
#[command(
    name = "edgecert",
    version,
    about = "Bring a renewed certificate to the edge and report what became of every site",
    long_about = LONG_ABOUT,
    after_help = AFTER_HELP,
    subcommand_help_heading = "Commands",
    disable_help_subcommand = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) deploy: DeployArgs,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Flags of every command.
#[derive(Args, Clone, Debug)]
#[expect(clippy::doc_markdown, reason = "help is plain text")]
pub(crate) struct Common {
    /// Configuration file [default: /etc/edgecert/config.toml] [env: EDGECERT_CONFIG]
    #[arg(long, value_name = "FILE", global = true, display_order = LAST, value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,

    /// Print one JSON object on standard output
    #[arg(long, global = true, display_order = LAST)]
    pub(crate) json: bool,

    /// Say more on standard error (twice: everything)
    #[arg(short, long, action = ArgAction::Count, global = true, display_order = LAST)]
    pub(crate) verbose: u8,
}

/// Behind the flags of a command come those of all commands.
const LAST: usize = 500;

/// What to do. The flags of a command are put together when that one is called: the hook has no time for the others.
/// What is said about one here stands in its list; its own help begins with what is said about its flags.
#[derive(Subcommand, Debug)]
#[command(defer = true)]
pub(crate) enum Command {
    /// Check a renewed certificate, upload it, and see it served (the hook)
    Deploy(DeployArgs),
    /// Show what deploy would do and why; read the service, change nothing
    Plan(PlanArgs),
    /// Run the local checks alone; no network, no configuration
    Check(CheckArgs),
    /// Finish what failed, deploy what changed, repair what drifted (for cron and timers)
    Sync(SyncArgs),
    /// Show each lineage and site: on disk, on record, served; pending work; expiry
    Status(StatusArgs),
    /// Find faults of the set-up before the first renewal does
    Doctor(DoctorArgs),
    /// List and download the account's certificates
    #[command(
        subcommand,
        after_help = "Examples:\n  edgecert certs list\n  edgecert certs download 5 --out certs"
    )]
    Certs(CertsCommand),
    /// List, show, create, change and delete the account's sites
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

Debian's shells look for them in /usr/share/bash-completion/completions/edgecert,
/usr/share/zsh/vendor-completions/_edgecert and /usr/share/fish/vendor_completions.d/edgecert.fish.")]
pub(crate) struct CompletionsArgs {
    /// Shell that shall complete what is typed
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// A shell that completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Show what deploy would do and why; read the service, change nothing
#[derive(Args, Clone, Debug)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) deploy: DeployArgs,
}

/// Check a renewed certificate, upload it, and see it served (the hook)
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    pub(crate) certificate: CertificateArgs,

    /// Site that must get the certificate (can be repeated) [default: every covered site]
    #[arg(long = "domain", value_name = "DOMAIN")]
    pub(crate) domains: Vec<Domain>,

    /// Show what would be done and why, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) guards: GuardArgs,

    #[command(flatten)]
    pub(crate) settings: Layer,
}

// What a deployment may break elsewhere; see `plan`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Guards (each says so when it refuses)")]
pub(crate) struct GuardArgs {
    /// Replace a record although other sites that it feeds are not covered any more
    #[arg(long)]
    pub(crate) allow_shrink: bool,

    /// Replace a certificate that was issued later than this one
    #[arg(long)]
    pub(crate) allow_older: bool,

    /// Replace a certificate that the system issues and renews itself
    #[arg(long)]
    pub(crate) replace_lets: bool,
}

/// Run the local checks alone; no network, no configuration
#[derive(Args, Clone, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) certificate: CertificateArgs,

    /// Domain that the certificate must cover (can be repeated)
    #[arg(long = "domain", value_name = "DOMAIN")]
    pub(crate) domains: Vec<Domain>,

    /// Demand a path to one of these root certificates; `system` means the system's trust store
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trust_anchors: Option<PathBuf>,

    /// Check as if it were this moment, for example 2027-01-31T00:00:00Z
    #[arg(long, value_name = "RFC3339", value_parser = moment)]
    pub(crate) at: Option<OffsetDateTime>,
}

// Where the certificate is; without any of these the ACME client's variables tell.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Certificate")]
pub(crate) struct CertificateArgs {
    /// Certificate chain in PEM, the leaf first
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cert: Option<PathBuf>,

    /// Private key in PEM
    #[arg(long, value_name = "FILE", requires = "cert", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,

    /// Directory of certbot, acme.sh, lego, dehydrated or a mounted Kubernetes secret
    #[arg(long, value_name = "DIR", conflicts_with_all = ["cert", "key"], value_hint = ValueHint::DirPath)]
    pub(crate) lineage: Option<PathBuf>,
}

impl Cli {
    /// Reads the arguments; an error prints itself, as help and version do.
    pub(crate) fn read(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(arguments)?;
        if let Some((name, _)) = matches.subcommand() {
            let misplaced = DeployArgs::augment_args(clap::Command::new(""))
                .get_arguments()
                .map(|argument| argument.get_id().as_str().to_owned())
                .find(|id| matches!(matches.try_contains_id(id), Ok(true)) && was_given(&matches, id));
            if let Some(id) = misplaced {
                let message = format!("--{} belongs behind `{name}`, not before it", id.replace('_', "-"));
                return Err(command.error(clap::error::ErrorKind::ArgumentConflict, message));
            }
        }
        Self::from_arg_matches(&matches)
    }

    /// Commands, flags and their values, for completion scripts.
    pub(crate) fn definition() -> clap::Command {
        let mut command = Self::command();
        // The flags of all commands, which are put off otherwise.
        command.build();
        command
    }

    /// The help text, for a call without anything to do.
    pub(crate) fn help() -> String {
        Self::command().render_help().to_string()
    }
}

impl CertificateArgs {
    /// The files as the command line names them.
    pub(crate) fn named(&self) -> Named {
        Named { cert: self.cert.clone(), key: self.key.clone(), lineage: self.lineage.clone() }
    }
}

fn was_given(matches: &clap::ArgMatches, id: &str) -> bool {
    matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine)
}

fn moment(text: &str) -> Result<OffsetDateTime, &'static str> {
    OffsetDateTime::parse(text, &Rfc3339).map_err(|_| "a moment like 2027-01-31T00:00:00Z is wanted")
}
