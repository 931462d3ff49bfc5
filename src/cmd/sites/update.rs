//! `edgecert sites update`: changes what is named and nothing else, and shows what changed.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::service::{no_such_site, refused, request_failed};
use super::field_update::FieldUpdate;
use super::{Service, change, decided, label, plain};
use crate::api::{ApiObject, RequestError, Site};
use crate::cli::UpdateArgs;
use crate::error::{CommandError, ErrorKind};
use crate::fields::FIELDS;
use crate::report::{CommandReport, Style, Table};
use crate::text::sanitize;

/// What will be sent, before anything is.
pub(super) fn wish(args: &UpdateArgs) -> Result<FieldUpdate, CommandError> {
    let wish = FieldUpdate::read(&args.fields)?;
    if wish.fields.is_empty() {
        return Err(decided(
            ErrorKind::Usage,
            "no field is named",
            "name one with --set, --origin or --from",
        ));
    }
    if !wish.has_file() {
        wish.check()?;
    }
    Ok(wish)
}

pub(super) async fn run(
    args: &UpdateArgs,
    mut wish: FieldUpdate,
    service: &Service,
    style: Style,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    let before = service.find(&args.site).await?;
    wish.leave_out_what_is_so(&before.json);
    wish.check()?;
    report.warnings.extend(wish.typo_warnings());
    if wish.fields.is_empty() {
        let _ = writeln!(report.body.text, "{}: everything is so already", label(&before));
        change::settle(args.wait, before, service, report).await?;
        return Ok(());
    }
    let (after, ignored) = save(&before, &wish.fields, service).await?;
    let _ = writeln!(report.body.text, "{}: saved", label(&after));
    let changes = changes(&before.json, &after.json, &wish.fields);
    warn_of_strangers(&changes, &wish.fields, report);
    if args.diff {
        report.body.text.push_str(&shown(&changes, style));
        report.body.set("diff", &changes);
    }
    report.body.set("site", &after.json);
    change::compare(&wish.fields, &ignored, &after, report);
    change::nothing_ignored(&ignored, &wish.fields, &after, report)?;
    change::settle(args.wait, after, service, report).await?;
    Ok(())
}

/// Saves fields of a site; the site as it is afterwards, and the fields that were dropped.
pub(super) async fn save(
    before: &ApiObject<Site>,
    fields: &Map<String, Value>,
    service: &Service,
) -> Result<(ApiObject<Site>, Vec<String>), CommandError> {
    let id = before.known.id;
    let saved = service.client.update_site(id, fields).await;
    let saved = saved.map_err(|failed| not_saved(&failed, before))?;
    let site = match saved.site.filter(|site| site.known.id == id) {
        Some(site) => site,
        None => service.site_again(id).await?,
    };
    Ok((site, saved.ignored_fields))
}

fn not_saved(failed: &RequestError, before: &ApiObject<Site>) -> CommandError {
    let what = format!("{} was not changed", label(before));
    match failed.refused_status() {
        Some(404) => no_such_site(before.known.id),
        Some(403) => refused(what, failed, "name a cert_id or package_id of this account"),
        _ if failed.is_retryable() => {
            request_failed(format!("whether {} was changed is not known", label(before)), failed)
        }
        _ => refused(what, failed, "see what the service says"),
    }
}

/// A field that is something else now; `null` where it was or is absent.
#[derive(Serialize)]
struct Change {
    field: String,
    before: Value,
    after: Value,
}

/// What differs, of the fields that were named and of those that are known. Others are the service's own, such as
/// times and counters.
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

/// Nothing that was not named should change.
fn warn_of_strangers(changes: &[Change], named: &Map<String, Value>, report: &mut CommandReport) {
    for change in changes.iter().filter(|change| !named.contains_key(&change.field)) {
        report.warnings.push(format!(
            "{} was not named and changed too, from {} to {}",
            change.field,
            sanitize(&plain(&change.before)),
            sanitize(&plain(&change.after))
        ));
    }
}

fn shown(changes: &[Change], style: Style) -> String {
    if changes.is_empty() {
        return "nothing changed\n".into();
    }
    let mut table = Table::new(&["field", "before", "after"]);
    for change in changes {
        differences(&change.field, &change.before, &change.after, &mut table);
    }
    table.to_text(style)
}

/// A row for each value that differs; what is within another stands behind a dot, as `sites get` has it.
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
