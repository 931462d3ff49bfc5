//! The check `pem`: whether the files can be read, and what was repaired.

use super::finding::{Check, Finding, Status};
use crate::bundle::{Bundle, Chain};
use crate::text;

pub(super) fn check(bundle: &Bundle) -> Vec<Finding> {
    let file = text::path(&bundle.files.cert);
    let fail = |file: &str, found: &str, hint: &'static str| {
        Finding::fail(Check::Pem, format!("{file} holds {found}")).hint(hint)
    };
    let warn = |file: &str, repair: &str| Finding::warn(Check::Pem, format!("{file}: {repair}"));
    let mut findings = Vec::new();
    match &bundle.chain {
        Ok(chain) => {
            findings.extend(chain.repairs.iter().map(|repair| warn(&file, repair)));
            findings.extend(chain.leaf.fault.map(|fault| {
                let found = format!("a certificate that {fault}; TLS clients reject it");
                fail(&file, &found, "have the CA issue it again; RFC 5280 forbids this")
            }));
        }
        Err(defects) => {
            findings.extend(defects.iter().map(|defect| fail(&file, &defect.found, defect.hint)));
        }
    }
    if let (Some(key), Some(file)) = (&bundle.key, bundle.files.key.as_deref().map(text::path)) {
        match key {
            Ok(key) if key.is_repaired => {
                findings.push(warn(&file, "encoded the key again, in the form that every server reads"));
            }
            Ok(_) => {}
            Err(defect) => findings.push(fail(&file, &defect.found, defect.hint)),
        }
    }
    if findings.is_empty() {
        findings.push(Finding::ok(Check::Pem, summary(bundle)));
    } else if !bundle.cleaned.is_empty() && findings.iter().all(|finding| finding.status != Status::Fail) {
        findings.push(Finding::ok(Check::Pem, cleaned(bundle)));
    }
    findings
}

/// What was read: `2 certificates and a private key; cleaned: line ends`.
fn summary(bundle: &Bundle) -> String {
    let certificates = text::count(bundle.chain.as_ref().map_or(0, Chain::length), "certificate");
    let key = if bundle.key.is_some() { " and a private key" } else { "" };
    let cleaned = if bundle.cleaned.is_empty() { String::new() } else { format!("; {}", cleaned(bundle)) };
    format!("{certificates}{key}{cleaned}")
}

fn cleaned(bundle: &Bundle) -> String {
    format!("cleaned: {}", text::list(&bundle.cleaned))
}
