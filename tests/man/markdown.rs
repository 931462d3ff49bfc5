//! Converts sections of the reference to roff. Tables become lists of terms, because their rows are wider than a terminal.

use std::mem::take;

use anyhow::{Context as _, Result};
use clap_mangen::roff::{Inline, Roff, bold, italic, line_break, roman};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Adds what follows this heading of the reference, up to the next heading.
pub(crate) fn add_section(title: &str, page: &mut Roff) -> Result<()> {
    let reference = Parser::new_ext(include_str!("../../hooks/README.md"), Options::ENABLE_TABLES);
    let events: Vec<Event<'_>> = reference.collect();
    let mut sections = events.split(|event| matches!(event, Event::Start(Tag::Heading { .. })));
    let section = sections.find(|section| section.first() == Some(&Event::Text(title.into())));
    let section = section.with_context(|| format!("hooks/README.md has no section `{title}`"))?;
    let mut writer = Writer::new(page);
    section.iter().skip(2).for_each(|event| writer.add(event));
    Ok(())
}

struct Writer<'a> {
    page: &'a mut Roff,
    /// The text of the current block so far.
    text: Vec<Inline>,
    font: fn(String) -> Inline,
    /// Whether nothing follows yet the heading, the mark of the item or the term: a paragraph macro would be an error.
    is_first: bool,
    /// The lists around this place, with the number of their next item unless they have bullets.
    lists: Vec<Option<u64>>,
    /// The headings of the table.
    columns: Vec<Vec<Inline>>,
    /// The column of the row; `None` in the headings.
    column: Option<usize>,
}

impl<'a> Writer<'a> {
    fn new(page: &'a mut Roff) -> Self {
        let (lists, columns) = (Vec::new(), Vec::new());
        Self { page, text: Vec::new(), font: roman, is_first: true, lists, columns, column: None }
    }

    fn add(&mut self, event: &Event<'_>) {
        match event {
            Event::Text(text) => self.text.push((self.font)(text.to_string())),
            Event::Code(code) => self.text.push(bold(code.to_string())),
            Event::SoftBreak => self.text.push(roman(" ")),
            Event::Start(Tag::Strong) => self.font = bold,
            Event::Start(Tag::Emphasis) => self.font = italic,
            Event::End(TagEnd::Strong | TagEnd::Emphasis) => self.font = roman,
            Event::Start(Tag::Paragraph) => self.begin_paragraph(),
            Event::End(TagEnd::Paragraph | TagEnd::Item) => self.end_block(),
            Event::Start(Tag::CodeBlock(_)) => {
                self.begin_paragraph();
                self.page.control("RS", ["4"]).control("EX", []);
            }
            Event::End(TagEnd::CodeBlock) => {
                self.end_block();
                self.page.control("EE", []).control("RE", []);
            }
            Event::Start(Tag::List(number)) => self.lists.push(*number),
            Event::End(TagEnd::List(_)) => _ = self.lists.pop(),
            Event::Start(Tag::Item) => self.begin_item(),
            Event::Start(Tag::Table(_)) => (self.columns, self.column) = (Vec::new(), None),
            Event::Start(Tag::TableRow) => self.column = Some(0),
            Event::End(TagEnd::TableCell) => self.end_cell(),
            _ => {}
        }
    }

    fn begin_paragraph(&mut self) {
        if !take(&mut self.is_first) {
            self.page.control(if self.lists.is_empty() { "PP" } else { "IP" }, []);
        }
    }

    fn begin_item(&mut self) {
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}.", *number - 1)
            }
            _ => "\\(bu".to_owned(),
        };
        self.page.control("IP", [mark.as_str(), "4"]);
        self.is_first = true;
    }

    fn end_block(&mut self) {
        let text = take(&mut self.text);
        if !text.is_empty() {
            self.page.text(text);
        }
        self.is_first = false;
    }

    /// The first cell of a row is the term, or empty if the row continues the one before.
    fn end_cell(&mut self) {
        let text = take(&mut self.text);
        let Some(column) = &mut self.column else {
            self.columns.push(text);
            return;
        };
        if *column == 0 {
            if text.is_empty() {
                self.page.control("IP", []);
            } else {
                self.page.control("TP", []).text(text);
            }
            self.is_first = true;
        } else if !text.is_empty() {
            let mut line = Vec::new();
            if !take(&mut self.is_first) {
                line.push(line_break());
            }
            if self.columns.len() > 2 {
                line.extend(self.columns.get(*column).cloned().unwrap_or_default());
                line.push(roman(": "));
            }
            line.extend(text);
            self.page.text(line);
        }
        *column += 1;
    }
}
