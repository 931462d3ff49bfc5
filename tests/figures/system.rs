//! The cargo that runs this program, versions of external programs, and the binary to measure.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use edgecert_workload::{find_program, run};
use serde_json::Value;

/// `EDGECERT_BIN`, or a release build of this tree.
#[expect(clippy::disallowed_methods, reason = "a setting of this program, not of the hook")]
pub(crate) fn binary() -> Result<PathBuf> {
    let Some(path) = std::env::var_os("EDGECERT_BIN").map(PathBuf::from) else { return build() };
    path.canonicalize().with_context(|| format!("EDGECERT_BIN={} does not exist", path.display()))
}

/// The first words that a program prints as its version, to standard output or error.
pub(crate) fn version(program: &str, package: &str, flag: &str) -> Result<String> {
    /// curl's fifth word is its TLS library.
    const WORDS: usize = 5;
    let mut command = Command::new(find_program(program, package)?);
    command.arg(flag);
    let output = run(command)?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let words = text.lines().next().unwrap_or_default().split_whitespace();
    Ok(words.take(WORDS).collect::<Vec<_>>().join(" "))
}

fn build() -> Result<PathBuf> {
    let mut cargo = cargo(&["build", "--release", "--package", "edgecert", "--bin", "edgecert"]);
    let output = cargo.arg("--message-format=json-render-diagnostics").stderr(Stdio::inherit()).output();
    let output = output.context("cannot start cargo")?;
    if !output.status.success() {
        bail!("`cargo build --release` failed");
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        message.get("executable")?.as_str().map(PathBuf::from)
    };
    messages.lines().find_map(executable).context("`cargo build --release` reported no executable")
}

/// The cargo that runs this program, without the variables that it sets for it: build scripts depend on them and would
/// run again, and half of the tree would be rebuilt.
#[expect(clippy::disallowed_methods, reason = "cargo passes its path in a variable")]
fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}
