//! `edgecert sites update` and `bind`: change only the named fields, and show what changed.

use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

use super::binding::Binding;
use super::field_update::FieldUpdate;
use super::{change, label, plain};
use crate::api::{ApiObject, RequestError, Site};
use crate::cli::{BindArgs, UpdateArgs};
use crate::cmd::session::{SEE_REASON_HINT, Session, failed, failed_or_refused, no_such_site};
use crate::context::Context;
use crate::error::{CommandError, ErrorKind};
use crate::fields::FIELDS;
use crate::report::{Block, Report, Table};
use crate::text::sanitize;

pub(super) async fn run(
    args: &UpdateArgs,
    context: &Context,
    report: &mut Report,
) -> Result<(), CommandError> {
    let mut update = FieldUpdate::read(&args.fields)?;
    if update.fields.is_empty() {
        return Err(CommandError::new(ErrorKind::Usage, "no field is named")
            .hint("name one with --set, --origin or --from"));
    }
    // Those of a file can only be checked once the site is known.
    if !update.has_file() {
        update.check()?;
    }
    let session = Session::open(&args.service.layer(args.wait), context)?;
    let before = session.find(&args.site).await?;
    update.omit_unchanged(&before.json);
    update.check()?;
    report.warnings.extend(update.typo_warnings());
    if update.fields.is_empty() {
        report.push(format!("{}: already up to date", label(&before)));
        change::finish(args.wait, before, &session, report).await?;
        return Ok(());
    }
    let saved = save(&before, &update, args.fields.allow_uncovered, &session, report).await?;
    let after = &saved.site;
    report.push(format!("{}: saved", label(after)));
    let changes = changes(&before.json, &after.json, &update.fields);
    warn_of_unnamed(&changes, &update.fields, report);
    if args.diff {
        report.push(diff(&changes));
        report.set("diff", &changes);
    }
    change::verify(after, &update.fields, &saved.ignored, saved.binding.as_ref(), report)?;
    change::finish(args.wait, saved.site, &session, report).await?;
    Ok(())
}

/// `edgecert sites bind`: an update of `cert_id`.
pub(super) async fn bind(
    args: &BindArgs,
    context: &Context,
    report: &mut Report,
) -> Result<(), CommandError> {
    let update = FieldUpdate::of("cert_id", args.cert);
    let session = Session::open(&args.service.layer(args.wait), context)?;
    let before = session.find(&args.site).await?;
    let saved = save(&before, &update, args.allow_uncovered, &session, report).await?;
    change::verify(&saved.site, &update.fields, &saved.ignored, saved.binding.as_ref(), report)?;
    report.push(format!("{}: bound to certificate {}", label(&saved.site), args.cert));
    change::finish(args.wait, saved.site, &session, report).await?;
    Ok(())
}

/// A site after its fields were saved, for [`change::verify`].
struct Saved<'a> {
    site: ApiObject<Site>,
    ignored: Vec<String>,
    binding: Option<Binding<'a>>,
}

/// Saves fields of a site, after checking what the certificate covers that it is to be bound to.
async fn save<'a>(
    before: &'a ApiObject<Site>,
    update: &FieldUpdate,
    allow_uncovered: bool,
    session: &Session,
    report: &mut Report,
) -> Result<Saved<'a>, CommandError> {
    let binding = update.cert_id().map(|cert| Binding::of(before, Some(cert).filter(|id| *id != 0)));
    if let Some(binding) = &binding {
        binding.check(allow_uncovered, session, report).await?;
    }
    let id = before.known.id;
    let saved = session.client.update_site(id, &update.fields).await;
    let saved = saved.map_err(|cause| not_saved(&cause, before, &update.fields))?;
    let site = match saved.site.filter(|site| site.known.id == id) {
        Some(site) => site,
        None => session.reread(id).await?,
    };
    Ok(Saved { site, ignored: saved.ignored_fields, binding })
}

fn not_saved(cause: &RequestError, before: &ApiObject<Site>, fields: &Map<String, Value>) -> CommandError {
    let has_reference = ["cert_id", "package_id"].iter().any(|name| fields.contains_key(*name));
    let site = label(before);
    let hint = match cause.refused_status() {
        Some(404) => return no_such_site(before.known.id),
        Some(403) if has_reference => "name a cert_id or package_id of this account",
        _ if cause.is_retryable() => {
            return failed(format_args!("{site} may or may not have been changed"), cause);
        }
        _ => SEE_REASON_HINT,
    };
    failed_or_refused(format_args!("{site} was not changed"), cause, hint)
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
fn warn_of_unnamed(changes: &[Change], named: &Map<String, Value>, report: &mut Report) {
    for change in changes.iter().filter(|change| !named.contains_key(&change.field)) {
        report.warnings.push(format!(
            "{} was not part of the request but changed, from {} to {}",
            change.field,
            sanitize(&plain(&change.before)),
            sanitize(&plain(&change.after))
        ));
    }
}

fn diff(changes: &[Change]) -> Block {
    if changes.is_empty() {
        return "nothing changed".into();
    }
    let mut table = Table::new(&["field", "before", "after"]);
    for change in changes {
        differences(&change.field, &change.before, &change.after, &mut table);
    }
    table.into()
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
