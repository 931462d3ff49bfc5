//! What a deployment found and did: the fields that the reports of `deploy`, `plan`, `check` and of each lineage of a
//! `sync` have.

use serde::Serialize;
use serde_json::Value;
use time::OffsetDateTime;

use crate::bundle::Chain;
use crate::check::{Finding, Status};
use crate::leaf::Leaf;
use crate::names::Domain;
use crate::outcome::{ChangedRecords, Outcome};
use crate::plan::Step;
use crate::sightings::EdgeFindings;
use crate::source::{AcmeClient, Source};
use crate::text::{list, path, rfc3339};
use crate::verify::{EdgeView, ServedOf};

/// What the deployment of a lineage found and did.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Deployed {
    /// The lineage's name, for the system log; not part of the JSON object.
    #[serde(skip)]
    pub(crate) lineage: Option<String>,
    /// Whether the run sent anything that changes the service; for a plan, whether `deploy` would.
    pub(crate) changed: bool,
    pub(crate) source: Option<SourceReport>,
    pub(crate) certificate: Option<CertificateReport>,
    pub(crate) checks: Vec<Finding>,
    pub(crate) uploads: Vec<UploadReport>,
    pub(crate) sites: Vec<SiteReport>,
    /// For the state; not part of the JSON object.
    #[serde(skip)]
    pub(crate) records: ChangedRecords,
    /// The recorded sites that an incomplete listing may lack; not part of the JSON object.
    #[serde(skip)]
    pub(crate) hidden: Vec<Domain>,
    /// The planned steps; `None` except for `plan` and `deploy --dry-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plan: Option<Vec<Step>>,
    /// What the edges serve now; `None` except for `plan` and `deploy --dry-run`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) serving: Option<Vec<ServingReport>>,
}

impl Deployed {
    /// Adds the same lineage's deployment to another account. With a name of the account, the results have it.
    pub(super) fn add(&mut self, mut other: Self, service: Option<&String>) {
        let sites = other.sites.iter_mut().map(|site| &mut site.service);
        let uploads = other.uploads.iter_mut().map(|upload| &mut upload.service);
        let steps = other.plan.iter_mut().flatten().map(|step| &mut step.service);
        let serving = other.serving.iter_mut().flatten().map(|serving| &mut serving.service);
        sites.chain(uploads).chain(steps).chain(serving).for_each(|place| *place = service.cloned());
        self.changed |= other.changed;
        self.lineage = self.lineage.take().or(other.lineage);
        self.source = self.source.take().or(other.source);
        self.certificate = self.certificate.take().or(other.certificate);
        if self.checks.iter().all(|finding| finding.status != Status::Fail) && !other.checks.is_empty() {
            self.checks = other.checks;
        }
        self.uploads.extend(other.uploads);
        self.sites.extend(other.sites);
        self.plan = both(self.plan.take(), other.plan);
        self.serving = both(self.serving.take(), other.serving);
    }

    /// Whether other lineages provide the certificate of all its sites.
    pub(crate) fn is_superseded(&self) -> bool {
        !self.sites.is_empty() && self.sites.iter().all(|site| site.outcome == Outcome::Superseded)
    }

    /// The most severe outcome of the required sites, or of the others if none is required.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        let sites = self.sites.iter().map(|site| (!site.is_required, &site.outcome));
        sites.min().map(|(_, outcome)| outcome)
    }
}

/// The elements of two lists.
fn both<T>(own: Option<Vec<T>>, other: Option<Vec<T>>) -> Option<Vec<T>> {
    own.into_iter().chain(other).reduce(|own, other| own.into_iter().chain(other).collect())
}

/// The files that were read, and the ACME client that wrote them.
#[derive(Debug, Serialize)]
pub(crate) struct SourceReport {
    client: AcmeClient,
    cert: String,
    key: Option<String>,
}

/// The leaf certificate.
#[derive(Debug, Serialize)]
pub(crate) struct CertificateReport {
    #[serde(flatten)]
    pub(crate) leaf: Leaf,
    pub(super) key_type: String,
    issuer: String,
    chain_length: usize,
}

/// One upload.
#[derive(Debug, Default, Serialize)]
pub(crate) struct UploadReport {
    pub(crate) domain: String,
    pub(crate) ok: bool,
    pub(crate) id: Option<u64>,
    pub(crate) created: Option<bool>,
    #[serde(serialize_with = "rfc3339::millis::serialize")]
    pub(crate) not_after: Option<OffsetDateTime>,
    pub(crate) key_match: Option<String>,
    /// Passed on as the service sent it.
    pub(crate) bound_sites: Value,
    pub(crate) attempts: u32,
    pub(crate) error: Option<String>,
    /// The account, if the run deployed to several: the base URL of its service, and if they share that, its key file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<String>,
}

