//! Lineages against the account: what is covered by nothing, what two lineages take from each other, and what a deployment
//! would leave as it is. Pure.

use std::collections::{BTreeMap, HashMap};

use time::OffsetDateTime;

use super::finding::{Finding, Subject};
use super::lineages::Lineage;
use super::service::Account;
use crate::api::{RecordType, Site};
use crate::error::ErrorKind;
use crate::plan::{self, Action, Plan, PlanRequest};
use crate::text;

/// What is compared.
pub(super) struct Coverage<'a> {
    pub(super) account: &'a Account,
    /// Lineages that edgecert looks after.
    pub(super) known: &'a [Lineage],
    /// Lineages for which a client calls edgecert, although it was never deployed.
    pub(super) attached: Vec<&'a Lineage>,
    /// Lineages that cover sites and are not deployed.
    pub(super) idle: Vec<&'a Lineage>,
    /// When the leaf in a record was issued, as far as that is remembered.
    pub(super) issued: &'a HashMap<u64, OffsetDateTime>,
}

impl Coverage<'_> {
    /// Everything that is wrong; `ok` for a lineage and for a site where nothing is.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let contested = self.contested_sites();
        let mut findings: Vec<Finding> =
            self.known.iter().flat_map(|lineage| self.unmatched(lineage)).collect();
        findings.extend(self.account.sites.items.iter().filter_map(|site| self.uncovered(site)));
        findings.extend(contested.values().map(|(site, lineages)| contest(site, lineages)));
        let shared = self.shared_records(&contested);
        findings.extend(shared.values().map(|(sites, lineages)| share(sites, lineages)));
        for lineage in self.acting() {
            findings.extend(self.blockers(lineage, &contested, &shared));
        }
        if findings.is_empty() {
            findings.push(Finding::ok(Subject::Site, self.summary()));
        }
        findings
    }

    fn acting(&self) -> impl Iterator<Item = &Lineage> {
        self.known.iter().chain(self.attached.iter().copied())
    }

    fn sites(&self) -> &[Site] {
        &self.account.sites.items
    }

    fn is_systems(&self, site: &Site) -> bool {
        let mut records = self.account.records.iter();
        records.any(|record| Some(record.id) == site.cert_id && record.kind == RecordType::System)
    }

    fn summary(&self) -> String {
        let systems = self.sites().iter().filter(|site| self.is_systems(site)).count();
        let rest = if systems == 0 {
            String::new()
        } else {
            format!(", {} renewed by the system", text::count(systems, "site"))
        };
        format!("{}, each with its lineage{rest}", text::count(self.sites().len() - systems, "site"))
    }

    /// A lineage that is deployed to no site, or not to one that its entry names.
    fn unmatched(&self, lineage: &Lineage) -> Vec<Finding> {
        let Some(leaf) = &lineage.leaf else { return Vec::new() };
        let title = lineage.title();
        let missing = lineage.order.domains.iter().filter(|domain| {
            lineage.covers(domain) && !self.sites().iter().any(|site| site.domain == **domain)
        });
        let mut findings: Vec<Finding> = missing
            .map(|domain| {
                let detail = format!("{title} is for {domain}, which is no site of the account");
                let remedy = "create the site, or take the name out of the lineage's `domains`";
                Finding::fail(Subject::Lineage, ErrorKind::Service, detail, remedy)
            })
            .collect();
        if findings.is_empty() && !self.sites().iter().any(|site| lineage.reaches(&site.domain)) {
            let detail = format!("{title} covers no site of the account, only {}", text::list(&leaf.shown));
            findings.push(if lineage.order.skip_unmatched {
                Finding { remedy: None, ..Finding::warn(Subject::Lineage, detail, "") }
            } else {
                let remedy =
                    "create the site, or take edgecert away from this lineage, or set skip_unmatched";
                Finding::fail(Subject::Lineage, ErrorKind::Service, detail, remedy)
            });
        }
        findings
    }

    /// A site that nothing would renew.
    fn uncovered(&self, site: &Site) -> Option<Finding> {
        let mut all = self.acting().chain(self.idle.iter().copied());
        if all.any(|lineage| lineage.reaches(&site.domain)) || self.is_systems(site) {
            return None;
        }
        let detail = format!("{} is covered by no lineage of this host", site.domain);
        let remedy = "put it into a certificate that edgecert deploys, or let the system issue one";
        Some(Finding::fail(Subject::Site, ErrorKind::Service, detail, remedy))
    }

    /// Sites to which several lineages are deployed.
    fn contested_sites(&self) -> BTreeMap<u64, (&Site, Vec<String>)> {
        let reaching = |site: &Site| -> Vec<String> {
            self.acting().filter(|lineage| lineage.reaches(&site.domain)).map(Lineage::title).collect()
        };
        let sites = self.sites().iter().map(|site| (site.id, (site, reaching(site))));
        sites.filter(|(_, (_, lineages))| lineages.len() > 1).collect()
    }

    /// Records whose sites are covered by different lineages, one each.
    fn shared_records(
        &self,
        contested: &BTreeMap<u64, (&Site, Vec<String>)>,
    ) -> BTreeMap<u64, (Vec<String>, Vec<String>)> {
        let mut records: BTreeMap<u64, (Vec<String>, Vec<String>)> = BTreeMap::new();
        for site in self.sites().iter().filter(|site| !contested.contains_key(&site.id)) {
            let lineage = self.acting().find(|lineage| lineage.reaches(&site.domain));
            let (Some(id), Some(lineage)) = (site.cert_id, lineage) else { continue };
            let (sites, lineages) = records.entry(id).or_default();
            sites.push(site.domain.to_string());
            if !lineages.contains(&lineage.title()) {
                lineages.push(lineage.title());
            }
        }
        records.retain(|_, (_, lineages)| lineages.len() > 1);
        records
    }

    /// Sites that a deployment would leave as they are, except where that was told already.
    fn blockers(
        &self,
        lineage: &Lineage,
        contested: &BTreeMap<u64, (&Site, Vec<String>)>,
        shared: &BTreeMap<u64, (Vec<String>, Vec<String>)>,
    ) -> Vec<Finding> {
        let Some(leaf) = &lineage.leaf else { return Vec::new() };
        let account = plan::Account {
            sites: self.sites(),
            records: &self.account.records,
            unreadable: &self.account.sites.unreadable,
            issued: self.issued,
        };
        let request = PlanRequest {
            covers: &|domain| lineage.covers(domain),
            issued: leaf.issued,
            domains: &lineage.order.domains,
            allow: lineage.order.allow,
        };
        let plan = Plan::new(&account, &request);
        let told = |site: &Site| {
            contested.contains_key(&site.id) || site.cert_id.is_some_and(|id| shared.contains_key(&id))
        };
        let left = plan.targets.iter().filter(|target| target.wanted && !told(target.site));
        left.filter_map(|target| match &target.action {
            Action::Leave(blocker) => {
                let kind = if blocker.is_guard() { ErrorKind::Refused } else { ErrorKind::Service };
                let (title, domain) = (lineage.title(), &target.site.domain);
                let detail = format!("{title} would not reach {domain}: {blocker}");
                Some(Finding::fail(Subject::Record, kind, detail, blocker.hint()))
            }
            _ => None,
        })
        .collect()
    }
}

fn contest(site: &Site, lineages: &[String]) -> Finding {
    let detail = format!(
        "{} is covered by {}; whichever is deployed last replaces the other",
        site.domain,
        text::list(lineages)
    );
    Finding::fail(Subject::Record, ErrorKind::Config, detail, ONE_EACH)
}

fn share(sites: &[String], lineages: &[String]) -> Finding {
    let detail = format!(
        "one record feeds {}, which are covered by {}; each would replace what the other needs",
        text::list(sites),
        text::list(lineages)
    );
    Finding::fail(
        Subject::Record,
        ErrorKind::Config,
        detail,
        "set rebind for one of them, so that each has a record",
    )
}

const ONE_EACH: &str = "let each name its own sites with `domains` in a [[lineage]] of the configuration, or take edgecert away from one";
