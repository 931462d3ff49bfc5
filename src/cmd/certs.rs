//! `edgecert certs`.

use std::path::Path;

use crate::cli::CertsCommand;
use crate::env::Env;
use crate::report::{Answer, Style};

/// Runs the command.
pub(crate) fn run(
    _args: &CertsCommand,
    _config: Option<&Path>,
    _env: &Env,
    _style: Style,
    _answer: &mut Answer,
) -> anyhow::Result<()> {
    anyhow::bail!("not built yet")
}
