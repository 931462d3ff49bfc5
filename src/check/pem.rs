//! The check `pem`: whether the files can be read, and what was repaired.

use super::finding::{Check, Finding, Status};
use crate::bundle::{Bundle, Chain};
use crate::text;

pub(super) fn check(bundle: &Bundle) -> Vec<Finding> {
    let mut findings = chain_findings(bundle);
    findings.extend(leaf_finding(bundle));
    findings.extend(key_finding(bundle));
    if findings.is_empty() {
        findings.push(Finding::ok(Check::Pem, summary(bundle)));
    } else if !bundle.cleaned.is_empty() && findings.iter().all(|finding| finding.status != Status::Fail) {
        findings.push(Finding::ok(Check::Pem, cleaned(bundle)));
    }
    findings
}

fn chain_findings(bundle: &Bundle) -> Vec<Finding> {
    let file = text::path(&bundle.files.cert);
    match &bundle.chain {
        Ok(chain) => {
            let warn = |repair| Finding::warn(Check::Pem, format!("{file}: {repair}"));
            chain.repairs.iter().map(warn).collect()
        }
        Err(defects) => {
            let fail = |found, hint| Finding::fail(Check::Pem, format!("{file} holds {found}")).hint(hint);
            defects.iter().map(|defect| fail(&defect.found, defect.hint)).collect()
        }
    }
}

fn leaf_finding(bundle: &Bundle) -> Option<Finding> {
    let fault = bundle.chain.as_ref().ok()?.leaf.fault?;
    let file = text::path(&bundle.files.cert);
    let detail = format!("{file} holds a certificate that {fault}; TLS clients reject it");
    Some(Finding::fail(Check::Pem, detail).hint("have the CA issue it again; RFC 5280 forbids this"))
}

fn key_finding(bundle: &Bundle) -> Option<Finding> {
    let (key, file) = (bundle.key.as_ref()?, text::path(bundle.files.key.as_ref()?));
    match key {
        Ok(key) if key.repairs.is_empty() => None,
        Ok(key) => {
            let repairs: Vec<String> = key.repairs.iter().map(ToString::to_string).collect();
            Some(Finding::warn(Check::Pem, format!("{file}: {}", text::list(&repairs))))
        }
        Err(defect) => {
            let detail = format!("{file} holds {}", defect.found);
            Some(Finding::fail(Check::Pem, detail).hint(defect.hint))
        }
    }
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
