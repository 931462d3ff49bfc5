//! Converts between the types of a deployment and those of the state.

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};

use crate::names::Domain;
use crate::report::SiteReport;
use crate::settings::Settings;
use crate::sightings::EdgeMemory;
use crate::state::{Given, LineageState, Origin, RunOptions, SiteState};

/// How a run deploys a lineage, for its state. The service is unknown if the settings could not be resolved.
pub(crate) fn run_options(
    settings: Option<&Settings>,
    domains: &[Domain],
    given: Given,
    origin: Origin,
) -> RunOptions {
    let service = settings.map(|settings| settings.base_url.to_string());
    RunOptions { service, domains: domains.to_vec(), given, origin, ..RunOptions::default() }
}

/// The sites that a run was for or bound, with what earlier runs saw of their edges, and those that an earlier run bound
/// through a record that they share with these.
pub(crate) fn recorded_sites(sites: &[SiteReport], state: &LineageState) -> Vec<SiteState> {
    let before = &state.sites;
    let by_id: HashMap<u64, &SiteState> = before.iter().filter_map(|site| Some((site.id?, site))).collect();
    // The bare upload reports no ids.
    let by_host = LazyCell::new(|| {
        before.iter().map(|site| (site.domain.host(), site)).collect::<HashMap<&str, &SiteState>>()
    });
    let known = |site: &SiteReport| {
        let by_id = site.id.and_then(|id| by_id.get(&id));
        by_id.or_else(|| by_host.get(site.domain.host())).copied()
    };
    let is_own = |site: &SiteReport| site.is_required || site.outcome.is_bound();
    let records: HashSet<u64> =
        sites.iter().filter(|site| is_own(site)).filter_map(|site| site.cert_id).collect();
    let recorded = sites.iter().filter_map(|site| {
        let known = known(site);
        if is_own(site) {
            return Some(recorded_site(site, known.map(|known| known.edge.clone()).unwrap_or_default()));
        }
        let is_still_reached = |known: &&SiteState| {
            known.outcome.is_bound()
                && known.cert_id == site.cert_id
                && known.cert_id.is_some_and(|id| records.contains(&id))
                && state.is_of_current_leaf(known)
        };
        known.filter(is_still_reached).cloned()
    });
    recorded.collect()
}

fn recorded_site(site: &SiteReport, mut edge: EdgeMemory) -> SiteState {
    edge.add(&site.findings);
    SiteState {
        id: site.id,
        domain: site.domain.clone(),
        cname: site.cname.clone(),
        cert_id: site.cert_id,
        outcome: site.outcome.clone(),
        detail: site.detail.clone(),
        leaf: None,
        edge,
    }
}
