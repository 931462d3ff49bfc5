//! Determines which sites of the account a deployment is for, and reports if there are none.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::error::DeployError;
use super::not_needed::Contender;
use super::site_error::SiteError;
use super::verdict::unlisted_site;
use crate::api::{Record, Site};
use crate::names::{Domain, Names};
use crate::outcome::Outcome;
use crate::plan::{Account, NotNeeded};
use crate::report::DeployReport;

const NO_SITE: &str = "the account has no such site";

/// The sites that must get the certificate, and the names it covers.
pub(super) struct Scope<'a> {
    domains: &'a [Domain],
    names: Names,
    /// The sites whose certificate another lineage of this host provides.
    superseded: HashMap<u64, NotNeeded>,
}

/// The sites of a record whose edges serve it.
#[derive(Default)]
pub(super) struct SurveyGroup<'s> {
    /// The sites that must get the certificate.
    pub(super) wanted: Vec<&'s Site>,
    /// Some of the other sites; their edges also show which leaf the record holds.
    pub(super) others: Vec<&'s Site>,
}

const MAX_OTHER_SITES: usize = 3;

impl<'a> Scope<'a> {
    /// A contender leaves sites to other lineages.
    pub(super) fn new(
        domains: &'a [Domain],
        names: Names,
        contender: Option<&Contender<'_>>,
        account: &Account<'_>,
    ) -> Self {
        let mut scope = Self { domains, names, superseded: HashMap::new() };
        if let Some(contender) = contender {
            let requested = account.sites.iter().filter(|site| scope.requests(site));
            scope.superseded =
                requested.filter_map(|site| Some((site.id, contender.superseded_on(site)?))).collect();
        }
        scope
    }

    /// The sites that were asked for; empty means every covered one.
    pub(super) fn domains(&self) -> &'a [Domain] {
        self.domains
    }

    pub(super) fn covers(&self, domain: &Domain) -> bool {
        self.names.cover(domain)
    }

    /// Whether a site was requested.
    fn requests(&self, site: &Site) -> bool {
        if self.domains.is_empty() { self.covers(&site.domain) } else { self.domains.contains(&site.domain) }
    }

    pub(super) fn requests_any(&self, account: &Account<'_>) -> bool {
        account.sites.iter().any(|site| self.requests(site))
    }

    /// Whether a site must get the certificate.
    fn wants(&self, site: &Site) -> bool {
        self.requests(site) && !self.superseded.contains_key(&site.id)
    }

    /// The sites that must get the certificate.
    pub(super) fn wanted<'s>(&self, account: &Account<'s>) -> impl Iterator<Item = &'s Site> {
        account.sites.iter().copied().filter(|site| self.wants(site))
    }

    /// The sites that are left to other lineages.
    pub(super) fn superseded(&self) -> &HashMap<u64, NotNeeded> {
        &self.superseded
    }

    /// The sites that serve each record that may be replaced. Without `with_others`, only those that must get the
    /// certificate.
    pub(super) fn survey_groups<'s>(&self, account: &Account<'s>, with_others: bool) -> Vec<SurveyGroup<'s>> {
        let hosts: HashSet<&str> = self.wanted(account).map(|site| site.domain.host()).collect();
        let is_stored_for_wanted = |record: &&&Record| {
            record.domains.iter().chain(&record.name).any(|domain| hosts.contains(domain.host()))
        };
        let stored = account.records.iter().filter(is_stored_for_wanted).map(|record| record.id);
        let bound = self.wanted(account).filter_map(|site| site.cert_id);
        let ids: HashSet<u64> = bound.chain(stored).collect();
        let mut groups: BTreeMap<u64, SurveyGroup<'s>> = BTreeMap::new();
        for &site in account.sites.iter().filter(|site| site.serves_https()) {
            let Some(id) = site.cert_id.filter(|id| ids.contains(id)) else { continue };
            let group = groups.entry(id).or_default();
            if self.wants(site) {
                group.wanted.push(site);
            } else if with_others && group.others.len() < MAX_OTHER_SITES {
                group.others.push(site);
            }
        }
        groups.into_values().collect()
    }

    /// Reports the domains that are not sites of the account, and returns whether any site is left to deploy to.
    ///
    /// It is an error if no site is covered, unless `may_skip`. `names` are those of the leaf.
    pub(super) fn has_sites(
        &self,
        names: &[String],
        may_skip: bool,
        account: &Account<'_>,
        report: &mut DeployReport,
    ) -> Result<bool, DeployError> {
        let is_missing = |domain: &&Domain| !account.sites.iter().any(|site| site.domain == **domain);
        for domain in self.domains.iter().filter(is_missing) {
            if !may_skip {
                report.fail(SiteError::NoSuchSite(domain));
            }
            let outcome = if may_skip { Outcome::Skipped } else { Outcome::Refused };
            report.body.sites.push(unlisted_site(domain.spelled(), None, outcome, Some(NO_SITE.into())));
        }
        let any = self.requests_any(account);
        if any || !self.domains.is_empty() {
            return Ok(any);
        }
        if !may_skip {
            return Err(DeployError::NoSiteCovered { sites: account.site_count, names: names.to_vec() });
        }
        let skipped =
            names.iter().map(|name| unlisted_site(name, None, Outcome::Skipped, Some(NO_SITE.into())));
        report.body.sites.extend(skipped);
        Ok(false)
    }
}
