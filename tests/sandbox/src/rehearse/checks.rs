//! Checks of the service's records and of what the edge serves.

use serde_json::Value;

use super::Rehearsal;
use crate::{names, probe};

impl Rehearsal<'_> {
    /// Returns the sites that the certificate covers: one per name, with `www` in place of a wildcard.
    pub(super) fn covered_sites(&self) -> Vec<String> {
        let sites = self.lineage.names.iter().map(|name| match name.strip_prefix("*.") {
            Some(parent) => format!("www.{parent}"),
            None => name.clone(),
        });
        let mut sites: Vec<String> = sites.filter(|site| names::is_domain(site)).collect();
        sites.sort();
        sites.dedup();
        sites
    }

    /// Returns the IDs of all certificate records.
    pub(super) fn record_ids(&self) -> Vec<i64> {
        let id = |record: &Value| record.get("id").and_then(Value::as_i64);
        self.sandbox.certs().iter().filter_map(id).collect()
    }

    /// Checks that each covered site is bound to the record, and the bystander to none.
    pub(super) fn check_bindings(&mut self) {
        let (covered, record) = (self.covered_sites(), self.record);
        let mut wrong = Vec::new();
        for site in self.sandbox.sites() {
            let domain = site.get("domain").and_then(Value::as_str).unwrap_or_default();
            let cert_id = site.get("cert_id").and_then(Value::as_i64);
            let is_covered = covered.iter().any(|name| name == domain);
            let is_right =
                if is_covered { cert_id.is_some() && cert_id == record } else { cert_id.is_none() };
            if !is_right {
                wrong.push(format!("{domain} bound to {}", describe_record(cert_id)));
            }
        }
        let expected = format!("{} is bound to {} only", describe_record(record), describe_sites(&covered));
        self.check(wrong.is_empty(), expected, wrong.join(", "));
    }

    /// Checks that the first step's record is still the only one.
    fn check_record_replaced(&mut self) {
        let (ids, record) = (self.record_ids(), self.record);
        let passed = record.is_some_and(|record| ids == [record]);
        let expected = format!("{} was replaced in place, and is the only one", describe_record(record));
        self.check(passed, expected, format!("records {ids:?}"));
    }

    /// Checks that a renewal replaced the record and is served.
    pub(super) fn check_renewed(&mut self) {
        self.check_record_replaced();
        self.check_bindings();
        self.check_served();
    }

    /// Checks that the edge refuses handshakes for each covered site.
    pub(super) fn check_not_served(&mut self, expected: &str) {
        let mut wrong = Vec::new();
        for domain in self.covered_sites() {
            let served = served_leaf(&self.sandbox.endpoints().edge, &domain);
            if served.is_ok() {
                wrong.push(format!("{domain}: {}", describe_served(&served)));
            }
        }
        self.check(wrong.is_empty(), expected, wrong.join(", "));
    }

    /// Checks that the edge serves the newest leaf for each covered site.
    pub(super) fn check_served(&mut self) {
        let leaf = self.lineage.fingerprint.clone();
        self.check_leaf(None, &self.covered_sites(), &leaf, "serves the new leaf");
    }

    /// Checks that the edge serves the leaf from before the renewal for each covered site.
    pub(super) fn check_still_served(&mut self, old_leaf: &str) {
        self.check_leaf(None, &self.covered_sites(), old_leaf, "still serves the old leaf");
    }

    /// Checks which leaf an address of the edge serves for each of these sites; `None` is the main address.
    pub(super) fn check_leaf(&mut self, address: Option<&str>, sites: &[String], leaf: &str, what: &str) {
        let main = self.sandbox.endpoints().edge.clone();
        let mut wrong = Vec::new();
        for domain in sites {
            let served = served_leaf(address.unwrap_or(&main), domain);
            if served.as_ref().is_ok_and(|served| served == leaf) {
                continue;
            }
            wrong.push(format!("{domain}: {}", describe_served(&served)));
        }
        let sites = describe_sites(sites);
        self.check(
            wrong.is_empty(),
            format!("{} {what} {} for {sites}", address.unwrap_or("the edge"), abbreviate(leaf)),
            wrong.join(", "),
        );
    }

    /// Checks that the last hook printed this text.
    pub(super) fn check_output(&mut self, wanted: &str, expected: &str) {
        let passed = self.output.iter().any(|line| line.contains(wanted));
        self.check(passed, expected, format!("no line with \"{wanted}\""));
    }

    /// Checks that the hook listed certificates and sites, and sent nothing else after the first `requests_before`
    /// requests.
    pub(super) fn check_only_listed(&mut self, requests_before: usize) {
        let requests = self.sandbox.requests().into_iter().skip(requests_before);
        let mut sent: Vec<String> =
            requests.map(|request| format!("{} {}", request.method, request.path)).collect();
        sent.sort();
        let passed = sent == ["GET /api/certs", "GET /api/me/sites"];
        self.check(passed, "it listed certificates and sites and sent nothing else", sent.join(", "));
    }
}

/// Returns the fingerprint of the leaf that an address of the edge serves, or why there is none.
pub(super) fn served_leaf(address: &str, domain: &str) -> Result<String, String> {
    let result = probe(address, domain);
    result.map(|result| result.fingerprint).map_err(|error| error.to_string())
}

fn describe_served(served: &Result<String, String>) -> String {
    match served {
        Ok(leaf) => format!("the leaf {}", abbreviate(leaf)),
        Err(reason) => format!("no certificate ({reason})"),
    }
}

fn describe_record(id: Option<i64>) -> String {
    id.map_or_else(|| "no record".to_owned(), |id| format!("record {id}"))
}

/// Names a few sites, or counts many.
fn describe_sites(sites: &[String]) -> String {
    const MAX_NAMED: usize = 3;
    if sites.len() > MAX_NAMED { format!("{} sites", sites.len()) } else { sites.join(", ") }
}

/// Shortens a fingerprint for reading.
fn abbreviate(fingerprint: &str) -> String {
    fingerprint.chars().take(8).collect()
}
