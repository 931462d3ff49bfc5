//! Build script: takes the date of the release from the changelog, and the sections of the reference, from which the
//! manual is made.

#![expect(clippy::disallowed_methods, reason = "cargo passes its parameters in the environment")]

use std::error::Error;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=src/build.rs");
    println!("cargo:rustc-env=EDGECERT_RELEASE_DATE={}", release_date(&read("CHANGELOG.md")?)?);
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
