//! `doctor --settings`: the settings in effect and where each comes from. Sends no request.

use serde_json::{Value, json};

use crate::error::ErrorKind;
use crate::report::{Cell, Report, Table};
use crate::settings::{EffectiveSetting, Layers, SettingsError};
use crate::text;

/// Lists the settings, in a table for the whole run, and one for the lineages with settings of their own.
pub(super) fn list(layers: &Layers<'_>, report: &mut Report) {
    let settings = layers.effective();
    let has_error = settings.iter().any(|setting| setting.error.is_some());
    report.exit_with(if has_error { ErrorKind::Config.exit_code() } else { 0 }, None);
    report.set("settings", settings.iter().map(to_json).collect::<Value>());
    let (own, global): (Vec<_>, Vec<_>) = settings.iter().partition(|setting| setting.lineage.is_some());
    report.push(table(&["setting", "value", "from"], &global));
    if !own.is_empty() {
        report.push("\n");
        report.push(table(&["lineage", "setting", "value", "from"], &own));
    }
}

fn to_json(setting: &EffectiveSetting) -> Value {
    json!({
        "key": setting.key,
        // `null` for the whole run.
        "lineage": setting.lineage,
        // `null` if it is unset or invalid.
        "value": setting.value,
        "origin": origin(setting),
        "error": setting.error.as_ref().map(ToString::to_string),
        "hint": setting.error.as_ref().and_then(hint),
    })
}

fn table(heads: &[&'static str], settings: &[&EffectiveSetting]) -> Table {
    let mut table = Table::new(heads);
    for setting in settings {
        let absent = match setting.error {
            Some(_) if setting.origin.is_none() => "missing",
            Some(_) => "invalid",
            None => "-",
        };
        let value = setting.value.as_deref().unwrap_or(absent);
        let cells = [setting.key.as_str(), value, origin(setting)];
        table.row(setting.lineage.as_deref().into_iter().chain(cells).map(Cell::from));
        if let Some(error) = &setting.error {
            let hint = hint(error).map(|hint| format!("; {hint}")).unwrap_or_default();
            table.note(&text::sanitize(&format!("{error}{hint}")));
        }
    }
    table
}

fn hint(error: &SettingsError) -> Option<String> {
    error.hint.as_ref().map(ToString::to_string)
}

fn origin(setting: &EffectiveSetting) -> &str {
    setting.origin.as_deref().unwrap_or("default")
}