/// The outcome for one covered site.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SiteReport {
    /// `null` if the sites were not listed.
    pub(crate) id: Option<u64>,
    pub(crate) domain: Domain,
    pub(crate) cert_id_before: Option<u64>,
    pub(crate) cert_id: Option<u64>,
    pub(crate) outcome: Outcome,
    pub(crate) detail: Option<String>,
    /// `null` if no handshake was tried.
    pub(crate) edge: Option<ServedOf>,
    /// The account, if the run deployed to several: the base URL of its service, and if they share that, its key file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<String>,
    /// Whether the run fails unless the site gets the certificate; not part of the JSON object.
    #[serde(skip)]
    pub(crate) is_required: bool,
    /// Whether an error or a warning says the detail, so that text need not repeat it.
    #[serde(skip)]
    pub(crate) is_explained: bool,
    /// Host name of the edge, for later handshakes; not part of the JSON object.
    #[serde(skip)]
    pub(crate) cname: Option<String>,
    /// For the state; not part of the JSON object.
    #[serde(skip)]
    pub(crate) findings: EdgeFindings,
}

/// What the edge of a site serves before a deployment.
#[derive(Debug, Serialize)]
pub(crate) struct ServingReport {
    /// The account, if the run plans for several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<String>,
    id: u64,
    pub(crate) domain: String,
    pub(crate) leaf: ServedLeaf,
    /// The other leaves that are served, and why the leaf of an address is unknown.
    pub(crate) detail: Option<String>,
}

/// The leaf that an edge serves, compared with the one to deploy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ServedLeaf {
    /// Every address that can be reached serves the leaf to deploy.
    Current,
    /// An address serves another leaf.
    Other,
    /// It is unknown what the edge serves.
    Unknown,
}

impl SiteReport {
    /// The outcome for a site that must get the certificate. No site was listed, and no handshake was tried.
    pub(crate) fn new(domain: &Domain, outcome: Outcome, detail: Option<String>) -> Self {
        Self {
            id: None,
            domain: domain.clone(),
            cert_id_before: None,
            cert_id: None,
            outcome,
            detail,
            edge: None,
            service: None,
            is_required: true,
            is_explained: false,
            cname: None,
            findings: Some(Vec::new()),
        }
    }
}

impl SourceReport {
    pub(crate) fn new(source: &Source) -> Self {
        let (cert, key) = (path(&source.files.cert), source.files.key.as_deref().map(path));
        Self { client: source.client, cert, key }
    }
}

impl CertificateReport {
    pub(crate) fn new(chain: &Chain) -> Self {
        let leaf = &chain.leaf;
        let (key_type, issuer) = (leaf.public_key.key_type.to_string(), leaf.issuer.text.clone());
        Self { leaf: leaf.to_leaf(), key_type, issuer, chain_length: chain.length() }
    }
}

impl ServingReport {
    /// Describes what an edge serves. `view` is `None` if the edge was not observed.
    pub(crate) fn new(id: u64, domain: &str, view: Option<&EdgeView>) -> Self {
        let others = view.map(|view| view.others("serves")).unwrap_or_default();
        let leaf = match view {
            Some(view) if view.is_current() => ServedLeaf::Current,
            Some(_) if !others.is_empty() => ServedLeaf::Other,
            _ => ServedLeaf::Unknown,
        };
        let unverified = view.map(EdgeView::unverified).unwrap_or_default();
        let details: Vec<String> = others.into_iter().chain(unverified).collect();
        let detail = (!details.is_empty()).then(|| list(&details));
        Self { service: None, id, domain: domain.to_owned(), leaf, detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_sites_decide_first() {
        let sites = [(Outcome::Misbound, false), (Outcome::Served, true), (Outcome::Stale, true)];
        let of_first = |number: usize| {
            let site = |(outcome, is_required): &(Outcome, bool)| SiteReport {
                is_required: *is_required,
                ..SiteReport::new(&"a.example".parse().unwrap(), outcome.clone(), None)
            };
            Deployed { sites: sites[..number].iter().map(site).collect(), ..Deployed::default() }
                .outcome()
                .cloned()
        };
        assert_eq!(of_first(0), None);
        assert_eq!(of_first(1), Some(Outcome::Misbound));
        assert_eq!(of_first(2), Some(Outcome::Served));
        assert_eq!(of_first(3), Some(Outcome::Stale));
    }
}
