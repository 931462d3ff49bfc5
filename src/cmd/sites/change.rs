//! Common steps after a change to a site: checks for ignored fields and other differences, and waits for the edge.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::sleep;

use super::label;
use crate::api::{ApiObject, Site};
use crate::cli::WaitArgs;
use crate::clock::Deadline;
use crate::cmd::session::Session;
use crate::error::{CommandError, Diagnostic, ErrorKind};
use crate::fields;
use crate::hint::Hint;
use crate::report::CommandReport;
use crate::text::{humanize, list, sanitize};

/// Pauses between requests for the site; a push takes seconds.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// A change that was not saved as sent, or has not reached the edge.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChangeError {
    #[error(
        "the configuration of {site} did not reach the edge within {waited}; the service continues the push"
    )]
    NotPushed { site: String, waited: String, flag: &'static str },
    /// Fields that the service dropped (section 4.7); the others are saved.
    #[error("the service ignored {} of {site}; {others}", list(ignored))]
    Ignored { site: String, id: u64, ignored: Vec<String>, others: String, suggestions: Vec<String> },
}

impl Diagnostic for ChangeError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotPushed { .. } => ErrorKind::Temporary,
            Self::Ignored { .. } => ErrorKind::Service,
        }
    }

    fn hint(&self) -> Option<Hint> {
        Some(match self {
            Self::NotPushed { flag, .. } => format!("wait longer with {flag}").into(),
            Self::Ignored { id, suggestions, .. } if suggestions.is_empty() => {
                format!("run `edgecert sites get {id}` to see the fields that can be set").into()
            }
            Self::Ignored { id, suggestions, .. } => format!(
                "{}; set it with `edgecert sites update {id} --set FIELD=VALUE`",
                suggestions.join("; ")
            )
            .into(),
        })
    }
}

/// Reports the site as it is now, and waits for the edge if `--wait` was given.
pub(super) async fn finish(
    wait: WaitArgs,
    site: ApiObject<Site>,
    session: &Session,
    report: &mut CommandReport,
) -> Result<ApiObject<Site>, CommandError> {
    report.body.set("site", &site.json);
    if !wait.is_wanted() {
        return Ok(site);
    }
    let site = wait_until_pushed(site, session, report).await?;
    let _ = writeln!(report.body.text, "{}: the configuration has reached the edge", label(&site));
    Ok(site)
}

async fn wait_until_pushed(
    mut site: ApiObject<Site>,
    session: &Session,
    report: &mut CommandReport,
) -> Result<ApiObject<Site>, CommandError> {
    let (wait, timeout) = (session.settings.wait, session.settings.timeout);
    let end = Deadline::after(wait).or_sooner(session.deadline);
    let mut pause = FIRST_PAUSE;
    while !site.known.config_synced {
        if pause >= end.left() {
            let waited = time::Duration::try_from(wait.min(timeout)).unwrap_or(time::Duration::MAX);
            let flag = if timeout < wait { "--timeout SECS" } else { "--wait=SECS" };
            let (site, waited) = (label(&site), humanize(waited));
            return Err(ChangeError::NotPushed { site, waited, flag }.into());
        }
        sleep(pause).await;
        pause = (2 * pause).min(MAX_PAUSE);
        site = session.reread_site(site.known.id).await?;
        report.body.set("site", &site.json);
    }
    Ok(site)
}

/// Fails if the service ignored fields.
pub(super) fn require_none_ignored(
    ignored: &[String],
    sent: &Map<String, Value>,
    site: &ApiObject<Site>,
    report: &mut CommandReport,
) -> Result<(), ChangeError> {
    report.body.set("ignored_fields", ignored);
    if ignored.is_empty() {
        return Ok(());
    }
    let saved: Vec<&String> = sent.keys().filter(|name| !ignored.contains(name)).collect();
    let others = match saved.as_slice() {
        [] => "no other field was sent".to_owned(),
        [one] => format!("{one} was saved"),
        several => format!("{} were saved", list(several)),
    };
    let suggestions: Vec<String> = ignored.iter().filter_map(|name| suggestion(name)).collect();
    // The hint repeats them.
    report.warnings.retain(|warning| !suggestions.contains(warning));
    Err(ChangeError::Ignored {
        site: label(site),
        id: site.known.id,
        ignored: ignored.iter().map(|name| sanitize(name)).collect(),
        others,
        suggestions,
    })
}

/// Suggests the known field that an unknown one probably misspells.
pub(super) fn suggestion(name: &str) -> Option<String> {
    fields::suggestion(name).map(|known| format!("{} is not a known field; {known} is", sanitize(name)))
}

/// Warns of fields that were neither ignored nor saved as they were sent.
pub(super) fn warn_of_differences(
    sent: &Map<String, Value>,
    ignored: &[String],
    site: &ApiObject<Site>,
    report: &mut CommandReport,
) {
    for (name, wanted) in sent.iter().filter(|(name, _)| !ignored.contains(name)) {
        if let Some(found) = site.json.get(name).filter(|found| !contains(found, wanted)) {
            report.warnings.push(format!(
                "{} was saved as {}, not as {}",
                sanitize(name),
                sanitize(&found.to_string()),
                sanitize(&wanted.to_string())
            ));
        }
    }
}

/// Whether a field was saved as sent. The service may add to objects, and has several spellings of "none".
pub(super) fn contains(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(name, value)| found.get(name).is_some_and(|found| contains(found, value)))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(found, value)| contains(found, value))
        }
        (Value::Number(found), Value::Number(wanted)) => found.as_f64() == wanted.as_f64(),
        (found, Value::Null) => found.is_null() || found == &Value::from(0) || found == &Value::from(""),
        (found, wanted) => found == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn service_may_only_add_to_values() {
        let rows = [
            (json!([{"addr": "a", "weight": 1, "status": true}]), json!([{"addr": "a"}]), true),
            (json!([{"addr": "a"}, {"addr": "b"}]), json!([{"addr": "a"}]), false),
            (json!(1.0), json!(1), true),
            (json!(0), json!(null), true),
            (json!(null), json!(null), true),
            (json!(5), json!(null), false),
            (json!("a"), json!("b"), false),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), false),
        ];
        for (found, wanted, expected) in rows {
            assert_eq!(contains(&found, &wanted), expected, "{found} {wanted}");
        }
    }
}
