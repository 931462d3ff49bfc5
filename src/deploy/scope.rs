//! Determines which sites of the account a deployment is for, and reports if there are none.

use std::collections::{HashMap, HashSet};

use super::error::DeployError;
use super::request::RolloutRequest;
use super::site_error::SiteError;
use super::verdict::unlisted_site;
use crate::api::{Listing, Record, Site};
use crate::names::{Domain, Names};
use crate::outcome::Outcome;
use crate::report::DeployReport;

const NO_SITE: &str = "the account has no such site";

/// The sites that must get the certificate, and the names it covers.
pub(super) struct Scope<'a> {
    domains: &'a [Domain],
    names: Names,
}

/// Maximum number of sites per record whose edges are probed for the record's leaf.
const MAX_SITES_PER_RECORD: usize = 3;

impl<'a> Scope<'a> {
    pub(super) fn new(request: &RolloutRequest<'a>) -> Self {
        Self { domains: request.domains, names: Names::of(request.vetted.chain().leaf.dns_names()) }
    }

    pub(super) fn covers(&self, domain: &Domain) -> bool {
        self.names.cover(domain)
    }

    /// Whether a site must get the certificate.
    fn wants(&self, site: &Site) -> bool {
        if self.domains.is_empty() { self.covers(&site.domain) } else { self.domains.contains(&site.domain) }
    }

    /// The records that may be replaced, each with a few enabled sites that are bound to it.
    pub(super) fn replaceable_records<'s>(
        &self,
        sites: &'s [Site],
        records: &[Record],
    ) -> HashMap<u64, Vec<&'s Site>> {
        let wanted: Vec<&Site> = sites.iter().filter(|site| self.wants(site)).collect();
        let hosts: HashSet<&str> = wanted.iter().map(|site| site.domain.host()).collect();
        let is_stored_for_wanted = |record: &&Record| {
            record.domains.iter().chain(&record.name).any(|domain| hosts.contains(domain.host()))
        };
        let stored = records.iter().filter(is_stored_for_wanted).map(|record| record.id);
        let ids: HashSet<u64> = wanted.iter().filter_map(|site| site.cert_id).chain(stored).collect();
        let mut bound: HashMap<u64, Vec<&Site>> = HashMap::new();
        for site in sites.iter().filter(|site| site.enabled) {
            if let Some(id) = site.cert_id.filter(|id| ids.contains(id)) {
                let sites = bound.entry(id).or_default();
                if sites.len() < MAX_SITES_PER_RECORD {
                    sites.push(site);
                }
            }
        }
        bound
    }

    /// Reports the domains that are not sites of the account, and returns whether any site is left to deploy to.
    ///
    /// No covered site is an error unless `--skip-unmatched` is given. An incomplete listing is never a reason to skip:
    /// the service may have left out the sites in question.
    pub(super) fn has_sites(
        &self,
        request: &RolloutRequest<'_>,
        listing: &Listing,
        report: &mut DeployReport,
    ) -> Result<bool, DeployError> {
        let may_skip = request.settings.skip_unmatched && listing.warnings.is_empty();
        let sites = &listing.sites;
        let is_missing = |domain: &&Domain| !sites.iter().any(|site| site.domain == **domain);
        for domain in self.domains.iter().filter(is_missing) {
            if !may_skip {
                report.fail(SiteError::NoSuchSite(domain));
            }
            let outcome = if may_skip { Outcome::Skipped } else { Outcome::Refused };
            report.body.sites.push(unlisted_site(domain.spelled(), None, outcome, Some(NO_SITE.into())));
        }
        let any = sites.iter().any(|site| self.wants(site));
        if any || !self.domains.is_empty() {
            return Ok(any);
        }
        let names = request.vetted.chain().leaf.names();
        if !may_skip {
            return Err(DeployError::NoSiteCovered { sites: sites.len(), names });
        }
        let skipped =
            names.iter().map(|name| unlisted_site(name, None, Outcome::Skipped, Some(NO_SITE.into())));
        report.body.sites.extend(skipped);
        Ok(false)
    }
}
