//! `edgecert status`.

use std::path::Path;

use crate::cli::StatusArgs;
use crate::env::Env;
use crate::report::{Answer, Style};

/// Runs the command.
pub(crate) fn run(
    _args: &StatusArgs,
    _config: Option<&Path>,
    _env: &Env,
    _style: Style,
    _answer: &mut Answer,
) -> anyhow::Result<()> {
    anyhow::bail!("not built yet")
}
