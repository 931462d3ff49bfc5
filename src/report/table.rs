//! Tables for terminals: aligned columns, one line per row. To fit the terminal, columns are shortened or dropped, the
//! most important one last; piped output is whole.

use std::fmt::Write as _;

use anstyle::AnsiColor;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::style::{Sign, Style};
use super::wrap::Wrapped;
use crate::text::sanitize_untruncated;

/// Rows under column headings.
pub(crate) struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Row>,
    /// The column that is shortened last.
    key: Option<usize>,
    /// The columns that may be dropped, in this order.
    droppable: &'static [&'static str],
}

struct Row {
    cells: Vec<Cell>,
    /// Lines below the row.
    notes: Vec<String>,
}

/// One sanitized line of text.
pub(crate) struct Cell {
    sign: Option<Sign>,
    text: String,
    colour: Option<AnsiColor>,
}

/// Columns are shortened to this width before any is dropped.
const READABLE_WIDTH: usize = 10;
/// Minimum width of a shortened column.
const MIN_WIDTH: usize = 3;
const GAP: &str = "  ";
/// Indentation of notes.
const NOTE_INDENT: usize = 4;

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

    /// Columns of the sign with the space after it.
    fn sign_width(&self) -> usize {
        if self.sign.is_some() { 2 } else { 0 }
    }

    fn width(&self) -> usize {
        self.sign_width() + self.text.width()
    }
}

impl Table {
    pub(crate) fn new(heads: &[&'static str]) -> Self {
        Self { heads: heads.to_vec(), rows: Vec::new(), key: None, droppable: &[] }
    }

    /// Keeps a column whole as long as shortening others suffices, or dropping these.
    pub(crate) fn keeping(mut self, head: &str, droppable: &'static [&'static str]) -> Self {
        self.key = self.heads.iter().position(|other| *other == head);
        self.droppable = droppable;
        self
    }

    /// Adds a row with a cell for each heading.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(Row { cells: cells.into_iter().collect(), notes: Vec::new() });
    }

    /// Adds a line below the last row, wrapped at the width of the terminal.
    pub(crate) fn note(&mut self, text: &str) {
        if let Some(row) = self.rows.last_mut() {
            row.notes.push(sanitize_untruncated(text));
        }
    }

    /// Formats the headings and the rows; empty if there is no row.
    pub(crate) fn to_text(&self, style: Style) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let widths = self.widths(style.width);
        let heads: Vec<Cell> = self.heads.iter().map(|head| Cell::from(head.to_uppercase())).collect();
        let mut text = line(&heads, &widths, style);
        for row in &self.rows {
            text.push_str(&line(&row.cells, &widths, style));
            let notes = row.notes.iter();
            text.extend(notes.map(|note| Wrapped::indented(NOTE_INDENT, style).words(note).finish()));
        }
        text
    }

    /// The width of each column for lines of at most `max` columns; `None`: it is dropped.
    fn widths(&self, max: Option<usize>) -> Vec<Option<usize>> {
        let mut natural: Vec<Option<usize>> = self.heads.iter().map(|head| Some(head.width())).collect();
        for row in &self.rows {
            for (width, cell) in natural.iter_mut().zip(&row.cells) {
                *width = (*width).max(Some(cell.width()));
            }
        }
        let Some(max) = max else { return natural };
        let mut widths = natural.clone();
        self.shrink(&mut widths, READABLE_WIDTH, max);
        for head in self.droppable {
            if total(&widths) <= max {
                return widths;
            }
            let dropped = self.heads.iter().position(|other| other == head);
            natural
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| Some(*at) == dropped)
                .for_each(|(_, w)| *w = None);
            widths.clone_from(&natural);
            self.shrink(&mut widths, READABLE_WIDTH, max);
        }
        self.shrink(&mut widths, MIN_WIDTH, max);
        if let Some(Some(key)) = self.key.and_then(|key| widths.get(key).copied()) {
            let shortened =
                key.saturating_sub(total(&widths).saturating_sub(max)).max(READABLE_WIDTH).min(key);
            widths
                .iter_mut()
                .enumerate()
                .filter(|(at, _)| Some(*at) == self.key)
                .for_each(|(_, w)| *w = Some(shortened));
        }
        widths
    }

    /// Shortens the widest columns but the key.
    fn shrink(&self, widths: &mut [Option<usize>], min: usize, max: usize) {
        loop {
            let total = total(widths);
            let others = widths.iter_mut().enumerate().filter(|(at, _)| Some(*at) != self.key);
            let widest = others.filter_map(|(_, width)| width.as_mut()).max();
            let Some(widest) = widest.filter(|widest| total > max && **widest > min) else { break };
            *widest = widest.saturating_sub(total - max).max(min).max(*widest / 2);
        }
    }
}

