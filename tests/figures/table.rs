//! The printed table: figure, measured value, target.

use std::fmt;

/// The values measured so far.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<[String; 3]>,
    /// Reasons for missing values, without duplicates.
    failures: Vec<String>,
}

impl Table {
    /// Adds a row; an empty `target` means that there is none.
    pub(crate) fn add(&mut self, figure: &str, measured: anyhow::Result<String>, target: &str) {
        let measured = measured.unwrap_or_else(|error| {
            let reason = format!("{error:#}");
            if !self.failures.contains(&reason) {
                self.failures.push(reason);
            }
            "not measured".to_owned()
        });
        self.rows.push([figure.to_owned(), measured, target.to_owned()]);
    }

    /// Whether every figure was measured.
    pub(crate) fn is_complete(&self) -> bool {
        self.failures.is_empty()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["figure", "measured", "target"].map(str::to_owned);
        let widest = |column: fn(&[String; 3]) -> &String| {
            self.rows.iter().chain([&header]).map(|row| column(row).chars().count()).max().unwrap_or_default()
        };
        let (first, second, third) = (widest(|row| &row[0]), widest(|row| &row[1]), widest(|row| &row[2]));
        let line = |[figure, measured, target]: &[String; 3]| {
            format!("{figure:first$} | {measured:second$} | {target}").trim_end().to_owned()
        };
        writeln!(f, "{}", line(&header))?;
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
