//! Determines from the arguments and the environment what a run does.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand as _;

use super::{CertsCommand, Cli, Command, MonitoringArgs, SitesCommand, definition};
use crate::env::Env;
use crate::error::{CommandError, ErrorKind};
use crate::report::Report;
use crate::source::{self, dehydrated};

/// The parsed arguments of a run.
#[derive(Debug)]
pub enum Invocation {
    /// An operation of dehydrated that is not for a deploy hook; it succeeds without output.
    Ignored,
    /// Help or version.
    Help(String),
    /// Neither a command nor a hook's environment; holds the short help.
    NoCommand(String),
    /// The command line is wrong.
    Usage(UsageError),
    /// A command to run.
    Command(Box<CommandLine>),
}

/// A command, and the flags that every command has.
#[derive(Debug)]
pub struct CommandLine {
    /// The command's name in the report.
    pub name: &'static str,
    pub(crate) command: Command,
    /// The value of `--config`.
    pub config: Option<PathBuf>,
    /// The number of `-v` flags.
    pub verbosity: u8,
}

/// A command line that cannot be parsed.
#[derive(Debug)]
pub struct UsageError {
    command: &'static str,
    /// The value of `--config`.
    pub config: Option<PathBuf>,
    /// Whether an ACME client made the call, which may drop exit code and output.
    pub is_from_hook: bool,
    /// The message and the usage, for standard error.
    pub text: String,
}

impl Invocation {
    /// Parses the arguments; the first one is the program. Help is wrapped at `width` columns, by default 100.
    pub fn parse(arguments: &[OsString], env: &Env, width: Option<usize>) -> Self {
        match dehydrated::call(arguments.get(1..).unwrap_or_default()) {
            Some(dehydrated::Call::Deploy(source)) => Self::hook(Command::DehydratedDeploy(source)),
            Some(dehydrated::Call::Unchanged(source)) => Self::hook(Command::DehydratedSync(source)),
            Some(dehydrated::Call::Other) => Self::Ignored,
            Some(dehydrated::Call::Incomplete) => Self::Usage(UsageError::incomplete_call()),
            None => Self::parse_flags(arguments, env, width.unwrap_or(HELP_WIDTH)),
        }
    }

    fn hook(command: Command) -> Self {
        Self::Command(Box::new(CommandLine { name: "deploy", command, config: None, verbosity: 0 }))
    }

    fn parse_flags(arguments: &[OsString], env: &Env, width: usize) -> Self {
        if let [_, flag] = arguments
            && ["--version", "-V"].iter().any(|version| flag == version)
        {
            return Self::Help(Cli::version());
        }
        let Cli { common, deploy, command } = match Cli::read(arguments, width) {
            Ok(read) => read,
            Err(error) if !error.use_stderr() => return Self::Help(error.render().to_string()),
            Err(error) => {
                let command = command_name(arguments);
                return Self::Usage(UsageError {
                    command,
                    config: config(arguments),
                    is_from_hook: is_hook(env) && ["deploy", "sync"].contains(&command),
                    text: error.render().to_string(),
                });
            }
        };
        let (name, command) = match command {
            Some(command) => (command_name(arguments), command),
            None if deploy.certificate.is_given() || is_hook(env) || common.json => {
                ("deploy", Command::Deploy(deploy))
            }
            None => return Self::NoCommand(definition().term_width(width).render_help().to_string()),
        };
        let (config, verbosity) = (common.config, common.verbose);
        Self::Command(Box::new(CommandLine { name, command, config, verbosity }))
    }
}

/// Width of the help without a terminal.
const HELP_WIDTH: usize = 100;

/// Whether an ACME client runs this as a hook, even as one of the wrong kind.
fn is_hook(env: &Env) -> bool {
    source::is_hook(env) || source::is_certbot_post_hook(env)
}

impl CommandLine {
    /// Whether a failure is also reported to `on_failure` and the system log, because the caller may drop exit code and
    /// output.
    pub fn notifies_failure(&self) -> bool {
        match &self.command {
            Command::Deploy(args) => !args.dry_run,
            Command::Sync(_) | Command::DehydratedDeploy(_) | Command::DehydratedSync(_) => true,
            _ => false,
        }
    }

