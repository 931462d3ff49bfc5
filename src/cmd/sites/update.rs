//! `edgecert sites update` and `bind`: change only the named fields, and show what changed.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use serde_json::{Value, json};

use super::change::{contains, record};
use super::field_update::{self, Fields};
use super::{label, plain, scalars};
use crate::cli::{BindArgs, FieldArgs, SiteArgs, UpdateArgs};
use crate::cmd::session::{SEE_REASON_HINT, Session, not_done};
use crate::context::Context;
use crate::error::{CommandError, ErrorKind, Result};
use crate::fields::FIELDS;
use crate::report::{Block, Report, Table};
use crate::text::sanitize;

pub(super) async fn run(args: &UpdateArgs, context: &Context, report: &mut Report) -> Result<()> {
    let (mut sent, named) = field_update::read(&args.fields)?;
    if sent.is_empty() && named.is_empty() {
        return Err(CommandError::new(ErrorKind::Usage, "no field is named")
            .hint("name one with --set, --origin or --from"));
    }
    // Those of a file can only be checked once the site is known.
    if sent.is_empty() {
        field_update::check(&named)?;
    }
    let SiteArgs { site, wait, service } = &args.target;
    let mut session = Session::open(service, context, report)?;
    let mut before = session.find(site).await?;
    // The file may be the whole site with one field edited.
    sent.retain(|name, wanted| {
        let is_equal = |found| contains(found, wanted) && contains(wanted, found);
        !before.json.get(name).is_some_and(is_equal)
    });
    sent.extend(named);
    field_update::check(&sent)?;
    if sent.is_empty() {
        session.report.push(format!("{}: already up to date", label(&before)));
        return session.finish(*wait, &mut before).await;
    }
    let (id, allow_uncovered) = (before.known.id, args.fields.allow_uncovered);
    session.check_binding(&sent, &before.known.domain, Some(&before), allow_uncovered).await?;
    let saved = session.client.update_site(id, &sent).await.map_err(|cause| {
        let has_reference = ["cert_id", "package_id"].iter().any(|name| sent.contains_key(*name));
        let hint = match cause.refused_status() {
            Some(403) if has_reference => "name a cert_id or package_id of this account",
            _ => SEE_REASON_HINT,
        };
        not_done(&cause, id, label(&before), "changed", hint)
    })?;
    let mut after = match saved.site.filter(|site| site.known.id == id) {
        Some(site) => site,
        None => session.reread(id).await?,
    };
    let changes = changes(&before.json, &after.json, &sent);
    for FieldChange { field, before, after } in
        changes.iter().filter(|change| !sent.contains_key(&change.field))
    {
        let [before, after] = [before, after].map(|value| sanitize(&plain(value)));
        let warning = format!("{field} was not part of the request but changed, from {before} to {after}");
        session.report.warnings.push(warning);
    }
    let verified = session.verify(&after, &sent, &saved.ignored_fields);
    if verified.is_ok() {
        let done = match sent.get("cert_id").and_then(record) {
            Some(cert) if sent.len() == 1 => format!("bound to certificate {cert}"),
            _ => "saved".to_owned(),
        };
        session.report.push(format!("{}: {done}", label(&after)));
    }
    if args.diff {
        session.report.push(diff(&changes));
        session.report.set("diff", &changes);
    }
    verified?;
    session.finish(*wait, &mut after).await
}

/// `edgecert sites bind`: an update of `cert_id`.
pub(super) async fn bind(args: &BindArgs, context: &Context, report: &mut Report) -> Result<()> {
    let BindArgs { site, cert, allow_uncovered, wait, service } = args.clone();
    let assignments = vec![("cert_id".to_owned(), cert.into())];
    let fields = FieldArgs { assignments, allow_uncovered, ..FieldArgs::default() };
    let target = SiteArgs { site, wait, service };
    run(&UpdateArgs { fields, diff: false, target }, context, report).await
}

/// A field whose value differs; `null` where the field is absent.
#[derive(Serialize)]
struct FieldChange {
    field: String,
    before: Value,
    after: Value,
}

/// Returns the differences among the named and the known fields. Others, such as times and counters, belong to the
/// service.
fn changes(before: &Fields, after: &Fields, named: &Fields) -> Vec<FieldChange> {
    let known = FIELDS.iter().map(|(field, _)| *field).chain(["cname", "domain", "enabled"]);
    let fields: BTreeSet<String> = named.keys().cloned().chain(known.map(str::to_owned)).collect();
    let of = |map: &Fields, name: &str| map.get(name).cloned().unwrap_or_default();
    let change =
        |name: String| FieldChange { before: of(before, &name), after: of(after, &name), field: name };
    fields.into_iter().map(change).filter(|change| change.before != change.after).collect()
}

fn diff(changes: &[FieldChange]) -> Block {
    if changes.is_empty() {
        return "nothing changed".into();
    }
    let mut table = Table::new(&["field", "before", "after"]);
    for FieldChange { field, before, after } in changes {
        let values = [before, after].map(|value| scalars(field, value));
        let maps = values
            .each_ref()
            .map(|values| values.iter().map(|(name, value)| (name, *value)).collect::<HashMap<_, _>>());
        let mut seen = BTreeSet::new();
        for (name, _) in values.iter().flatten().filter(|(name, _)| seen.insert(name)) {
            let found = maps.each_ref().map(|map| map.get(name).copied());
            let is_empty = |value: &&Value| **value == json!([]) || **value == json!({});
            // Of a list or object that is empty on one side, the elements on the other side have rows.
            let is_nested =
                |other: &String| other.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.'));
            let has_elements = found.iter().flatten().any(is_empty)
                && maps.iter().flat_map(HashMap::keys).any(|other| is_nested(other));
            let [before, after] = found.map(|value| value.map_or_else(|| "null".to_owned(), plain));
            if before != after && !has_elements {
                table.row([name.as_str(), &before, &after].map(Into::into));
            }
        }
    }
    table.into()
}
