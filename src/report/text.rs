//! Formats reports for terminals: a few aligned lines, the outcomes of the sites last.

use std::fmt::Write as _;

use anstyle::AnsiColor;
use serde_json::Value;

use super::edge::ServedLeaf;
use super::style::Style;
use super::{DeployBody, ServingReport, UploadReport};
use crate::check::Status;
use crate::error::CommandError;
use crate::outcome::Outcome;
use crate::text::{count, list, rfc3339, sanitize};

pub(super) fn deployment(report: &DeployBody, command: &str, style: Style) -> String {
    let mut lines = String::new();
    if let Some(certificate) = &report.certificate {
        let names = list(&certificate.names);
        row(
            &mut lines,
            "certificate",
            &format!("{names}; {}, expires {}", certificate.key_type, rfc3339(certificate.not_after)),
        );
    }
    if command == "check" {
        for finding in &report.checks {
            lines.push_str(&finding_line(&finding.check.to_string(), finding.status, &finding.detail, style));
        }
    }
    for step in report.plan.iter().flatten() {
        row(&mut lines, &step.action.to_string(), &format!("{}: {}", step.domain, step.reason));
    }
    lines.push_str(nothing_to_do(report).unwrap_or_default());
    for serving in report.serving.iter().flatten() {
        row(&mut lines, "serving", &format!("{}: {}", sanitize(&serving.domain), served(serving)));
    }
    for upload in report.uploads.iter().filter(|upload| upload.ok) {
        row(&mut lines, "uploaded", &uploaded(upload));
    }
    // The steps of a plan name all sites.
    for site in report.sites.iter().filter(|_| report.plan.is_none()) {
        let colour = match site.outcome {
            Outcome::Served | Outcome::Synced => AnsiColor::Green,
            Outcome::Uploaded | Outcome::Queued => AnsiColor::Yellow,
            Outcome::Skipped | Outcome::Superseded => AnsiColor::Cyan,
            Outcome::Stale
            | Outcome::Misbound
            | Outcome::Refused
            | Outcome::Guarded
            | Outcome::Unknown(_) => AnsiColor::Red,
        };
        let score = site.edge.filter(|edge| edge.served > 0);
        let score = score.map(|edge| format!(" {}/{}", edge.served, edge.addresses)).unwrap_or_default();
        let detail = site.detail.as_ref().map(|detail| format!(", {detail}")).unwrap_or_default();
        let verdict = style.paint(&site.outcome.to_string(), colour);
        row(&mut lines, "site", &format!("{}: {verdict}{score}{detail}", sanitize(&site.domain)));
    }
    lines
}

/// Formats a finding: title, status and detail.
pub(crate) fn finding_line(title: &str, status: Status, detail: &str, style: Style) -> String {
    let (word, colour) = match status {
        Status::Ok => ("ok", AnsiColor::Green),
        Status::Warn => ("warn", AnsiColor::Yellow),
        Status::Fail => ("fail", AnsiColor::Red),
        Status::Skipped => ("skipped", AnsiColor::Cyan),
    };
    let mut line = String::new();
    row(&mut line, title, &format!("{}: {detail}", style.paint(word, colour)));
    line
}

/// Formats errors as `edgecert: error: …`, each followed by a line `edgecert: hint: …` if it has a hint.
pub(crate) fn error_lines(errors: &[CommandError], style: Style) -> String {
    let mut lines = String::new();
    for error in errors {
        let _ = writeln!(lines, "edgecert: {}: {error}", style.paint("error", AnsiColor::Red));
        if let Some(hint) = error.hint() {
            let _ = writeln!(lines, "edgecert: {}: {hint}", style.paint("hint", AnsiColor::Cyan));
        }
    }
    lines
}

/// Formats a warning as `edgecert: warning: …`.
pub(crate) fn warning_line(warning: &str, style: Style) -> String {
    format!("edgecert: {}: {warning}\n", style.paint("warning", AnsiColor::Yellow))
}

/// Says that no site needs anything, so that nothing was sent or would be.
fn nothing_to_do(report: &DeployBody) -> Option<&'static str> {
    let outcomes = || report.sites.iter().map(|site| &site.outcome);
    let is_current = |outcome: &Outcome| matches!(outcome, Outcome::Served | Outcome::Synced);
    if report.changed || report.sites.is_empty() || !report.uploads.is_empty() {
        None
    } else if outcomes().all(is_current) {
        Some("nothing to do: every site has this certificate\n")
    } else if outcomes().all(|outcome| is_current(outcome) || *outcome == Outcome::Superseded) {
        Some("nothing to do\n")
    } else {
        None
    }
}

fn served(serving: &ServingReport) -> String {
    let detail = || serving.detail.as_deref().unwrap_or("not observed");
    match (serving.leaf, &serving.detail) {
        (ServedLeaf::Current, None) => "this certificate".into(),
        (ServedLeaf::Current, Some(detail)) => format!("this certificate; {detail}"),
        (ServedLeaf::Other, _) => detail().into(),
        (ServedLeaf::Unknown, _) => format!("unknown: {}", detail()),
    }
}

fn row(lines: &mut String, title: &str, text: &str) {
    let _ = writeln!(lines, "{title:<12} {text}");
}

fn uploaded(upload: &UploadReport) -> String {
    let id = upload.id.map_or_else(|| "?".to_owned(), |id| id.to_string());
    let mut text = format!("{}: certificate {id}", sanitize(&upload.domain));
    if let Some(created) = upload.created {
        let meaning = if created { "a new record" } else { "replaced in place" };
        let _ = write!(text, ", created: {created} ({meaning})");
    }
    if let Some(key_match) = &upload.key_match {
        let _ = write!(text, ", key_match: {}", sanitize(key_match));
    }
    let _ = write!(text, ", bound_sites: {}", bound_sites(&upload.bound_sites));
    if upload.attempts > 1 {
        let _ = write!(text, ", after {}", count(upload.attempts as usize, "attempt"));
    }
    text
}

/// Formats the elements, which may be numbers, names or objects: the API document does not say.
fn bound_sites(value: &Value) -> String {
    let name = |item: &Value| -> String {
        let named = ["domain", "name", "id"].iter().find_map(|field| item.get(field)).unwrap_or(item);
        named.as_str().map_or_else(|| sanitize(&named.to_string()), sanitize)
    };
    match value {
        Value::Array(items) if items.is_empty() => "none".into(),
        Value::Array(items) => list(&items.iter().map(name).collect::<Vec<_>>()),
        other => sanitize(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bound_sites_of_any_shape_are_shown() {
        let rows = [
            (json!([]), "none"),
            (json!([1, 2]), "1 and 2"),
            (json!(["a.example", "b\u{1b}[2J.example"]), "a.example and b [2J.example"),
            (json!([{"id": 1, "domain": "a.example"}, {"id": 2}]), "a.example and 2"),
            (json!(null), "null"),
        ];
        for (value, shown) in rows {
            assert_eq!(bound_sites(&value), shown);
        }
    }

    #[test]
    fn colour_follows_the_style() {
        assert_eq!(warning_line("x", Style::PLAIN), "edgecert: warning: x\n");
        assert!(warning_line("x", Style { colour: true, ..Style::PLAIN }).contains('\u{1b}'));
    }
}
