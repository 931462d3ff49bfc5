//! What follows every change of a site: the fields that were ignored, what it is now, and the wait for the edge.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::sleep;

use super::{Service, decided, label};
use crate::api::{ApiObject, Site};
use crate::cli::WaitArgs;
use crate::clock::Deadline;
use crate::error::{CommandError, ErrorKind};
use crate::fields;
use crate::report::CommandReport;
use crate::text::{humanize, list, sanitize};

/// The edge takes seconds; asking more often would only cost requests.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Records the site as it is now, and waits for the edge where that is asked for.
pub(super) async fn settle(
    wait: WaitArgs,
    site: ApiObject<Site>,
    service: &Service,
    report: &mut CommandReport,
) -> Result<ApiObject<Site>, CommandError> {
    report.body.set("site", &site.json);
    if !wait.is_wanted() {
        return Ok(site);
    }
    let site = pushed(site, service, report).await?;
    let _ = writeln!(report.body.text, "{}: the configuration has reached the edge", label(&site));
    Ok(site)
}

/// Reads the site until its configuration has reached the edge.
async fn pushed(
    mut site: ApiObject<Site>,
    service: &Service,
    report: &mut CommandReport,
) -> Result<ApiObject<Site>, CommandError> {
    let wait = service.settings.wait;
    let end = Deadline::after(wait).or_sooner(service.deadline);
    let mut pause = FIRST_PAUSE;
    while !site.known.config_synced {
        if pause >= end.left() {
            let waited = wait.min(service.settings.timeout);
            let waited = humanize(time::Duration::try_from(waited).unwrap_or(time::Duration::MAX));
            let message = format!(
                "the configuration of {} has not reached the edge within {waited}; the service goes on with it",
                label(&site)
            );
            let longer = if service.settings.timeout < wait { "--timeout SECS" } else { "--wait=SECS" };
            return Err(decided(ErrorKind::Temporary, message, format!("wait longer with {longer}")));
        }
        sleep(pause).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
        site = service.site_again(site.known.id).await?;
        report.body.set("site", &site.json);
    }
    Ok(site)
}

/// Fields that the service dropped are a failure (section 4.7), and the others are saved nevertheless.
pub(super) fn nothing_ignored(
    ignored: &[String],
    sent: &Map<String, Value>,
    site: &ApiObject<Site>,
    report: &mut CommandReport,
) -> Result<(), CommandError> {
    report.body.set("ignored_fields", ignored);
    if ignored.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = ignored.iter().map(|name| sanitize(name)).collect();
    let saved: Vec<&String> = sent.keys().filter(|name| !ignored.contains(name)).collect();
    let others = match saved.as_slice() {
        [] => "nothing else was sent".to_owned(),
        [one] => format!("{one} was saved"),
        several => format!("{} were saved", list(several)),
    };
    let message = format!("the service ignored {} of {}; {others}", list(&names), label(site));
    let typo_warnings: Vec<String> = ignored.iter().filter_map(|name| suggestion(name)).collect();
    // The hint says it.
    report.warnings.retain(|warning| !typo_warnings.contains(warning));
    let id = site.known.id;
    let hint = match typo_warnings.as_slice() {
        [] => format!("no such field can be set; `edgecert sites get {id}` shows those that there are"),
        typo_warnings => {
            format!("{}; set it with `edgecert sites update {id} --set …`", typo_warnings.join("; "))
        }
    };
    Err(decided(ErrorKind::Service, message, hint))
}

/// The known field that is meant, in words.
pub(super) fn suggestion(name: &str) -> Option<String> {
    fields::suggestion(name).map(|known| format!("{} is not a known field; {known} is", sanitize(name)))
}

/// Warns of fields that were sent, not ignored, and are something else now.
pub(super) fn compare(
    sent: &Map<String, Value>,
    ignored: &[String],
    site: &ApiObject<Site>,
    report: &mut CommandReport,
) {
    for (name, wanted) in sent.iter().filter(|(name, _)| !ignored.contains(name)) {
        if let Some(found) = site.json.get(name).filter(|found| !holds(found, wanted)) {
            report.warnings.push(format!(
                "{} was saved as {}, not as {}",
                sanitize(name),
                sanitize(&found.to_string()),
                sanitize(&wanted.to_string())
            ));
        }
    }
}

/// Whether a value is there as it was sent. The service may add to objects, and writes "none" in several ways.
pub(super) fn holds(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(name, value)| found.get(name).is_some_and(|found| holds(found, value)))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(found, value)| holds(found, value))
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
    fn a_value_holds_where_the_service_only_adds_to_it() {
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
            assert_eq!(holds(&found, &wanted), expected, "{found} {wanted}");
        }
    }
}
