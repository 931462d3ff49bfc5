//! `doctor --settings`: the settings in effect and where each comes from. Sends no request.

use serde::Serialize;

use crate::context::Context;
use crate::error::{CommandError, ErrorKind};
use crate::report::{Cell, Report, Table};
use crate::settings::{EffectiveSetting, Layer};
use crate::text;

/// One setting in the JSON report.
#[derive(Serialize)]
struct Row {
    key: String,
    /// The lineage whose `[[lineage]]` entry has it; `null` for the whole run.
    lineage: Option<String>,
    /// `null` if it is unset or invalid.
    value: Option<String>,
    origin: String,
    error: Option<String>,
    hint: Option<String>,
    #[serde(skip)]
    kind: Option<ErrorKind>,
    /// Whether nothing sets it.
    #[serde(skip)]
    is_default: bool,
}

/// Lists the settings. The most severe invalid one decides the exit code.
pub(super) fn list(flags: &Layer, context: &Context, report: &mut Report) {
    let rows: Vec<Row> = context.effective_settings(flags).into_iter().map(Row::new).collect();
    let most_severe = ErrorKind::most_severe(rows.iter().filter_map(|row| row.kind));
    report.exit_with(most_severe.map_or(0, ErrorKind::exit_code), None);
    show(&rows, report);
    report.set("settings", rows);
}

impl Row {
    fn new(setting: EffectiveSetting) -> Self {
        let error = setting.error.map(CommandError::from);
        Self {
            key: setting.key,
            lineage: setting.lineage,
            value: setting.value,
            is_default: setting.origin.is_none(),
            origin: setting.origin.unwrap_or_else(|| "default".into()),
            error: error.as_ref().map(|error| error.message().to_owned()),
            hint: error.as_ref().and_then(|error| error.advice().map(str::to_owned)),
            kind: error.as_ref().map(CommandError::kind),
        }
    }
}

/// Shows a table for the whole run, and one for the lineages with settings of their own.
fn show(rows: &[Row], report: &mut Report) {
    let (own, global): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.lineage.is_some());
    report.push(table(&["setting", "value", "from"], &global));
    if !own.is_empty() {
        report.push("\n");
        report.push(table(&["lineage", "setting", "value", "from"], &own));
    }
}

fn table(heads: &[&'static str], rows: &[&Row]) -> Table {
    let mut table = Table::new(heads);
    for row in rows {
        let absent = match &row.error {
            Some(_) if row.is_default => "missing",
            Some(_) => "invalid",
            None => "-",
        };
        let value = row.value.as_deref().unwrap_or(absent);
        let cells = [Some(row.key.as_str()), Some(value), Some(row.origin.as_str())];
        let cells = row.lineage.as_deref().into_iter().chain(cells.into_iter().flatten());
        table.row(cells.map(Cell::from));
        if let Some(error) = &row.error {
            table.note(&text::sanitize(&message(error, row.hint.as_deref())));
        }
    }
    table
}

fn message(error: &str, hint: Option<&str>) -> String {
    hint.map_or_else(|| error.to_owned(), |hint| format!("{error}; {hint}"))
}