/// Columns of a line with gaps.
fn total(widths: &[Option<usize>]) -> usize {
    let shown = widths.iter().flatten();
    shown.clone().sum::<usize>() + GAP.len() * shown.count().saturating_sub(1)
}

fn line(cells: &[Cell], widths: &[Option<usize>], style: Style) -> String {
    let mut line = String::new();
    let shown = cells.iter().zip(widths).filter_map(|(cell, width)| Some((cell, (*width)?)));
    for (column, (cell, width)) in shown.enumerate() {
        let text = truncate(&cell.text, width.saturating_sub(cell.sign_width()), style);
        let padding = width.saturating_sub(text.width() + cell.sign_width());
        let sign = cell.sign.map(|sign| style.sign(sign) + " ").unwrap_or_default();
        let shown = cell.colour.map_or_else(|| text.clone(), |colour| style.paint(&text, colour));
        let gap = if column == 0 { "" } else { GAP };
        let _ = write!(line, "{gap}{sign}{shown}{:padding$}", "");
    }
    line.truncate(line.trim_end().len());
    line.push('\n');
    line
}

/// Truncates to a width, with an ellipsis at the end.
fn truncate(text: &str, width: usize, style: Style) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let ellipsis = if style.ellipsis().width() < width { style.ellipsis() } else { "" };
    let mut room = width.saturating_sub(ellipsis.width());
    let fits = |c: &char| {
        let left = room.checked_sub(c.width().unwrap_or(0));
        room = left.unwrap_or(0);
        left.is_some()
    };
    text.chars().take_while(fits).chain(ellipsis.chars()).collect()
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
    fn piped_values_are_not_truncated() {
        let mut table = Table::new(&["value"]);
        table.row(["x".repeat(999).into()]);
        let text = table.to_text(Style::PLAIN);
        assert_eq!(text, format!("VALUE\n{}\n", "x".repeat(999)));
    }

    #[test]
    fn many_columns_fit_a_narrow_terminal() {
        let mut table = Table::new(&["id", "domain", "cname", "enabled", "status", "certificate", "synced"]);
        table.row(["10", "shop.example.com", "a.edge.invalid", "yes", "running", "5", "no"].map(Cell::from));
        let text = table.to_text(Style { width: Some(40), ..Style::PLAIN });
        assert!(text.lines().all(|line| line.width() <= 40), "{text}");
        assert!(text.contains("10  "), "{text}");
    }

    #[test]
    fn widest_column_is_truncated() {
        let text = table().to_text(Style { unicode: true, width: Some(25), ..Style::PLAIN });
        assert!(text.lines().all(|line| line.width() <= 25), "{text}");
        assert!(text.contains("a-long-name.…"), "{text}");
        let coloured = table().to_text(Style { colour: true, width: Some(25), ..Style::PLAIN });
        assert!(coloured.contains("\u{1b}["));
    }

    #[test]
    fn key_column_is_kept_whole() {
        const DROPPABLE: &[&str] = &["cname", "state"];
        let domain = "a".repeat(60);
        let mut table = Table::new(&["id", "domain", "cname", "state"]).keeping("domain", DROPPABLE);
        table.row([
            Cell::from("10"),
            Cell::signed(Sign::Failed, &domain),
            Cell::from("x.edge.invalid"),
            Cell::from("ok"),
        ]);
        table.note("why it failed");
        for width in [90, 80, 72] {
            let text = table.to_text(Style { width: Some(width), ..Style::PLAIN });
            assert!(text.lines().all(|line| line.width() <= width), "{text}");
            assert!(
                text.contains(&format!("10  x {domain}")) && text.contains("\n    why it failed\n"),
                "{text}"
            );
            assert_eq!(text.contains("CNAME"), width == 90, "{text}");
        }
        for width in [1, 2, 20] {
            let text = table.to_text(Style { width: Some(width), ..Style::PLAIN });
            assert!(text.contains("x aa") && text.contains("failed"), "{width}: {text}");
        }
    }
}
