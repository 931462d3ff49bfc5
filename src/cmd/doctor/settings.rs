//! `doctor --settings`: the settings in effect and where each comes from. Sends no request.

use serde_json::{Value, json};

use crate::context::Context;
use crate::error::ErrorKind;
use crate::report::{Cell, Report, Table};
use crate::settings::{self, EffectiveSetting, Layer, Layers};
use crate::text;

/// Lists the settings of the run, then those that lineages have of their own.
pub(super) fn list(flags: &Layer, context: &Context, report: &mut Report) {
    let layers = Layers::new(flags, &context.env, context.configuration());
    let settings = settings::effective(&layers, context.config.as_deref());
    let is_invalid = settings.iter().any(|setting| setting.error.is_some());
    report.exit_with(if is_invalid { ErrorKind::Config.exit_code() } else { 0 }, None);
    report.set("settings", settings.iter().map(to_json).collect::<Value>());
    let mut table = Table::new(&["setting", "value", "from", "lineage"]);
    for setting in &settings {
        let absent = match &setting.error {
            Some(error) if error.is_missing => "missing",
            Some(_) => "invalid",
            None => "-",
        };
        let value = setting.value.as_deref().unwrap_or(absent);
        let lineage = setting.lineage.as_deref().unwrap_or("-");
        table.row([&setting.key, value, &setting.origin, lineage].map(Cell::from));
        if let Some(error) = &setting.error {
            table.note(&text::sanitize(&text::sentence(error, error.hint.as_ref())));
        }
    }
    report.push(table);
}

fn to_json(setting: &EffectiveSetting) -> Value {
    let error = setting.error.as_ref();
    json!({
        "key": setting.key,
        // `null` for the whole run.
        "lineage": setting.lineage,
        // `null` if it is unset or invalid.
        "value": setting.value,
        "origin": setting.origin,
        "error": error.map(ToString::to_string),
        "hint": error.and_then(|error| error.hint.as_ref()).map(ToString::to_string),
    })
}