    /// Whether this is `status --check`.
    pub fn is_monitoring(&self) -> bool {
        matches!(&self.command, Command::Status(args) if args.check)
    }

    /// The time limit of `status --check`.
    pub fn time_limit(&self) -> Option<Duration> {
        let Command::Status(args) = &self.command else { return None };
        Some(args.monitoring.check_timeout?.duration())
    }

    /// Whether the command is run for its output: it changes nothing, so it has failed if its output is lost.
    pub fn is_read(&self) -> bool {
        match &self.command {
            Command::Deploy(args) => args.dry_run,
            Command::Sync(_) | Command::DehydratedDeploy(_) | Command::DehydratedSync(_) => false,
            Command::Status(args) => args.forget.is_none(),
            // A download to files is not.
            Command::Certs(CertsCommand::Download(args)) => args.is_to_stdout(),
            Command::Sites(command) => matches!(command, SitesCommand::List(_) | SitesCommand::Get(_)),
            Command::Certs(CertsCommand::List(_))
            | Command::Plan(_)
            | Command::Check(_)
            | Command::Doctor(_)
            | Command::Completions { .. } => true,
        }
    }

    /// The exit code of a command that is run for its output if that is lost: its own or that of the loss, whichever
    /// is more severe.
    pub fn exit_code_without_output(&self, own: u8, lost: u8) -> u8 {
        /// The exit code of a monitoring plugin that has failed.
        const UNKNOWN: u8 = 3;
        if self.is_monitoring() { UNKNOWN } else { ErrorKind::most_severe_code([own, lost]) }
    }
}

impl UsageError {
    fn incomplete_call() -> Self {
        let text = "error: arguments are missing after deploy_cert or unchanged_cert\n\nUsage: edgecert deploy_cert|unchanged_cert DOMAIN KEYFILE CERTFILE FULLCHAINFILE CHAINFILE [TIMESTAMP]\n";
        Self { command: "deploy", config: None, is_from_hook: true, text: text.into() }
    }

    /// The error as a report.
    pub fn report(&self) -> Report {
        let mut report = Report::new(self.command);
        report.fail(CommandError::new(ErrorKind::Usage, self.message()));
        report
    }

    /// The message on one line; clap lists missing arguments on lines of their own.
    pub fn message(&self) -> String {
        let lines = self.text.lines().map(str::trim).take_while(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
    }
}

/// Whether the arguments ask for JSON, even if they cannot be parsed.
pub fn wants_json(arguments: &[OsString]) -> bool {
    arguments.iter().any(|argument| argument == "--json")
}

/// Whether the arguments contain a flag of `status --check`, even if they cannot be parsed.
pub fn is_monitoring(arguments: &[OsString]) -> bool {
    let words = arguments.iter().map(|argument| argument.to_string_lossy());
    command_name(arguments) == "status" && MonitoringArgs::is_among(words)
}

/// The value of `--config`, even if the other arguments cannot be parsed.
fn config(arguments: &[OsString]) -> Option<PathBuf> {
    let after = arguments.iter().skip_while(|word| *word != "--config").nth(1);
    let joined = || arguments.iter().find_map(|word| word.to_str()?.strip_prefix("--config="));
    after.map(PathBuf::from).or_else(|| joined().map(PathBuf::from))
}

/// The command that the arguments name, even if they cannot be parsed; `deploy` if none does.
pub fn command_name(arguments: &[OsString]) -> &'static str {
    let words = arguments.iter().map(|word| word.to_str().unwrap_or_default());
    // `--config` is the only flag with a value that may precede a command.
    let after = words.clone().zip(words.skip(1)).filter(|(before, _)| *before != "--config");
    let mut names = after.map(|(_, word)| word).filter(|word| !word.starts_with('-'));
    let Some(name) = names.next().filter(|name| Command::has_subcommand(name)) else { return "deploy" };
    let inner = names.next().filter(|inner| match name {
        "certs" => CertsCommand::has_subcommand(inner),
        "sites" => SitesCommand::has_subcommand(inner),
        _ => false,
    });
    // Never freed: it is in the report until the program ends.
    inner.map_or(name.to_owned(), |inner| format!("{name} {inner}")).leak()
}
