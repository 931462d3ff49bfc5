//! The printed table: figure, measured, to reach.

use std::fmt;

/// What was measured so far.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<[String; 3]>,
    /// Why some figures are missing, each reason once.
    failures: Vec<String>,
}

impl Table {
    /// Adds a row; an empty `to_reach` is for information only.
    pub(crate) fn add(&mut self, figure: &str, measured: anyhow::Result<String>, to_reach: &str) {
        let measured = measured.unwrap_or_else(|error| {
            let reason = format!("{error:#}");
            if !self.failures.contains(&reason) {
                self.failures.push(reason);
            }
            "not measured".to_owned()
        });
        self.rows.push([figure.to_owned(), measured, to_reach.to_owned()]);
    }

    /// Whether every figure could be measured.
    pub(crate) fn is_complete(&self) -> bool {
        self.failures.is_empty()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["figure", "measured", "to reach"].map(str::to_owned);
        let widest = |column: fn(&[String; 3]) -> &String| {
            self.rows.iter().chain([&head]).map(|row| column(row).chars().count()).max().unwrap_or_default()
        };
        let (first, second, third) = (widest(|row| &row[0]), widest(|row| &row[1]), widest(|row| &row[2]));
        let line = |[figure, measured, to_reach]: &[String; 3]| {
            format!("{figure:first$} | {measured:second$} | {to_reach}").trim_end().to_owned()
        };
        writeln!(f, "{}", line(&head))?;
        writeln!(f, "{:-<first$}-|-{:-<second$}-|-{:-<third$}", "", "", "")?;
        for row in &self.rows {
            writeln!(f, "{}", line(row))?;
        }
        for failure in &self.failures {
            writeln!(f, "\nnot measured: {failure}")?;
        }
        Ok(())
    }
}
