//! The surroundings: variables, and the programs that a figure needs, each with the Debian package it is in.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, bail};

/// A variable of this program's own environment.
#[expect(clippy::disallowed_methods, reason = "a measuring program has no settings to read once")]
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Where a program is. Servers stand in a directory that is not on everyone's path.
pub(crate) fn program(name: &str, package: &str) -> Result<PathBuf> {
    let path = variable("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(["/usr/bin".into(), "/usr/sbin".into()]);
    directories
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
        .with_context(|| format!("{name} is missing; it is in the Debian package {package}"))
}

/// Runs a command to its end; what it printed is shown only if it fails.
pub(crate) fn run(mut command: Command) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed ({}): {}", output.status, said.trim());
    }
    Ok(output)
}

/// The first words that a program prints about its version; some print them on standard error.
pub(crate) fn version(program: PathBuf, flag: &str) -> Result<String> {
    /// Curl names its TLS library in the fifth.
    const WORDS: usize = 5;
    let mut command = Command::new(program);
    command.arg(flag);
    let output = run(command)?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let words = text.lines().next().unwrap_or_default().split_whitespace();
    Ok(words.take(WORDS).collect::<Vec<_>>().join(" "))
}

/// Cargo, which has called this program. What it then told the program about its package is kept from it: build
/// scripts that look at it would run again, and half of the tree after them.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(variable("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}
