//! Which sites a deployment is about, and what it means when there are none.

use super::Rollout;
use super::verdict::NO_SITE;
use crate::api::Site;
use crate::failure::{Decided, Kind, Problem};
use crate::report::Outcome;
use crate::text;

impl Rollout<'_> {
    /// Whether a site has to get the certificate.
    pub(super) fn wants(&self, site: &Site) -> bool {
        if self.order.domains.is_empty() {
            site.domain.is_covered_by_any(self.order.vetted.chain.leaf.san())
        } else {
            self.order.domains.contains(&site.domain)
        }
    }

    /// Reports names that were asked for and are no sites. True where nothing is left to do; an error where there should
    /// be something.
    pub(super) fn finds_nothing(&mut self, sites: &[Site]) -> anyhow::Result<bool> {
        let domains = self.order.domains;
        for domain in domains.iter().filter(|domain| !sites.iter().any(|site| site.domain == **domain)) {
            let skip = self.order.settings.skip_unmatched;
            if !skip {
                let message = format!("the account has no site {domain}; nothing was sent for it");
                let hint = "create the site, or leave out this --domain";
                self.fail(Kind::Service, Problem::new(message, hint));
            }
            let outcome = if skip { Outcome::Skipped } else { Outcome::Refused };
            self.push_bare(domain, None, outcome, Some(NO_SITE.into()));
        }
        let any = sites.iter().any(|site| self.wants(site));
        if any || !domains.is_empty() {
            return Ok(!any);
        }
        let leaf = &self.order.vetted.chain.leaf;
        if self.order.settings.skip_unmatched {
            self.skip(leaf.names());
            return Ok(true);
        }
        let (number, names) = (text::count(sites.len(), "site"), text::list(&leaf.names()));
        let message = format!(
            "none of the account's {number} is covered by the certificate for {names}; nothing was sent"
        );
        let hint = "check whose account the API key belongs to, or pass --skip-unmatched in a hook that runs for every lineage";
        Err(Decided { kind: Kind::Service, problem: Problem::new(message, hint) }.into())
    }
}
