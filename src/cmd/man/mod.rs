//! `edgecert man`: writes the manual. Options come from the definition of the command line, settings from their list, and
//! the rest from the reference in `hooks/README.md`, whose sections the build script separates.

mod command_page;
mod format_page;
mod markdown;
mod pages;
mod roff;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use self::command_page::{Help, visible_commands};
use self::pages::{FORMATS, PAGES, Page};
use self::roff::{Inline, Roff};
use crate::cli::{Cli, ManArgs};
use crate::error::{CommandError, Diagnostic, ErrorKind, write_hint};
use crate::file;
use crate::hint::Hint;
use crate::report::CommandReport;
use crate::text;

/// Why a page was not written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {}", text::path(path), file::reason(error))]
struct PageWriteError {
    path: PathBuf,
    error: io::Error,
}

impl Diagnostic for PageWriteError {
    fn kind(&self) -> ErrorKind {
        ErrorKind::NoInput
    }

    fn hint(&self) -> Option<Hint> {
        Some(write_hint(self.error.kind(), "name another directory").into())
    }
}

/// Runs the command.
pub(crate) fn run(args: &ManArgs, report: &mut CommandReport) -> Result<(), CommandError> {
    let directory = &args.directory;
    let failed = |path: &Path, error| PageWriteError { path: path.to_owned(), error };
    fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    let mut written = Vec::new();
    for (name, text) in all() {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| failed(&path, error))?;
        written.push(text::path(&path));
    }
    report.body.text = format!("wrote {} to {}\n", text::count(written.len(), "page"), text::path(directory));
    report.body.set("files", written);
    Ok(())
}

/// File name and text of each page.
fn all() -> Vec<(String, String)> {
    let definition = Cli::definition();
    let mut pages = Vec::new();
    add_commands(&definition, "edgecert", &mut pages);
    for (summary, page) in FORMATS {
        let mut roff = format_page::write(summary, page, &|anchor| link(anchor, page.name));
        see_also(page.see_also.iter().copied(), &mut roff);
        pages.push((format!("{}.5", page.name), roff.finish()));
    }
    pages
}

/// Adds the page of a command and those of its subcommands.
fn add_commands(command: &clap::Command, name: &str, pages: &mut Vec<(String, String)>) {
    let page = PAGES.iter().find(|page| page.name == name);
    let mut roff = command_page::write(command, name, page, &|anchor| link(anchor, name));
    if name == "edgecert" {
        format_page::write_environment(&|anchor| link(anchor, name), &mut roff);
        examples(Cli::examples(), &mut roff);
    } else {
        examples(Help::of(command).examples(), &mut roff);
    }
    let group = name.rsplit_once('-').map_or("edgecert", |(group, _)| group);
    let related = page.map_or_else(|| vec![group, pages::CONFIGURATION], |page| page.see_also.to_vec());
    see_also(related.into_iter(), &mut roff);
    pages.push((format!("{name}.1"), roff.finish()));
    for command in visible_commands(command) {
        add_commands(command, &format!("{name}-{}", command.get_name()), pages);
    }
}

fn examples<'a>(examples: impl Iterator<Item = &'a str>, roff: &mut Roff) {
    let examples: Vec<&str> = examples.collect();
    if !examples.is_empty() {
        roff.section("Examples");
        roff.example(examples);
    }
}

fn see_also<'a>(names: impl Iterator<Item = &'a str>, roff: &mut Roff) {
    let mut references = Inline::default();
    for name in names {
        references.push(&Inline::roman(if references.is_empty() { "" } else { ", " }));
        references.push(&reference(name));
    }
    roff.section("See also");
    roff.paragraph(&references);
}

/// The page with this name, and its section.
fn reference(name: &str) -> Inline {
    let is_format = FORMATS.iter().any(|(_, page)| page.name == name);
    Inline::page(name, if is_format { 5 } else { 1 })
}

/// The page that has a section of the reference, if it is another one than the page with the link.
fn link(anchor: &str, from: &str) -> Option<Inline> {
    let has_section =
        |page: &&Page| page.description.iter().chain(page.sections).any(|section| section.anchor == anchor);
    let pages = || PAGES.iter().chain(FORMATS.iter().map(|(_, page)| page)).filter(has_section);
    if pages().any(|page| page.name == from) { None } else { pages().next().map(|page| reference(page.name)) }
}
