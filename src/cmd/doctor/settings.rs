//! `doctor --settings`: the settings in effect and where each comes from. Sends no request.

use serde_json::{Value, json};

use crate::context::Context;
use crate::error::{CommandError, ErrorKind};
use crate::report::{Cell, Report, Table};
use crate::settings::{EffectiveSetting, Layer};
use crate::text;

/// A setting, and why it is invalid or missing.
type Row = (EffectiveSetting, Option<CommandError>);

/// Lists the settings. The most severe invalid one decides the exit code.
pub(super) fn list(flags: &Layer, context: &Context, report: &mut Report) {
    let row = |setting: EffectiveSetting| (setting.clone(), setting.error.map(CommandError::from));
    let rows: Vec<Row> = context.effective_settings(flags).into_iter().map(row).collect();
    let kinds = rows.iter().filter_map(|(_, error)| Some(error.as_ref()?.kind()));
    report.exit_with(ErrorKind::most_severe(kinds).map_or(0, ErrorKind::exit_code), None);
    show(&rows, report);
    report.set("settings", rows.iter().map(to_json).collect::<Value>());
}

fn to_json((setting, error): &Row) -> Value {
    json!({
        "key": setting.key,
        // `null` for the whole run.
        "lineage": setting.lineage,
        // `null` if it is unset or invalid.
        "value": setting.value,
        "origin": origin(setting),
        "error": error.as_ref().map(CommandError::message),
        "hint": error.as_ref().and_then(CommandError::advice),
    })
}

/// Shows a table for the whole run, and one for the lineages with settings of their own.
fn show(rows: &[Row], report: &mut Report) {
    let (own, global): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.0.lineage.is_some());
    report.push(table(&["setting", "value", "from"], &global));
    if !own.is_empty() {
        report.push("\n");
        report.push(table(&["lineage", "setting", "value", "from"], &own));
    }
}

fn table(heads: &[&'static str], rows: &[&Row]) -> Table {
    let mut table = Table::new(heads);
    for (setting, error) in rows {
        let absent = match error {
            Some(_) if setting.origin.is_none() => "missing",
            Some(_) => "invalid",
            None => "-",
        };
        let value = setting.value.as_deref().unwrap_or(absent);
        let cells = [setting.key.as_str(), value, origin(setting)];
        table.row(setting.lineage.as_deref().into_iter().chain(cells).map(Cell::from));
        if let Some(error) = error {
            let hint = error.advice().map(|hint| format!("; {hint}")).unwrap_or_default();
            table.note(&text::sanitize(&format!("{}{hint}", error.message())));
        }
    }
    table
}

fn origin(setting: &EffectiveSetting) -> &str {
    setting.origin.as_deref().unwrap_or("default")
}
