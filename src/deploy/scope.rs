//! Which sites a deployment is about, and what it means when there are none.

use std::collections::{HashMap, HashSet};

use super::rollout::{Order, Rollout};
use super::verdict::NO_SITE;
use crate::api::{Record, Site};
use crate::error::{AdHocError, CommandError, ErrorKind};
use crate::names::{Domain, Names};
use crate::outcome::Outcome;
use crate::text;

/// The sites that have to get the certificate, and its names.
pub(crate) struct Scope<'a> {
    domains: &'a [Domain],
    names: Names,
}

/// So many sites of one record are asked what they show.
const MAX_SITES: usize = 3;

impl<'a> Scope<'a> {
    pub(crate) fn new(order: &Order<'a>) -> Self {
        Self { domains: order.domains, names: Names::of(order.vetted.chain.leaf.san()) }
    }

    pub(crate) fn covers(&self, domain: &Domain) -> bool {
        self.names.cover(domain)
    }

    /// Whether a site has to get the certificate.
    fn wants(&self, site: &Site) -> bool {
        if self.domains.is_empty() { self.covers(&site.domain) } else { self.domains.contains(&site.domain) }
    }

    /// The records that may be replaced, each with a few sites that show what is in it.
    pub(crate) fn shown_by<'s>(&self, sites: &'s [Site], records: &[Record]) -> HashMap<u64, Vec<&'s Site>> {
        let wanted: Vec<&Site> = sites.iter().filter(|site| self.wants(site)).collect();
        let hosts: HashSet<&str> = wanted.iter().map(|site| site.domain.host()).collect();
        let is_stored_for = |record: &&Record| {
            record.domains.iter().chain(&record.name).any(|domain| hosts.contains(domain.host()))
        };
        let stored = records.iter().filter(is_stored_for).map(|record| record.id);
        let ids: HashSet<u64> = wanted.iter().filter_map(|site| site.cert_id).chain(stored).collect();
        let mut shown: HashMap<u64, Vec<&Site>> = HashMap::new();
        for site in sites.iter().filter(|site| site.enabled) {
            if let Some(id) = site.cert_id.filter(|id| ids.contains(id)) {
                let sites = shown.entry(id).or_default();
                if sites.len() < MAX_SITES {
                    sites.push(site);
                }
            }
        }
        shown
    }
}

impl Rollout<'_> {
    /// Reports names that were asked for and are no sites. True where nothing is left to do; an error where there should
    /// be something, or may be something that the service did not list.
    pub(crate) fn finds_nothing(
        &mut self,
        scope: &Scope<'_>,
        sites: &[Site],
        whole: bool,
    ) -> Result<bool, CommandError> {
        let skip = self.order.settings.skip_unmatched && whole;
        let missing = |domain: &&Domain| !sites.iter().any(|site| site.domain == **domain);
        for domain in self.order.domains.iter().filter(missing) {
            if !skip {
                let message = format!("the account has no site {domain}; nothing was sent for it");
                let hint = "create the site, or leave out this --domain";
                self.report.fail_once(AdHocError::new(ErrorKind::Service, message, hint));
            }
            let outcome = if skip { Outcome::Skipped } else { Outcome::Refused };
            self.push_bare(domain, None, outcome, Some(NO_SITE.into()));
        }
        let any = sites.iter().any(|site| scope.wants(site));
        if any || !self.order.domains.is_empty() {
            return Ok(!any);
        }
        let leaf = &self.order.vetted.chain.leaf;
        if skip {
            self.skip(leaf.names());
            return Ok(true);
        }
        let (number, names) = (text::count(sites.len(), "site"), text::list(&leaf.names()));
        let message = format!(
            "none of the account's {number} is covered by the certificate for {names}; nothing was sent"
        );
        let hint = "check whose account the API key belongs to, or pass --skip-unmatched in a hook that runs for every lineage";
        Err(AdHocError::new(ErrorKind::Service, message, hint).into())
    }
}
