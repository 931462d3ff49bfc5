//! What a deployment is for: the sites of the account that must get the certificate, what is known of them before
//! anything is sent, and the plan that follows. No I/O.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use time::OffsetDateTime;

use super::survey::{MAX_TRIED_SITES, Survey};
use super::verdict::no_such_site;
use crate::api::Site;
use crate::error::{CommandError, ErrorKind, Result};
use crate::hint::Hint;
use crate::leaf::Leaf;
use crate::names::{Domain, Names};
use crate::outcome::Outcome;
use crate::plan::{Account, Action, Allow, Plan, PlanRequest, RecordLeaf};
use crate::report::{Report, SiteReport};
use crate::settings::{Settings, Verify};
use crate::sightings::EdgeFindings;
use crate::state::{ServiceDeployments, StoredLeaf};
use crate::text;
use crate::verify::EdgeView;

const NO_SITE: &str = "the account has no such site";

/// A leaf, and what is known of the account around it.
pub(super) struct Scope<'a, 'l> {
    pub(super) lineage: &'a str,
    pub(super) leaf: Leaf,
    /// The names that it covers.
    pub(super) names: Names,
    /// The sites that were asked for; empty means every covered one.
    pub(super) domains: &'a [Domain],
    /// The part of the account around the lineage.
    pub(super) account: &'a Account<'l>,
    /// What this host deployed to the account.
    pub(super) deployments: &'a ServiceDeployments,
    /// The record of each site that an earlier upload of this leaf did not reach.
    pub(super) missed: &'a HashMap<u64, u64>,
    pub(super) settings: &'a Settings,
    pub(super) allow: Allow,
    /// If this run is a retry by `sync`: when the deployment became pending.
    pub(super) repeats_since: Option<OffsetDateTime>,
    /// Upload even for sites that have the leaf.
    pub(super) force: bool,
    pub(super) now: OffsetDateTime,
    /// What the edges serve.
    pub(super) survey: Survey,
}

/// The sites of a record whose edges serve it.
#[derive(Default)]
pub(super) struct SurveyGroup<'s> {
    /// The sites that must get the certificate.
    pub(super) wanted: Vec<&'s Site>,
    /// Some of the other sites, whose edges also show which leaf the record holds; none if an older certificate is allowed.
    pub(super) others: Vec<&'s Site>,
}

