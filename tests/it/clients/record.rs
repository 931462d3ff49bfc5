//! Queries the sandbox's records, and splits PEM into certificates for comparison.

use serde_json::Value;

use crate::harness::Sandbox;

/// A record of the service.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) id: u64,
    /// The base64 of each certificate, leaf first.
    pub(super) chain: Vec<String>,
}

/// Returns the only record of the service.
#[track_caller]
pub(super) fn only_record(service: &Sandbox) -> Record {
    let records = service.certs();
    assert_eq!(records.len(), 1, "expected exactly one record: {records:?}");
    let chain = certificates(records[0]["cert_pem"].as_str().unwrap());
    Record { id: records[0]["id"].as_u64().unwrap(), chain }
}

/// Returns the only record, after asserting that these sites are bound to it and that the edge serves it.
#[track_caller]
pub(super) fn served_record(service: &Sandbox, domains: &[&str]) -> Record {
    let record = only_record(service);
    let (sites, served) = (service.sites(), service.edge());
    for domain in domains {
        let is_domain = |value: &&Value| value["domain"] == *domain;
        let site = sites.iter().find(is_domain).unwrap();
        assert_eq!(site["cert_id"], record.id, "{domain} is not bound to the record");
        assert_eq!(site["config_synced"], true, "the hook did not wait for the push of {domain}");
        let served = served.iter().find(is_domain).unwrap();
        assert_eq!(served["cert_id"], record.id, "the edge does not serve the record for {domain}: {served}");
    }
    record
}

/// The base64 of each certificate in a PEM text, without white space.
pub(super) fn certificates(pem: &str) -> Vec<String> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let body = |block: &str| Some(block.split_once(END)?.0.split_whitespace().collect());
    pem.split(BEGIN).skip(1).filter_map(body).collect()
}
