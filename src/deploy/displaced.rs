//! Names the other lineages whose place a deployment takes, such as the RSA sibling of an ECC certificate: the service
//! keeps one certificate for each site, so each renewal of one displaces the other. Pure.

use std::collections::BTreeMap;

use time::OffsetDateTime;

use crate::names::Domain;
use crate::state::ServiceDeployments;
use crate::text::list;

/// One warning for each lineage that is displaced from some of these sites.
pub(super) fn displaced<'a>(
    lineage: &str,
    sites: impl Iterator<Item = &'a Domain>,
    deployments: &ServiceDeployments,
    now: OffsetDateTime,
) -> Vec<String> {
    let mut lost: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for site in sites {
        for other in deployments.maintained_by_others(site, lineage, now) {
            lost.entry(other).or_default().push(site.to_string());
        }
    }
    let warning = |(other, sites): (&str, Vec<String>)| {
        format!(
            "{lineage} takes the place of {other}, which this host also deploys to {}; a site has only one certificate",
            list(&sites)
        )
    };
    lost.into_iter().map(warning).collect()
}
