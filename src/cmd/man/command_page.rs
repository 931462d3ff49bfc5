//! The page of a command: usage and options from the same definition as its help, and the sections of the reference.

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction};

use super::markdown::{self, Links, inline};
use super::pages::{Page, Section};
use super::roff::{Inline, Roff};

/// Writes the page of a command.
pub(super) fn write(command: &clap::Command, name: &str, page: Option<&Page>, links: Links<'_>) -> Roff {
    let help = Help::of(command);
    let mut roff = Roff::page(name, 1);
    roff.section("Name");
    let summary = command.get_about().map(ToString::to_string).unwrap_or_default();
    roff.paragraph(&Inline::roman(&format!("{name} - {}", lower_first(&summary))));
    roff.section("Synopsis");
    roff.paragraph(&synopsis(command));
    roff.section("Description");
    roff.paragraph(&inline(&(command_description(command) + "."), links));
    help.write_description(links, &mut roff);
    for section in page.map_or(&[][..], |page| page.description) {
        markdown::render(section.body(), links, &mut roff);
    }
    commands(command, name, &mut roff);
    options(command, links, &mut roff);
    sections(page.map_or(&[], |page| page.sections), links, &mut roff);
    roff
}

fn command_description(command: &clap::Command) -> String {
    let long = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    long.trim_end_matches('.').to_owned()
}

/// The usage, with the words to type in bold.
fn synopsis(command: &clap::Command) -> Inline {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let mut synopsis = Inline::default();
    for (at, word) in usage.split_whitespace().enumerate() {
        let is_literal = word.starts_with(|c: char| c == '-' || c.is_ascii_lowercase());
        let word = if is_literal { Inline::bold(word) } else { Inline::italic(word) };
        synopsis.push(&Inline::roman(if at == 0 { "" } else { " " }));
        synopsis.push(&word);
    }
    synopsis
}

/// Lists the commands of a group with their pages.
fn commands(command: &clap::Command, name: &str, roff: &mut Roff) {
    let mut commands = visible_commands(command).peekable();
    if commands.peek().is_none() {
        return;
    }
    roff.section("Commands");
    for command in commands {
        let summary = command.get_about().map(ToString::to_string).unwrap_or_default();
        let tag = Inline::page(&format!("{name}-{}", command.get_name()), 1);
        roff.tagged(&tag, &[Inline::roman(&summary)]);
    }
}

/// The commands that have pages: those of the help, without `help` itself.
pub(super) fn visible_commands(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

/// Lists arguments and flags under the headings of the help.
fn options(command: &clap::Command, links: Links<'_>, roff: &mut Roff) {
    let arguments: Vec<&Arg> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    let positionals = || arguments.iter().filter(|arg| arg.is_positional());
    if positionals().next().is_some() {
        roff.section("Arguments");
        positionals().for_each(|arg| option(arg, links, roff));
    }
    let flags = || arguments.iter().filter(|arg| !arg.is_positional());
    let mut headings: Vec<Option<&str>> = vec![None];
    for heading in flags().map(|arg| arg.get_help_heading()) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    roff.section("Options");
    for heading in headings {
        if let Some(heading) = heading {
            roff.subsection(heading);
        }
        flags().filter(|arg| arg.get_help_heading() == heading).for_each(|arg| option(arg, links, roff));
    }
}

fn option(arg: &Arg, links: Links<'_>, roff: &mut Roff) {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    roff.tagged(&tag(arg), &[inline(&(help + &default(arg)), links)]);
    let values: Vec<_> = arg.get_possible_values().into_iter().filter(|value| !value.is_hide_set()).collect();
    if values.is_empty() || matches!(arg.get_action(), ArgAction::Help | ArgAction::Version) {
        return;
    }
    let described: Vec<Inline> = values
        .iter()
        .filter_map(|value| Some((value.get_name(), value.get_help()?.to_string())))
        .map(|(name, help)| Inline::bold(name).then(&Inline::roman(&format!(": {}", lower_first(&help)))))
        .collect();
    if described.is_empty() {
        let names: Vec<&str> = values.iter().map(PossibleValue::get_name).collect();
        roff.tagged_further(&[markdown::labelled("Values").then(&Inline::roman(&names.join(", ")))]);
    } else {
        roff.tagged_further(&described);
    }
}

/// The default, unless the help text has it.
fn default(arg: &Arg) -> String {
    let is_shown = arg.get_action().takes_values() && !arg.is_hide_default_value_set();
    let values = arg.get_default_values().iter().filter(|_| is_shown);
    let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
    if values.is_empty() { String::new() } else { format!(" [default: {}]", values.join(" ")) }
}

/// Names of a flag and its value.
fn tag(arg: &Arg) -> Inline {
    let names = arg.get_short().map(|short| format!("-{short}")).into_iter();
    let names = names.chain(arg.get_long().map(|long| format!("--{long}")));
    let mut tag = Inline::default();
    for name in names {
        tag.push(&Inline::roman(if tag.is_empty() { "" } else { ", " }));
        tag.push(&Inline::bold(&name));
    }
    if !arg.get_action().takes_values() {
        return tag;
    }
    let value = arg
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ");
    let is_optional = arg.get_num_args().is_some_and(|range| range.min_values() == 0);
    let (before, after) = match (arg.is_positional(), is_optional, arg.is_require_equals_set()) {
        (true, ..) => ("", ""),
        (_, true, true) => ("[=", "]"),
        (_, true, false) => (" [", "]"),
        (_, false, true) => ("=", ""),
        (_, false, false) => (" ", ""),
    };
    tag.then(&Inline::roman(before)).then(&Inline::italic(&value)).then(&Inline::roman(after))
}

/// Adds sections of the reference. A subsection whose section is on another page becomes a section.
pub(super) fn sections(sections: &[Section], links: Links<'_>, roff: &mut Roff) {
    let mut has_section = false;
    for section in sections {
        if section.is_subsection() && has_section {
            roff.subsection(section.title());
        } else {
            roff.section(if section.anchor == "exit-codes" { "Exit status" } else { section.title() });
            has_section |= !section.is_subsection();
        }
        markdown::render(section.body(), links, roff);
    }
}

/// The text after the flags in the help, which begins with examples.
pub(super) struct Help {
    text: String,
}

impl Help {
    pub(super) fn of(command: &clap::Command) -> Self {
        Self { text: command.get_after_help().map(ToString::to_string).unwrap_or_default() }
    }

    fn paragraphs(&self) -> impl Iterator<Item = &str> {
        self.text.split("\n\n")
    }

    pub(super) fn examples(&self) -> impl Iterator<Item = &str> {
        self.paragraphs()
            .filter_map(|paragraph| paragraph.strip_prefix("Examples:\n"))
            .flat_map(str::lines)
            .map(str::trim)
    }

    /// Adds the paragraphs that are not examples. Indented lines are shown as they are.
    fn write_description(&self, links: Links<'_>, roff: &mut Roff) {
        for paragraph in self.paragraphs().filter(|text| !text.is_empty() && !text.starts_with("Examples:\n"))
        {
            let (indented, text): (Vec<&str>, Vec<&str>) =
                paragraph.lines().partition(|line| line.starts_with(' '));
            roff.paragraph(&inline(&text.join(" "), links));
            if !indented.is_empty() {
                roff.example(indented.into_iter().map(str::trim));
            }
        }
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}
