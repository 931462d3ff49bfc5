//! What the service has after a deployment, and certificates told apart by their text.

use serde_json::Value;

use crate::harness::Sandbox;

/// A certificate as the service stores it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) id: u64,
    /// The blocks of its chain, the leaf first.
    pub(super) chain: Vec<String>,
}

/// The only record of the service.
#[track_caller]
pub(super) fn only_record(service: &Sandbox) -> Record {
    let records = service.certs();
    assert_eq!(records.len(), 1, "the service has exactly one record: {records:?}");
    let chain = certificates(records[0]["cert_pem"].as_str().unwrap());
    Record { id: records[0]["id"].as_u64().unwrap(), chain }
}

/// The only record of the service, which feeds each of these sites and is served for them.
#[track_caller]
pub(super) fn served_record(service: &Sandbox, domains: &[&str]) -> Record {
    let record = only_record(service);
    let (sites, served) = (service.sites(), service.edge());
    for domain in domains {
        let of_domain = |value: &&Value| value["domain"] == *domain;
        let site = sites.iter().find(of_domain).unwrap();
        assert_eq!(site["cert_id"], record.id, "{domain} is bound to the record");
        assert_eq!(site["config_synced"], true, "the hook waited for the push of {domain}");
        let served = served.iter().find(of_domain).unwrap();
        assert_eq!(served["cert_id"], record.id, "the edge serves {domain} with the record: {served}");
    }
    record
}

/// The certificates in a PEM text, without white space and whatever stands around them.
pub(super) fn certificates(pem: &str) -> Vec<String> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
    const END: &str = "-----END CERTIFICATE-----";
    let body = |block: &str| Some(block.split_once(END)?.0.split_whitespace().collect());
    pem.split(BEGIN).skip(1).filter_map(body).collect()
}
