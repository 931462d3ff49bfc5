//! The command line: commands, flags and help. Completions and the manual come from the same definition.
//!
//! This is parsing only. The defaults are in `settings`: a default here would shadow the configuration file.

mod certs;
mod check;
mod deploy;
mod doctor;
mod invocation;
mod sites;
mod status;
mod sync;
mod threshold;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

use crate::source::Source;

pub(crate) use self::certs::{CertsCommand, DownloadArgs};
pub(crate) use self::check::CheckArgs;
pub(crate) use self::deploy::{DeployArgs, PlanArgs};
pub(crate) use self::doctor::DoctorArgs;
pub use self::invocation::{CommandLine, Invocation, UsageError, command_name, is_monitoring, wants_json};
pub(crate) use self::sites::{
    Assignment, BindArgs, CreateArgs, DeleteArgs, FieldArgs, ListArgs, Origin, SiteArgs, SiteName,
    SitesCommand, UpdateArgs, WaitArgs,
};
pub(crate) use self::status::{MonitoringArgs, StatusArgs};
pub(crate) use self::sync::SyncArgs;
pub(crate) use self::threshold::{LAG, SYNC_AGE, TIME_LEFT, Threshold};

const NAME: &str = "edgecert";

const ABOUT: &str = "Deploy renewed certificates to the edge and verify what it serves";

const LONG_ABOUT: &str = "\
Deploy renewed certificates to the edge and verify what it serves

Run as the deploy hook of an ACME client, edgecert reads the client's variables,
checks the renewed certificate and its key, uploads them for every covered site,
and waits until the edge serves the certificate.";

/// Puts the examples first; they are what most people look for.
const HELP_TEMPLATE: &str = "\
{about}

{usage-heading} {usage}

Examples:
  ln -s \"$(command -v edgecert)\" /etc/letsencrypt/renewal-hooks/deploy/
  acme.sh --install-cert -d example.com --reloadcmd \"$(command -v edgecert)\"
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
  76  the service sent an unintelligible or contradictory response
  77  the service rejected the API key
  78  configuration error

The API key is never an argument: set EDGECERT_API_KEY, or name a file that holds it.";

/// The parsed command line.
#[derive(Parser, Debug)]
#[command(
    name = NAME,
    version = env!("EDGECERT_VERSION"),
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

/// Flags of every command.
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

/// Position in the help, after a command's own flags.
const GLOBAL_FLAGS: usize = 500;

/// The commands. With `defer`, only the flags of the command that runs are built, which saves the hook time.
///
/// clap lists a command with the summary of its variant, and shows that of its arguments in the command's own help.
/// Both are the same text.
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
    /// Show the state of each site and its lineage
    Status(StatusArgs),
    /// Check settings, service, lineages, hooks and timers
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
    /// `deploy_cert` by dehydrated.
    #[command(skip)]
    DehydratedDeploy(Source),
    /// `unchanged_cert` by dehydrated.
    #[command(skip)]
    DehydratedSync(Source),
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
    pub(crate) shell: Shell,
}

impl Cli {
    /// Parses the arguments, and returns the command's name, too. Help and version are errors too, as in clap; they are
    /// wrapped at this many columns.
    pub(crate) fn read(arguments: &[OsString], width: usize) -> Result<(&'static str, Self), clap::Error> {
        let first = arguments.get(1).and_then(|word| word.to_str()).unwrap_or_default();
        let named = Some(first).filter(|word| Command::has_subcommand(word)).and_then(Self::command_alone);
        let is_named = named.is_some();
        // Never freed: that would take longer than parsing.
        let command = Box::leak(Box::new(named.unwrap_or_else(Self::root).term_width(width)));
        let mut matches = command.try_get_matches_from_mut(arguments)?;
        let inner = matches.subcommand().map(|(name, inner)| (name, inner.subcommand_name()));
        let name =
            invocation::name_of(inner.into_iter().flat_map(|(name, inner)| [name].into_iter().chain(inner)));
        if is_named {
            let common = Common::from_arg_matches_mut(&mut matches)?;
            let named = Command::from_arg_matches_mut(&mut matches)?;
            return Ok((name, Self { common, deploy: DeployArgs::default(), command: Some(named) }));
        }
        if let Some((name, _)) = matches.subcommand()
            && let Some(flag) = misplaced_flag(&matches)
        {
            let message = format!("--{flag} must follow `{name}`");
            return Err(command.error(clap::error::ErrorKind::ArgumentConflict, message));
        }
        Ok((name, Self::from_arg_matches_mut(&mut matches)?))
    }

    /// The definition of the command line if its first word is this command: no flag of `deploy` and no other command
    /// can precede it, and building those takes longer than everything else here.
    fn command_alone(name: &str) -> Option<clap::Command> {
        let commands = Command::augment_subcommands(clap::Command::new(NAME));
        let command = commands.find_subcommand(name)?.clone();
        Some(Common::augment_args(clap::Command::new(NAME)).subcommand(command))
    }

    /// Name, version and commit, as `--version` prints them.
    pub(crate) fn version() -> String {
        clap::Command::new(NAME).version(env!("EDGECERT_VERSION")).render_version()
    }

    /// The short help.
    pub(crate) fn help(width: usize) -> String {
        Self::root().term_width(width).render_help().to_string()
    }

    /// The definition. The short help omits the flags of `deploy`, so that it fits a terminal.
    fn root() -> clap::Command {
        Self::command().mut_args(|flag| {
            let is_global = flag.is_global_set();
            flag.hide_short_help(!is_global)
        })
    }
}

/// All commands and flags, for completion scripts and the manual.
pub fn definition() -> clap::Command {
    Cli::root()
}

/// Returns a flag of `deploy` that precedes a subcommand, where it would be ignored.
fn misplaced_flag(matches: &clap::ArgMatches) -> Option<String> {
    let is_given = |id: &str| {
        matches!(matches.try_contains_id(id), Ok(true))
            && matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine)
    };
    let flags = DeployArgs::augment_args(clap::Command::new(""));
    let mut flags = flags.get_arguments().filter(|flag| is_given(flag.get_id().as_str()));
    flags.next().and_then(|flag| flag.get_long().map(str::to_owned))
}
