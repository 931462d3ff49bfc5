//! `edgecert completions`: prints a script that completes commands and flags.

use anyhow::Context as _;
use clap_complete::Shell;

use crate::cli;
use crate::error::Result;
use crate::report::Report;

/// Runs the command.
pub(crate) fn run(shell: Shell, report: &mut Report) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::definition(), "edgecert", &mut script);
    let script = String::from_utf8(script).context("the completion script is not UTF-8")?;
    report.set("script", &script);
    report.push(script);
    Ok(())
}
