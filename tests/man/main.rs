//! Writes the manual pages to a directory, for packages: `cargo run -p edgecert-man DIRECTORY`. Commands and flags come
//! from the definition of the command line, the rest from sections of the reference in `hooks/README.md`. A package of its
//! own, because an example would be compiled with all that the tests depend on.

mod markdown;

use std::path::Path;
use std::{env, fs};

use anyhow::{Context as _, Result, bail};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

/// The sections of the reference in the page of each command.
const COMMANDS: [(&str, &[&str]); 7] = [
    ("edgecert", &["Terms", "Exit codes", "Failure notification", "System log", "Signs", "Security"]),
    (
        "edgecert-deploy",
        &[
            "Certificate",
            "Sites",
            "Deployment",
            "Nothing to do",
            "Guards",
            "Two lineages for one site",
            "Incomplete listings",
            "Retries",
            "Verification",
            "Outcomes",
        ],
    ),
    ("edgecert-check", &["Local checks"]),
    ("edgecert-sync", &["Sync", "Recorded options", "Timers", "Kubernetes"]),
    ("edgecert-status", &["Status and monitoring", "Slack"]),
    ("edgecert-doctor", &["Doctor"]),
    ("edgecert-sites", &["Certificates and sites"]),
];

/// The pages of file formats, with their summaries.
const FORMATS: [(&str, &str, &[&str]); 2] = [
    (
        "edgecert.toml",
        "configuration file of edgecert",
        &["Configuration", "Settings", "API key", "Lineages", "Accounts", "Heartbeat"],
    ),
    ("edgecert-state", "state directory of edgecert", &["State directory"]),
];

const SOURCE: &str = concat!("edgecert ", env!("CARGO_PKG_VERSION"));
const MANUAL: &str = "edgecert manual";

/// Begins the examples in the help.
const EXAMPLES: &str = "Examples:\n";

fn main() -> Result<()> {
    let directory = env::args_os().nth(1).context("usage: edgecert-man DIRECTORY")?;
    let directory = Path::new(&directory);
    fs::create_dir_all(directory)?;
    let date = release_date()?;
    // The short help omits the flags of `deploy`.
    let mut program = edgecert::cli::definition()
        .disable_help_subcommand(true)
        .subcommand_help_heading("COMMANDS")
        .mut_args(|flag| flag.hide_short_help(false));
    program.build();
    write_commands(&program, date, directory)?;
    for (name, summary, sections) in FORMATS {
        let mut page = Roff::new();
        page.control("TH", [name, "5", date, SOURCE, MANUAL]);
        page.control("SH", ["NAME"]).text([roman(format!("{name} - {summary}"))]);
        page.control("SH", ["DESCRIPTION"]);
        let [first, rest @ ..] = sections else { bail!("{name} has no section") };
        markdown::add_section(first, &mut page)?;
        add_sections(rest, &mut page)?;
        add_related(&mut page);
        fs::write(directory.join(format!("{name}.5")), page.render())?;
    }
    Ok(())
}

/// The date in the heading of the last release, `## [VERSION] - DATE`, so that the same source gives the same pages.
fn release_date() -> Result<&'static str> {
    let mut releases = include_str!("../../CHANGELOG.md").lines().filter(|line| line.starts_with("## ["));
    let date = releases.find_map(|line| line.split_once("] - "));
    Ok(date.context("CHANGELOG.md has no heading `## [VERSION] - DATE`")?.1)
}

/// Writes the page of a command and those of its subcommands.
fn write_commands(command: &clap::Command, date: &str, directory: &Path) -> Result<()> {
    let man = Man::new(command.clone()).date(date).source(SOURCE).manual(MANUAL);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    notes(command).to_writer(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let name = command.get_display_name().unwrap_or(command.get_name());
    let mut rest = Roff::new();
    if let Some((_, sections)) = COMMANDS.iter().find(|(command, _)| *command == name) {
        add_sections(sections, &mut rest)?;
    }
    add_examples(command, &mut rest);
    add_related(&mut rest);
    rest.to_writer(&mut page)?;
    fs::write(directory.join(man.get_filename()), page)?;
    command.get_subcommands().try_for_each(|command| write_commands(command, date, directory))
}

/// The text after the flags in the help, without examples. An indented line stays one of its own.
fn notes(command: &clap::Command) -> Roff {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut notes = Roff::new();
    for paragraph in text.split("\n\n").filter(|text| !text.is_empty() && !text.starts_with(EXAMPLES)) {
        notes.control("PP", []);
        paragraph.lines().for_each(|line| _ = notes.text([roman(line)]));
    }
    notes
}

/// Adds the examples of the help. `clap_mangen` would fill them like text.
fn add_examples(command: &clap::Command, page: &mut Roff) {
    let help = command.clone().render_long_help().to_string();
    if let Some((_, examples)) = help.split_once(EXAMPLES) {
        page.control("SH", ["EXAMPLES"]).control("nf", []);
        let lines = examples.lines().take_while(|line| !line.is_empty());
        lines.for_each(|line| _ = page.text([roman(line.trim())]));
        page.control("fi", []);
    }
}

fn add_sections(titles: &[&str], page: &mut Roff) -> Result<()> {
    for title in titles {
        page.control("SH", [title.to_uppercase().as_str()]);
        markdown::add_section(title, page)?;
    }
    Ok(())
}

fn add_related(page: &mut Roff) {
    page.control("SH", ["SEE ALSO"]);
    let pages = [("edgecert", "(1), "), ("edgecert.toml", "(5), "), ("edgecert-state", "(5)")];
    page.text(pages.map(|(name, section)| [bold(name), roman(section)]).concat());
}
