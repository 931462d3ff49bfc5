//! External programs, each with its Debian package.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, bail};

/// Finds a program in `PATH`, or in /usr/sbin for servers.
#[expect(clippy::disallowed_methods, reason = "programs are looked for where the shell would")]
pub fn find_program(name: &str, package: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(["/usr/bin".into(), "/usr/sbin".into()]);
    directories
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
        .with_context(|| format!("{name} is not installed (Debian package {package})"))
}

/// Runs a command and captures its output; the error of a failed one contains its standard error.
pub fn run(mut command: Command) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed ({}): {}", output.status, stderr.trim());
    }
    Ok(output)
}
