//! Tables: aligned columns, one line per row.

use std::fmt::Write as _;

use clap::builder::styling::AnsiColor;
use unicode_width::UnicodeWidthStr as _;

use super::style::{Sign, Style};
use crate::text::sanitize_untruncated;

/// Rows under column headings.
#[derive(Debug)]
pub(crate) struct Table {
    heads: Vec<&'static str>,
    /// The cells of each row, and the lines below it.
    rows: Vec<(Vec<Cell>, Vec<String>)>,
}

/// One sanitized line of text.
#[derive(Debug)]
pub(crate) struct Cell {
    sign: Option<Sign>,
    text: String,
    colour: Option<AnsiColor>,
}

const GAP: &str = "  ";

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { sign: None, text: sanitize_untruncated(text.as_ref()), colour: None }
    }
}

impl Cell {
    pub(crate) fn coloured(text: impl AsRef<str>, colour: AnsiColor) -> Self {
        Self { colour: Some(colour), ..Self::from(text) }
    }

    pub(crate) fn signed(sign: Sign, text: impl AsRef<str>) -> Self {
        Self { sign: Some(sign), ..Self::from(text) }
    }

    fn width(&self) -> usize {
        // A sign has a space after it.
        self.text.width() + if self.sign.is_some() { 2 } else { 0 }
    }
}

impl Table {
    pub(crate) fn new(heads: &[&'static str]) -> Self {
        Self { heads: heads.to_vec(), rows: Vec::new() }
    }

    /// Adds a row with a cell for each heading.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push((cells.into_iter().collect(), Vec::new()));
    }

    /// Adds a line below the last row.
    pub(crate) fn note(&mut self, text: &str) {
        if let Some((_, notes)) = self.rows.last_mut() {
            notes.push(sanitize_untruncated(text));
        }
    }

    /// Formats the headings and the rows; empty if there is no row.
    pub(crate) fn to_text(&self, style: Style) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let heads: Vec<Cell> = self.heads.iter().map(|head| Cell::from(head.to_uppercase())).collect();
        let lines = || self.rows.iter().map(|(cells, _)| cells).chain([&heads]);
        let width = |column| lines().filter_map(|cells| cells.get(column)).map(Cell::width).max();
        let widths: Vec<usize> = (0..heads.len()).filter_map(width).collect();
        let mut text = line(&heads, &widths, style);
        for (cells, notes) in &self.rows {
            text.push_str(&line(cells, &widths, style));
            text.extend(notes.iter().map(|note| format!("    {note}\n")));
        }
        text
    }
}

fn line(cells: &[Cell], widths: &[usize], style: Style) -> String {
    let mut line = String::new();
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let padding = width.saturating_sub(cell.width());
        let sign = cell.sign.map(|sign| style.sign(sign) + " ").unwrap_or_default();
        let shown = cell.colour.map_or_else(|| cell.text.clone(), |colour| style.paint(&cell.text, colour));
        let gap = if column == 0 { "" } else { GAP };
        let _ = write!(line, "{gap}{sign}{shown}{:padding$}", "");
    }
    line.trim_end().to_owned() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["id", "domain", "name"]);
        table.row(["1".into(), "a.example".into(), "n".into()]);
        table.row([
            "1042".into(),
            Cell::coloured("a-long-name.example", AnsiColor::Red),
            "\u{1b}[2Jx".into(),
        ]);
        table
    }

    #[test]
    fn columns_are_aligned() {
        let text = table().to_text(Style::PLAIN);
        assert_eq!(
            text,
            "ID    DOMAIN               NAME\n1     a.example            n\n1042  a-long-name.example  [2Jx\n"
        );
        assert_eq!(Table::new(&["id"]).to_text(Style::PLAIN), "");
    }

    #[test]
    fn signs_and_colours_do_not_shift_columns() {
        let mut table = Table::new(&["site", "state"]);
        table.row([Cell::signed(Sign::Failed, "a.example"), Cell::coloured("stale", AnsiColor::Red)]);
        table.row([Cell::from("long-name.example"), Cell::from("served")]);
        table.note("why it failed");
        let plain = table.to_text(Style::PLAIN);
        let expected = [
            "SITE               STATE",
            "x a.example        stale",
            "long-name.example  served",
            "    why it failed\n",
        ];
        assert_eq!(plain, expected.join("\n"));
        assert!(table.to_text(Style { colour: true, ..Style::PLAIN }).contains("\u{1b}["));
    }

    #[test]
    fn values_are_not_truncated() {
        let mut table = Table::new(&["value"]);
        table.row(["x".repeat(999).into()]);
        let text = table.to_text(Style::PLAIN);
        assert_eq!(text, format!("VALUE\n{}\n", "x".repeat(999)));
    }
}
