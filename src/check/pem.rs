//! The check `pem`: whether the files can be read, and what was repaired.

use super::finding::{Check, Finding, Findings, Status};
use super::has_failed;
use crate::bundle::{Bundle, Chain, Defect};
use crate::text;

pub(super) fn check(bundle: &Bundle) -> Vec<Finding> {
    let mut findings = Findings::new(Check::Pem);
    let file = text::path(&bundle.files.cert);
    match &bundle.chain {
        Ok(chain) => {
            for repair in &chain.repairs {
                findings.note(Status::Warn, format!("{file}: {repair}"));
            }
            if chain.leaf.fault.is_some() {
                let found = format!("{file} holds a malformed certificate; TLS clients reject it");
                findings.add(Status::Fail, found, "have the CA issue it again; RFC 5280 forbids this");
            }
        }
        Err(defects) => defects.iter().for_each(|defect| refuse(&mut findings, &file, defect)),
    }
    if let (Some(key), Some(file)) = (&bundle.key, bundle.files.key.as_deref().map(text::path)) {
        match key {
            Ok(key) if key.is_repaired => {
                let found = format!("{file}: re-encoded the key in the form that every server accepts");
                findings.note(Status::Warn, found);
            }
            Ok(_) => {}
            Err(defect) => refuse(&mut findings, &file, defect),
        }
    }
    let certificates = text::count(bundle.chain.as_ref().map_or(0, Chain::length), "certificate");
    let mut summary = certificates + if bundle.key.is_some() { " and a private key" } else { "" };
    if !bundle.cleaned.is_empty() {
        let cleaned = format!("cleaned: {}", text::list(&bundle.cleaned));
        summary = format!("{summary}; {cleaned}");
        if !findings.list.is_empty() && !has_failed(&findings.list) {
            findings.note(Status::Ok, cleaned);
        }
    }
    findings.or_ok(summary)
}

fn refuse(findings: &mut Findings, file: &str, defect: &Defect) {
    findings.add(Status::Fail, format!("{file} holds {}", defect.found), defect.hint);
}
