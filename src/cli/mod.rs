//! The command line: commands, flags and help. Completions and the manual come from the same definition.
//!
//! This is parsing only. The defaults are in `settings`: a default here would shadow the configuration file.

mod commands;
mod invocation;
mod sites;
mod status;
mod threshold;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand as _, ValueHint};

pub(crate) use self::commands::{
    CertsCommand, CheckArgs, Command, DeployArgs, DoctorArgs, DownloadArgs, SyncArgs,
};
pub use self::invocation::{CommandLine, Invocation, UsageError, command_name, is_monitoring, wants_json};
pub(crate) use self::sites::{
    BindArgs, CreateArgs, DeleteArgs, FieldArgs, ListArgs, SiteArgs, SiteName, SitesCommand, UpdateArgs,
    WaitArgs, glob_matches,
};
pub(crate) use self::status::{MonitoringArgs, StatusArgs};
pub(crate) use self::threshold::{LAG, SYNC_AGE, TIME_LEFT, Threshold};

const NAME: &str = "edgecert";

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

// The parsed command line. The doc comment is the help.
/// Deploy renewed certificates to the edge and verify what it serves
///
/// Run as the deploy hook of an ACME client, edgecert reads the client's variables,
/// checks the renewed certificate and its key, uploads them for every covered site,
/// and waits until the edge serves the certificate.
#[derive(Parser, Debug)]
#[command(
    name = NAME,
    version = env!("EDGECERT_VERSION"),
    verbatim_doc_comment,
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

impl Cli {
    /// Parses the arguments. Help and version are errors too, as in clap; they are wrapped at this many columns.
    pub(crate) fn read(arguments: &[OsString], width: usize) -> Result<Self, clap::Error> {
        let first = arguments.get(1).and_then(|word| word.to_str()).unwrap_or_default();
        let named = Some(first).filter(|word| Command::has_subcommand(word)).and_then(Self::command_alone);
        let is_named = named.is_some();
        // Never freed: that would take longer than parsing.
        let command = Box::leak(Box::new(named.unwrap_or_else(definition).term_width(width)));
        let mut matches = command.try_get_matches_from_mut(arguments)?;
        if is_named {
            let common = Common::from_arg_matches_mut(&mut matches)?;
            let named = Command::from_arg_matches_mut(&mut matches)?;
            return Ok(Self { common, deploy: DeployArgs::default(), command: Some(named) });
        }
        if let Some((name, _)) = matches.subcommand()
            && let Some(flag) = misplaced_flag(&matches)
        {
            let message = format!("--{flag} must follow `{name}`");
            return Err(command.error(clap::error::ErrorKind::ArgumentConflict, message));
        }
        Self::from_arg_matches_mut(&mut matches)
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
}

/// All commands and flags; completion scripts and the manual are made from it, too. The short help omits the flags of
/// `deploy`, so that it fits a terminal.
pub fn definition() -> clap::Command {
    Cli::command().mut_args(|flag| {
        let is_global = flag.is_global_set();
        flag.hide_short_help(!is_global)
    })
}

/// Returns a flag of `deploy` that precedes a subcommand, where it would be ignored.
fn misplaced_flag(matches: &clap::ArgMatches) -> Option<String> {
    let flags = DeployArgs::augment_args(clap::Command::new(""));
    let is_given = |flag: &&clap::Arg| {
        matches.value_source(flag.get_id().as_str()) == Some(clap::parser::ValueSource::CommandLine)
    };
    flags.get_arguments().find(is_given).and_then(|flag| flag.get_long().map(str::to_owned))
}
