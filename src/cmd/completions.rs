//! `edgecert completions`: prints a script that completes commands and flags.

use anyhow::Context as _;

use crate::cli::{self, CompletionsArgs};
use crate::error::CommandError;
use crate::report::Report;

/// Runs the command.
pub(crate) fn run(args: CompletionsArgs, report: &mut Report) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::definition(), "edgecert", &mut script);
    let script = String::from_utf8(script).context("the completion script is not UTF-8")?;
    report.set("script", &script);
    report.push(script);
    Ok(())
}
