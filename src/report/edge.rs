//! What the edge of a site serves, as reports show it.

use serde::Serialize;

use crate::text;
use crate::verify::EdgeView;

/// How many addresses of an edge serve the leaf.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct EdgeReport {
    /// Addresses that served the leaf.
    pub(crate) served: usize,
    /// Addresses that were tried.
    pub(crate) addresses: usize,
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

impl EdgeReport {
    pub(crate) fn new(view: &EdgeView) -> Self {
        let (served, addresses) = view.served_of();
        Self { served, addresses }
    }
}

impl ServingReport {
    /// Describes what an edge serves. `view` is `None` if the edge was not observed.
    pub(crate) fn new(id: u64, domain: &str, view: Option<&EdgeView>) -> Self {
        let others = view.map(EdgeView::others).unwrap_or_default();
        let leaf = match view {
            Some(view) if view.is_current() => ServedLeaf::Current,
            Some(_) if !others.is_empty() => ServedLeaf::Other,
            _ => ServedLeaf::Unknown,
        };
        let unverified = view.map(EdgeView::unverified).unwrap_or_default();
        let details: Vec<String> = others.into_iter().chain(unverified).collect();
        let detail = (!details.is_empty()).then(|| text::list(&details));
        Self { service: None, id, domain: domain.to_owned(), leaf, detail }
    }
}
