//! Build script: takes the commit from git, and leaves out what only unwinding reads.

#![expect(clippy::disallowed_methods, reason = "cargo passes its parameters in the environment")]

use std::env;
use std::path::Path;
use std::process::Command;

fn main() -> Result<(), env::VarError> {
    println!("cargo:rerun-if-changed=src/build.rs");
    // Other builds would have to be repeated after every commit.
    let is_release = env::var("PROFILE")? == "release";
    let commit = if is_release { commit() } else { None };
    let commit = commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    println!("cargo:rustc-env=EDGECERT_VERSION={}{commit}", env::var("CARGO_PKG_VERSION")?);
    // A linker that is named may be called without a compiler, and then knows no `-Wl`.
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let is_named = env::var_os("RUSTC_LINKER").is_some() || flags.contains("linker");
    // The index of the unwind tables has 72 KB.
    if is_release && env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") && !is_named {
        println!("cargo:rustc-link-arg-bins=-Wl,--no-eh-frame-hdr");
    }
    Ok(())
}

/// The commit that this directory is a checkout of, unless it is only a part of a checkout.
fn commit() -> Option<String> {
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != env::current_dir().ok()?.canonicalize().ok()? {
        return None;
    }
    // A commit changes the log of HEAD, an edit the rest.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]).filter(|log| Path::new(log).exists());
    for path in log.iter().map(String::as_str).chain(["Cargo.toml", "Cargo.lock", "src"]) {
        println!("cargo:rerun-if-changed={path}");
    }
    git(&["--no-optional-locks", "describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=-modified"])
}

/// The output of git, or nothing if it fails or is not installed.
fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim_end().to_owned())
}
