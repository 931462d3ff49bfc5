//! `edgecert sites update`: changes only the named fields, and shows what changed.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value};

use super::binding::Binding;
use super::field_update::FieldUpdate;
use super::{change, label, plain};
use crate::api::{ApiObject, RequestError, Site};
use crate::cli::UpdateArgs;
use crate::cmd::session::{NoSuchSite, OperationError, SEE_REASON_HINT, Session};
use crate::error::{CommandError, Diagnostic, ErrorKind};
use crate::fields::FIELDS;
use crate::hint::Hint;
use crate::report::{CommandReport, Style, Table};
use crate::text::sanitize;

/// The command names no field.
#[derive(Debug, thiserror::Error)]
#[error("no field is named")]
pub(super) struct NoField;

impl Diagnostic for NoField {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Usage
    }

    fn hint(&self) -> Option<Hint> {
        Some("name one with --set, --origin or --from".into())
    }
}

/// The fields to send, checked before anything is sent, unless a file sets some.
pub(super) fn fields(args: &UpdateArgs) -> Result<FieldUpdate, CommandError> {
    let update = FieldUpdate::read(&args.fields)?;
    if update.fields.is_empty() {
        return Err(NoField.into());
    }
    if !update.has_file() {
        update.check()?;
    }
    Ok(update)
}

pub(super) async fn run(
    args: &UpdateArgs,
    mut update: FieldUpdate,
    session: &Session,
    style: Style,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let before = session.find(&args.site).await?;
    update.omit_unchanged(&before.json);
    update.check()?;
    report.warnings.extend(update.typo_warnings());
    if update.fields.is_empty() {
        let _ = writeln!(report.body.text, "{}: already up to date", label(&before));
        change::finish(args.wait, before, session, report).await?;
        return Ok(());
    }
    let binding = update.cert_id().map(|cert| Binding::of(&before, Some(cert).filter(|id| *id != 0)));
    if let Some(binding) = &binding {
        binding.check(args.fields.allow_uncovered, session, report).await?;
    }
    let (after, ignored) = save(&before, &update.fields, session).await?;
    let _ = writeln!(report.body.text, "{}: saved", label(&after));
    let changes = changes(&before.json, &after.json, &update.fields);
    warn_of_unnamed(&changes, &update.fields, report);
    if args.diff {
        report.body.text.push_str(&diff(&changes, style));
        report.body.set("diff", &changes);
    }
    report.body.set("site", &after.json);
    change::warn_of_differences(&update.fields, &ignored, &after, report);
    change::require_none_ignored(&ignored, &update.fields, &after, report)?;
    if let Some(binding) = &binding {
        binding.require(&after)?;
    }
    change::finish(args.wait, after, session, report).await?;
    Ok(())
}

/// Saves fields of a site. Returns the saved site and the fields that were ignored.
pub(super) async fn save(
    before: &ApiObject<Site>,
    fields: &Map<String, Value>,
    session: &Session,
) -> Result<(ApiObject<Site>, Vec<String>), CommandError> {
    let id = before.known.id;
    let saved = session.client.update_site(id, fields).await;
    let saved = saved.map_err(|cause| not_saved(cause, before, fields))?;
    let site = match saved.site.filter(|site| site.known.id == id) {
        Some(site) => site,
        None => session.reread_site(id).await?,
    };
    Ok((site, saved.ignored_fields))
}

fn not_saved(cause: RequestError, before: &ApiObject<Site>, fields: &Map<String, Value>) -> CommandError {
    let has_reference = ["cert_id", "package_id"].iter().any(|name| fields.contains_key(*name));
    let site = label(before);
    let unchanged = format!("{site} was not changed");
    match cause.refused_status() {
        Some(404) => NoSuchSite::Id { id: before.known.id }.into(),
        Some(403) if has_reference => OperationError::new(unchanged, cause)
            .refused_hint("name a cert_id or package_id of this account")
            .into(),
        _ if cause.is_retryable() => {
            OperationError::new(format!("{site} may or may not have been changed"), cause).into()
        }
        _ => OperationError::new(unchanged, cause).refused_hint(SEE_REASON_HINT).into(),
    }
}

/// A field whose value differs; `null` where the field is absent.
#[derive(Serialize)]
struct Change {
    field: String,
    before: Value,
    after: Value,
}

/// Returns the differences among the named and the known fields. Others, such as times and counters, belong to the
/// service.
fn changes(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    named: &Map<String, Value>,
) -> Vec<Change> {
    let known = FIELDS.iter().map(|field| field.name).chain(["cname", "domain", "enabled"]);
    let mut fields: Vec<&str> = named.keys().map(String::as_str).chain(known).collect();
    fields.sort_unstable();
    fields.dedup();
    let of = |map: &Map<String, Value>, name: &str| map.get(name).cloned().unwrap_or_default();
    let change =
        |name: &str| Change { field: name.to_owned(), before: of(before, name), after: of(after, name) };
    fields.into_iter().map(change).filter(|change| change.before != change.after).collect()
}

/// Warns of fields that changed although they were not named.
fn warn_of_unnamed(changes: &[Change], named: &Map<String, Value>, report: &mut CommandReport) {
    for change in changes.iter().filter(|change| !named.contains_key(&change.field)) {
        report.warnings.push(format!(
            "{} was not part of the request but changed, from {} to {}",
            change.field,
            sanitize(&plain(&change.before)),
            sanitize(&plain(&change.after))
        ));
    }
}

fn diff(changes: &[Change], style: Style) -> String {
    if changes.is_empty() {
        return "nothing changed\n".into();
    }
    let mut table = Table::new(&["field", "before", "after"]);
    for change in changes {
        differences(&change.field, &change.before, &change.after, &mut table);
    }
    table.to_text(style)
}

/// Adds a row for each scalar that differs; nested names are joined by dots, as in `sites get`.
fn differences(name: &str, before: &Value, after: &Value, table: &mut Table) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for inner in names {
                let of = |map: &Map<String, Value>| map.get(inner).cloned().unwrap_or_default();
                differences(&format!("{name}.{inner}"), &of(old), &of(new), table);
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for at in 0..old.len().max(new.len()) {
                let of = |items: &[Value]| items.get(at).cloned().unwrap_or_default();
                differences(&format!("{name}.{at}"), &of(old), &of(new), table);
            }
        }
        (before, after) if before == after => {}
        (before, after) => table.row([name.into(), plain(before).into(), plain(after).into()]),
    }
}
