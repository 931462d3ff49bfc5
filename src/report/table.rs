//! Tables for terminals: aligned columns, one line per row. The widest columns are truncated to fit the terminal; piped
//! output is never truncated.

use std::fmt::Write as _;

use anstyle::AnsiColor;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::Style;
use crate::text::sanitize_untruncated;

/// Rows under column headings.
pub(crate) struct Table {
    heads: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// One sanitized line of text.
pub(crate) struct Cell {
    text: String,
    colour: Option<AnsiColor>,
}

/// Minimum widths of truncated columns: the first, and on narrow terminals the second.
const MIN_WIDTHS: [usize; 2] = [8, 3];
const GAP: &str = "  ";

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: sanitize_untruncated(text.as_ref()), colour: None }
    }
}

impl Cell {
    pub(crate) fn coloured(text: impl AsRef<str>, colour: AnsiColor) -> Self {
        Self { colour: Some(colour), ..Self::from(text) }
    }
}

impl Table {
    pub(crate) fn new(heads: &[&'static str]) -> Self {
        Self { heads: heads.to_vec(), rows: Vec::new() }
    }

    /// Adds a row with a cell for each heading.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Formats the headings and the rows; empty if there is no row.
    pub(crate) fn to_text(&self, style: Style) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let widths = self.widths(style.width);
        let heads: Vec<Cell> = self.heads.iter().map(Cell::from).collect();
        let lines = std::iter::once(&heads).chain(&self.rows).map(|row| line(row, &widths, style));
        lines.collect()
    }

    /// The width of each column, for lines of at most `max` columns.
    fn widths(&self, max: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = self.heads.iter().map(|head| head.width()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.width());
            }
        }
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        for (max, min) in max.into_iter().flat_map(|max| MIN_WIDTHS.map(|min| (max, min))) {
            loop {
                let total = widths.iter().sum::<usize>() + gaps;
                let widest = widths.iter_mut().max().filter(|widest| total > max && **widest > min);
                let Some(widest) = widest else { break };
                *widest = widest.saturating_sub(total - max).max(min).max(*widest / 2);
            }
        }
        widths
    }
}

fn line(row: &[Cell], widths: &[usize], style: Style) -> String {
    let mut line = String::new();
    for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
        let text = truncate(&cell.text, *width);
        let padding = if column + 1 == row.len() { 0 } else { width - text.width().min(*width) };
        let shown = cell.colour.map_or_else(|| text.clone(), |colour| style.paint(&text, colour));
        let gap = if column == 0 { "" } else { GAP };
        let _ = write!(line, "{gap}{shown}{:padding$}", "");
    }
    line.truncate(line.trim_end().len());
    line.push('\n');
    line
}

/// Truncates to a width, with `…` at the end.
fn truncate(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut room = width.saturating_sub(1);
    let fits = |c: &char| {
        let left = room.checked_sub(c.width().unwrap_or(0));
        room = left.unwrap_or(0);
        left.is_some()
    };
    text.chars().take_while(fits).chain(['…']).collect()
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
        let text = table().to_text(Style { colour: false, width: None });
        assert_eq!(
            text,
            "id    domain               name\n1     a.example            n\n1042  a-long-name.example  [2Jx\n"
        );
        assert_eq!(Table::new(&["id"]).to_text(Style { colour: false, width: None }), "");
    }

    #[test]
    fn piped_values_are_not_truncated() {
        let mut table = Table::new(&["value"]);
        table.row(["x".repeat(999).into()]);
        let text = table.to_text(Style { colour: false, width: None });
        assert_eq!(text, format!("value\n{}\n", "x".repeat(999)));
    }

    #[test]
    fn many_columns_fit_a_narrow_terminal() {
        let mut table = Table::new(&["id", "domain", "cname", "enabled", "status", "certificate", "synced"]);
        table.row(["10", "shop.example.com", "a.edge.invalid", "yes", "running", "5", "no"].map(Cell::from));
        let text = table.to_text(Style { colour: false, width: Some(40) });
        assert!(text.lines().all(|line| line.width() <= 40), "{text}");
        assert!(text.contains("10  "), "{text}");
    }

    #[test]
    fn widest_column_is_truncated() {
        let text = table().to_text(Style { colour: false, width: Some(25) });
        assert!(text.lines().all(|line| line.width() <= 25), "{text}");
        assert!(text.contains("a-long-name.…"), "{text}");
        let coloured = table().to_text(Style { colour: true, width: Some(25) });
        assert!(coloured.contains("\u{1b}["));
    }
}
