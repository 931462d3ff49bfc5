//! The lines of the uploads in the report of `deploy`.

use std::fmt::Write as _;

use serde_json::Value;

use super::style::Sign;
use super::text::Line;
use super::{Deployed, SiteReport, UploadReport};
use crate::text::{count, list, sanitize};

/// Maximum number of a record's sites that are listed; more are counted.
const MAX_LISTED: usize = 3;

/// A line for each upload that the service has stored. The errors are about the others.
pub(super) fn lines(report: &Deployed) -> Vec<Line> {
    let stored: Vec<&UploadReport> = report.uploads.iter().filter(|upload| upload.id.is_some()).collect();
    // The domain is that of a site below, unless there was no listing.
    let is_named = stored.len() > 1 || report.sites.iter().any(|site| site.id.is_none());
    stored.iter().map(|upload| line(upload, is_named, report)).collect()
}

fn line(upload: &UploadReport, is_named: bool, report: &Deployed) -> Line {
    let id = upload.id.map_or_else(|| "?".to_owned(), |id| id.to_string());
    let mut text = format!("certificate {id}");
    if is_named {
        let _ = write!(text, " for {}", sanitize(&upload.domain));
    }
    if let Some(service) = &upload.service {
        let _ = write!(text, " at {service}");
    }
    if let Some(created) = upload.created {
        text.push_str(if created { " (created)" } else { " (replaced)" });
    }
    let sites = bound_sites(upload, report);
    match sites.len() {
        0 => {}
        1..=MAX_LISTED if is_named => _ = write!(text, ", bound to {}", list(&sites)),
        number => _ = write!(text, ", bound to {}", count(number, "site")),
    }
    if let Some(other) = upload.key_match.as_ref().filter(|key| !matches!(key.as_str(), "ok" | "unverified"))
    {
        let _ = write!(text, ", key_match: {}", sanitize(other));
    }
    if upload.attempts > 1 {
        let _ = write!(text, ", after {}", count(upload.attempts as usize, "attempt"));
    }
    if !upload.ok {
        text.push_str("; the response does not confirm it");
    }
    Line::new(if upload.ok { Sign::Ok } else { Sign::Warning }, &"uploaded", text)
}

/// The sites bound to the record: as the service said when it created the record, or as they were read afterwards. A
/// response to a replacement lists none.
fn bound_sites(upload: &UploadReport, report: &Deployed) -> Vec<String> {
    let listed = match &upload.bound_sites {
        Value::Array(items) => items.iter().map(name).collect(),
        _ => Vec::new(),
    };
    let is_bound = |site: &SiteReport| (site.cert_id, &site.service) == (upload.id, &upload.service);
    let read = report.sites.iter().filter(|site| site.id.is_some() && is_bound(site));
    let read: Vec<String> = read.map(|site| site.domain.to_string()).collect();
    if read.len() < listed.len() { listed } else { read }
}

/// An element, which may be a number, a name or an object: the API document does not say.
fn name(item: &Value) -> String {
    let named = ["domain", "name", "id"].iter().find_map(|field| item.get(field)).unwrap_or(item);
    named.as_str().map_or_else(|| sanitize(&named.to_string()), sanitize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(domains: usize, bound_sites: &Value, created: bool) -> String {
        let upload = |at: usize| UploadReport {
            service: None,
            domain: format!("{at}.example"),
            ok: true,
            id: Some(5),
            created: Some(created),
            not_after: None,
            key_match: Some("unverified".into()),
            bound_sites: bound_sites.clone(),
            attempts: 1,
            error: None,
        };
        let body = Deployed { uploads: (0..domains).map(upload).collect(), ..Deployed::default() };
        lines(&body).remove(0).text
    }

    #[test]
    fn bound_sites_of_any_shape_are_shown() {
        let rows = [
            (json!([]), ""),
            (json!(null), ""),
            (json!([1, 2]), ", bound to 1 and 2"),
            (json!(["a.example", "b\u{1b}[2J.example"]), ", bound to a.example and b [2J.example"),
            (json!([{"id": 1, "domain": "a.example"}, {"id": 2}]), ", bound to a.example and 2"),
            (json!([1, 2, 3, 4]), ", bound to 4 sites"),
        ];
        for (value, expected) in rows {
            assert_eq!(shown(2, &value, true), format!("certificate 5 for 0.example (created){expected}"));
        }
        assert_eq!(shown(1, &json!(["a.example"]), false), "certificate 5 (replaced), bound to 1 site");
    }
}