impl<'l> Scope<'_, 'l> {
    /// Whether a site was requested.
    fn requests(&self, site: &Site) -> bool {
        if self.domains.is_empty() {
            self.names.cover(&site.domain)
        } else {
            self.domains.contains(&site.domain)
        }
    }

    fn requests_any(&self) -> bool {
        self.account.sites.iter().any(|site| self.requests(site))
    }

    /// Fails if no requested site is listed although the lineage was deployed before: the API key may be that of another
    /// account. If the account has no site at all, what any lineage deployed counts; `all` reads that, if it is not known.
    pub(super) fn require_earlier(&self, all: impl FnOnce() -> Option<Rc<ServiceDeployments>>) -> Result<()> {
        let listing = self.account.listing;
        let listed = &listing.listing().sites;
        if !listed.gaps.is_empty() || self.requests_any() {
            return Ok(());
        }
        let lists_none = listed.items.is_empty();
        let all = if lists_none { all() } else { None };
        let deployments = all.as_deref().unwrap_or(self.deployments);
        let deployed = deployments.hosts((!lists_none).then_some(self.lineage));
        let sites: BTreeSet<&str> = deployed.filter(|host| listing.site(host).is_none()).collect();
        if sites.is_empty() {
            return Ok(());
        }
        let sites = text::list(&sites);
        let message = format!("the account no longer has {sites}, to which this host deployed before");
        let hint = format!(
            "check that the API key is for the right account; if the sites were deleted, run `edgecert status --forget {}`",
            self.lineage
        );
        let error = CommandError::new(ErrorKind::Service, message).class("sites gone");
        Err(error.hint(hint).unsent("nothing was sent"))
    }

    /// Says which other lineage of this host provides the certificate of a site, if any and unless this one may replace
    /// later leaves. In a retry, the other one may have taken the site back: they would take turns.
    fn superseded_on(&self, site: &Site) -> Option<String> {
        if self.allow.guards.allow_older && self.repeats_since.is_none() {
            return None;
        }
        let record = site.cert_id.filter(|id| !self.account.listing.is_deleted(*id));
        let site = (&site.domain, record);
        Some(self.deployments.superseding(site, self.lineage, &self.leaf, self.now)?.reason())
    }

    /// The sites that must get the certificate.
    fn wanted(&self) -> impl Iterator<Item = &'l Site> {
        let is_wanted = |site: &&Site| self.requests(site) && self.superseded_on(site).is_none();
        self.account.sites.iter().copied().filter(is_wanted)
    }

    /// Whether what the edges serve decides anything.
    pub(super) fn needs_survey(&self) -> bool {
        self.settings.verify != Verify::Off && !(self.force && self.allow.guards.allow_older)
    }

    /// A view of an edge; if verification is required, every address must be reached.
    pub(super) fn new_view(&self) -> EdgeView {
        EdgeView::new(self.settings.verify == Verify::Require)
    }

    /// The sites that serve each record that may be replaced. If it may hold a later leaf, only those that must get the
    /// certificate.
    pub(super) fn survey_groups(&self) -> Vec<SurveyGroup<'l>> {
        let wanted: HashSet<u64> = self.wanted().map(|site| site.id).collect();
        let replaceable = self.wanted().flat_map(|site| {
            let stored = self.account.listing.records_stored_for(site.domain.host()).map(|record| record.id);
            stored.chain(site.cert_id)
        });
        let replaceable: HashSet<u64> = replaceable.collect();
        let mut groups: BTreeMap<u64, SurveyGroup<'l>> = BTreeMap::new();
        for &site in self.account.sites.iter().filter(|site| site.serves_https()) {
            let Some(id) = site.cert_id.filter(|id| replaceable.contains(id)) else { continue };
            let group = groups.entry(id).or_default();
            if wanted.contains(&site.id) {
                group.wanted.push(site);
            } else if !self.allow.guards.allow_older && group.others.len() < MAX_TRIED_SITES {
                group.others.push(site);
            }
        }
        groups.into_values().collect()
    }

    /// Reports the domains that are not sites of the account, and returns whether any site is left to deploy to.
    ///
    /// It is an error if no site is covered, unless `may_skip`.
    pub(super) fn has_sites(&self, may_skip: bool, report: &mut Report) -> Result<bool> {
        let is_missing = |domain: &&Domain| !self.account.sites.iter().any(|site| site.domain == **domain);
        for domain in self.domains.iter().filter(is_missing) {
            if !may_skip {
                report.fail(no_such_site(domain));
            }
            let outcome = if may_skip { Outcome::Skipped } else { Outcome::Refused };
            report.deployed.sites.push(SiteReport::new(domain, outcome, Some(NO_SITE.into())));
        }
        let any = self.requests_any();
        if any || !self.domains.is_empty() {
            return Ok(any);
        }
        if !may_skip {
            let sites = text::count(self.account.listing.listing().sites.items.len(), "site");
            let names = text::list(&self.leaf.names);
            let message = format!("none of the account's {sites} is covered by the certificate for {names}");
            let error = CommandError::new(ErrorKind::Service, message).class("no covered site");
            return Err(error.hint(Hint::NoSite).unsent("nothing was sent"));
        }
        let names = self.leaf.names.iter().filter_map(|name| name.parse::<Domain>().ok());
        let skipped = names.map(|name| SiteReport::new(&name, Outcome::Skipped, Some(NO_SITE.into())));
        report.deployed.sites.extend(skipped);
        Ok(false)
    }

    /// Makes the plan.
    pub(super) fn plan(&self) -> Plan<'l> {
        let none = HashMap::new();
        let request = PlanRequest {
            covers: &|domain| self.names.cover(domain),
            unwanted: &|site| self.unwanted(site),
            later_leaf: &|record| self.later_leaf(record),
            keeps_names: &|record| self.keeps_names(record),
            missed: if self.force { &none } else { self.missed },
            allow: self.allow,
        };
        Plan::new(self.account, &request)
    }

    /// Whether the new leaf covers all names of every leaf that the record is known to hold. At least one must be known,
    /// unless edges show the new leaf. False if an edge shows a leaf that does not cover its site: another client may have
    /// stored it in the record.
    fn keeps_names(&self, record: u64) -> bool {
        let bound = self.account.sites.iter().filter(|site| site.cert_id == Some(record));
        let views: Vec<&EdgeView> = bound.filter_map(|site| self.survey.view(site.id)).collect();
        if views.iter().any(|view| view.has_uncovering_leaf()) {
            return false;
        }
        let is_current = views.iter().any(|view| view.is_current());
        let served = self.survey.leaf_of(record).map(|leaf| &leaf.names);
        let deployed = self.deployments.leaves_in(record);
        let deployed = deployed.iter().map(|stored| &stored.leaf.names);
        let covers = |name: &String| name.parse::<Domain>().is_ok_and(|name| self.names.cover(&name));
        let mut known = served.into_iter().chain(deployed).peekable();
        (is_current || known.peek().is_some()) && known.flatten().all(covers)
    }

    /// Why a site is left alone: it was not requested, another lineage supersedes this one there, or it has the leaf.
    pub(super) fn unwanted(&self, site: &Site) -> Option<Action> {
        if !self.requests(site) {
            return Some(Action::Ignore);
        }
        let listing = self.account.listing;
        let is_bound_to_leaf = |record| !listing.is_deleted(record) && self.is_up_to_date(site, record);
        let is_current = || !self.force && site.config_synced && site.cert_id.is_some_and(is_bound_to_leaf);
        let superseded = self.superseded_on(site).map(Action::Superseded);
        superseded.or_else(|| is_current().then_some(Action::Current))
    }

    /// Whether a record is known to hold the leaf.
    pub(super) fn holds_leaf(&self, record: u64) -> bool {
        self.deployments.record_holds(record, &self.leaf)
    }

    /// Whether an upload would change nothing for a site that is bound to this record.
    fn is_up_to_date(&self, site: &Site, record: u64) -> bool {
        let holds_leaf = self.holds_leaf(record);
        match self.survey.view(site.id) {
            // Another upload does not make an address respond.
            Some(view) => view.is_current() || holds_leaf && !view.may_change(),
            // A handshake cannot show the certificate of a site without HTTPS.
            None => holds_leaf && (self.settings.verify == Verify::Off || !site.serves_https()),
        }
    }

    /// The valid leaf in a record if it was issued later than the new one, as far as it is known. Of lineages of this host
    /// with equal issue dates, the same one must prevail that supersedes the other, or they would replace each other.
    fn later_leaf(&self, record: u64) -> Option<RecordLeaf> {
        let own = &self.leaf;
        let served = self.survey.leaf_of(record);
        let is_later = |StoredLeaf { lineage, leaf, .. }: &&StoredLeaf| {
            leaf.not_before > own.not_before || lineage != self.lineage && leaf.rank() > own.rank()
        };
        let deployed = self.deployments.leaves_in(record).into_iter().filter(is_later);
        let deployed = deployed.map(|stored| (&*stored.leaf, !stored.holder.is_doubtful));
        let served = served.filter(|leaf| leaf.not_before > own.not_before).map(|leaf| (leaf, true));
        let valid = served.into_iter().chain(deployed).filter(|(leaf, _)| leaf.not_after >= self.now);
        let (leaf, is_certain) = valid.max_by_key(|(leaf, _)| leaf.not_before)?;
        let is_taken = |since| self.deployments.is_taken_since(since, self.lineage, record);
        let must_stay = self.repeats_since.is_some_and(is_taken);
        Some(RecordLeaf { leaf: leaf.clone(), is_certain, must_stay })
    }

    /// What the handshakes with the edge of a site showed: those before the uploads, and `later` ones if there were any.
    pub(super) fn findings(&self, site: &Site, later: Option<&EdgeView>, outcome: &Outcome) -> EdgeFindings {
        let views = self.survey.view(site.id).into_iter().chain(later);
        // Visitors get no certificate or that of another lineage, or nothing will show which.
        let is_unseen = self.settings.verify == Verify::Off && outcome.is_deployed();
        let is_void = is_unseen || !site.serves_https() || *outcome == Outcome::Superseded;
        (!is_void).then(|| views.map(|view| view.sightings(&self.leaf, self.now)).collect())
    }
}

#[cfg(test)]
pub(super) mod tests;
