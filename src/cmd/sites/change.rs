//! Common steps of changes to a site: checks that a certificate covers it before `cert_id` is set, and afterwards for
//! ignored fields and other differences, and waits for the edge.

use std::time::Duration;

use serde_json::Value;
use tokio::time::sleep;

use super::field_update::Fields;
use super::label;
use crate::api::{ApiObject, Site};
use crate::bundle::{Bundle, Files};
use crate::cli::WaitArgs;
use crate::clock::Deadline;
use crate::cmd::session::{Session, contradiction};
use crate::error::{CommandError, ErrorKind, Result};
use crate::fields;
use crate::names::Domain;
use crate::settings::Seconds;
use crate::text::{humanize, list, sanitize};

/// Pauses between requests for the site; a push takes seconds.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(2);

impl Session<'_> {
    /// Refuses fields that leave the site without a certificate that covers it, or warns if that is allowed. `before` is
    /// the site, unless it is to be created.
    pub(super) async fn check_binding(
        &mut self,
        fields: &Fields,
        domain: &Domain,
        before: Option<&ApiObject<Site>>,
        allow_uncovered: bool,
    ) -> Result<()> {
        let Some(cert_id) = fields.get("cert_id") else { return Ok(()) };
        let site = before.map_or_else(|| domain.to_string(), label);
        let uncovered = if let Some(cert) = record(cert_id) {
            let names = self.uncovering_names(cert, domain).await;
            names.map(|names| format!("certificate {cert} does not cover {site}, only {}", list(&names)))
        } else {
            let is_bound = before.is_some_and(|site| !site.known.is_unbound());
            is_bound.then(|| format!("{site} would be left without a certificate"))
        };
        match uncovered {
            Some(uncovered) if !allow_uncovered => {
                let message = format_args!("{uncovered}; nothing was changed");
                let error = CommandError::new(ErrorKind::Refused, message);
                Err(error.hint("bind another certificate, or pass --allow-uncovered"))
            }
            uncovered => {
                self.report.warnings.extend(uncovered);
                Ok(())
            }
        }
    }

    /// The names of a certificate that is known not to cover the domain. Only the certificate itself counts: the listing
    /// may show fewer names than the certificate has, or a name that it does not have.
    async fn uncovering_names(&mut self, cert: u64, domain: &Domain) -> Option<Vec<String>> {
        let download = match self.client.download(cert).await {
            // The record does not exist or belongs to another account; the service refuses it (section 4.7).
            Err(cause) if cause.refused_status() == Some(404) => return None,
            download => download.ok(),
        };
        let bundle = download.map(|download| {
            let files = Files { cert: "the record".into(), issuers: None, key: None };
            Bundle::from_bytes(&files, download.cert_pem.as_bytes(), None, None)
        });
        let Some(chain) = bundle.and_then(|bundle| bundle.chain.ok()) else {
            let warning = format!("cannot tell whether certificate {cert} covers {domain}");
            self.report.warnings.push(warning);
            return None;
        };
        let is_covered = domain.is_covered_by_any(chain.leaf.dns_names());
        (!is_covered).then(|| chain.leaf.dns_names().map(sanitize).collect())
    }

    /// Reports a site after its fields were saved. Fails if the service ignored one of them (section 4.7) or did not set
    /// `cert_id`, and warns of those that it saved otherwise than sent.
    pub(super) fn verify(&mut self, site: &ApiObject<Site>, sent: &Fields, ignored: &[String]) -> Result<()> {
        self.report.set("site", &site.json);
        self.report.set("ignored_fields", ignored);
        let saved = || sent.iter().filter(|(name, _)| !ignored.contains(name));
        for (name, wanted) in saved() {
            if let Some(found) = site.json.get(name).filter(|found| !contains(found, wanted)) {
                let [name, found, wanted] =
                    [name, &found.to_string(), &wanted.to_string()].map(|text| sanitize(text));
                self.report.warnings.push(format!("{name} was saved as {found}, not as {wanted}"));
            }
        }
        if ignored.is_empty() {
            let Some(wanted) = sent.get("cert_id").map(record) else { return Ok(()) };
            let bound = match (site.known.cert_id, &site.known.unreadable_cert_id) {
                (_, Some(unreadable)) => format!("a cert_id that cannot be read ({unreadable})"),
                (found, None) if found == wanted => return Ok(()),
                (Some(id), None) => format!("certificate {id}"),
                (None, None) => "no certificate".into(),
            };
            let found = format_args!("{} is bound to {bound}", label(site));
            return Err(contradiction(found, "the change was saved"));
        }
        let others = match saved().map(|(name, _)| name).collect::<Vec<_>>().as_slice() {
            [] => "no other field was sent".to_owned(),
            [one] => format!("{one} was saved"),
            several => format!("{} were saved", list(several)),
        };
        let suggestion = |name: &String| {
            Some(format!("{} is not a known field; {} is", sanitize(name), fields::suggestion(name)?))
        };
        let suggestions: Vec<String> = ignored.iter().filter_map(suggestion).collect();
        let id = site.known.id;
        let hint = if suggestions.is_empty() {
            format!("run `edgecert sites get {id}` to see the fields that can be set")
        } else {
            format!("{}; set it with `edgecert sites update {id} --set FIELD=VALUE`", suggestions.join("; "))
        };
        let ignored = list(ignored.iter().map(|name| sanitize(name)));
        let message = format_args!("the service ignored {ignored} of {}; {others}", label(site));
        Err(CommandError::new(ErrorKind::Service, message).hint(hint))
    }

    /// Reports the site as it is now, and waits for the edge if `--wait` was given.
    pub(super) async fn finish(&mut self, wait: WaitArgs, site: &mut ApiObject<Site>) -> Result<()> {
        self.report.set("site", &site.json);
        let Some(wait) = wait.wait else { return Ok(()) };
        let (wait, timeout) = (wait.map_or(self.settings.wait, Seconds::duration), self.settings.timeout);
        let end = Deadline::after(wait).or_sooner(self.deadline);
        let mut pause = FIRST_PAUSE;
        while !site.known.config_synced {
            // Leaves 100 ms for the last reading.
            let left = end.left().saturating_sub(FIRST_PAUSE / 2);
            if left.is_zero() {
                let message = format_args!(
                    "the configuration of {} did not reach the edge within {}; the service continues the push",
                    label(site),
                    humanize(time::Duration::try_from(wait.min(timeout)).unwrap_or(time::Duration::MAX))
                );
                let flag = if timeout < wait { "--timeout SECS" } else { "--wait=SECS" };
                let hint = format!("wait longer with {flag}");
                return Err(CommandError::new(ErrorKind::Temporary, message).hint(hint));
            }
            sleep(pause.min(left)).await;
            pause = (2 * pause).min(MAX_PAUSE);
            *site = self.reread(site.known.id).await?;
            self.report.set("site", &site.json);
        }
        self.report.push(format!("{}: the configuration has reached the edge", label(site)));
        Ok(())
    }
}

/// The record that a value of `cert_id` names; `None`: no record.
pub(super) fn record(cert_id: &Value) -> Option<u64> {
    cert_id.as_u64().filter(|id| *id != 0)
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
