//! Build script: takes the date of the release from the changelog, the commit from git, and the sections of the
//! reference, from which the manual is made.

#![expect(clippy::disallowed_methods, reason = "cargo passes its parameters in the environment")]

use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=src/build.rs");
    println!("cargo:rustc-env=EDGECERT_RELEASE_DATE={}", release_date(&read("CHANGELOG.md")?)?);
    // Other builds would have to be repeated after every commit.
    let commit = if env::var("PROFILE")? == "release" { commit() } else { None };
    let commit = commit.map(|commit| format!(" ({commit})")).unwrap_or_default();
    println!("cargo:rustc-env=EDGECERT_VERSION={}{commit}", env::var("CARGO_PKG_VERSION")?);
    split_reference(&read("hooks/README.md")?, &Path::new(&env::var("OUT_DIR")?).join("reference"))
}

/// Reads a file of the source tree, on which the build then depends.
fn read(name: &str) -> Result<String, Box<dyn Error>> {
    println!("cargo:rerun-if-changed={name}");
    fs::read_to_string(name).map_err(|error| format!("{name}: {error}").into())
}

/// The date in the heading of the last release, `## [VERSION] - DATE`.
fn release_date(changelog: &str) -> Result<&str, Box<dyn Error>> {
    let releases = changelog.lines().filter_map(|line| line.strip_prefix("## [")?.split_once("] - "));
    let date = releases.map(|(_, date)| date).next();
    date.ok_or_else(|| "CHANGELOG.md has no heading `## [VERSION] - DATE`".into())
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

/// Writes each section of the reference, up to the next heading of any level, to a file that is named after its anchor.
fn split_reference(reference: &str, directory: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    let is_heading = |line: &str| line.starts_with("## ") || line.starts_with("### ");
    let mut section = String::new();
    for line in reference.lines().chain(["## "]) {
        if is_heading(line) && !section.is_empty() {
            let heading = section.lines().next().unwrap_or_default();
            fs::write(directory.join(anchor(heading) + ".md"), &section)?;
            section.clear();
        }
        section += line;
        section.push('\n');
    }
    Ok(())
}

/// The anchor of a heading, as in links: `nothing-to-do` for `### Nothing to do`.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_ascii_lowercase();
    words
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || " -".contains(*c))
        .collect::<String>()
        .replace(' ', "-")
}
