//! Environment variables and external programs, each with its Debian package.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, bail};

/// A variable of this process's environment.
#[expect(clippy::disallowed_methods, reason = "settings of the benchmark itself")]
pub(crate) fn env_var(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Finds a program in `PATH`, or in /usr/sbin for servers.
pub(crate) fn find_program(name: &str, package: &str) -> Result<PathBuf> {
    let path = env_var("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(["/usr/bin".into(), "/usr/sbin".into()]);
    directories
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
        .with_context(|| format!("{name} is not installed (Debian package {package})"))
}

/// Runs a command and captures its output; the error of a failed one contains its standard error.
pub(crate) fn run(mut command: Command) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed ({}): {}", output.status, stderr.trim());
    }
    Ok(output)
}

/// The first words that a program prints as its version, to standard output or error.
pub(crate) fn version(program: PathBuf, flag: &str) -> Result<String> {
    /// curl's fifth word is its TLS library.
    const WORDS: usize = 5;
    let mut command = Command::new(program);
    command.arg(flag);
    let output = run(command)?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let words = text.lines().next().unwrap_or_default().split_whitespace();
    Ok(words.take(WORDS).collect::<Vec<_>>().join(" "))
}

/// The cargo that runs this program, without the variables that it sets for it: build scripts depend on them and would
/// run again, and half of the tree would be rebuilt.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(env_var("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}
