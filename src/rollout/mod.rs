//! Carries out a plan for one lineage: list, upload, wait, and say for each site what the service says it is now.

mod verdict;

use std::collections::HashMap;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::try_join;
use futures_util::stream;
use tokio::time::{sleep, timeout};

use self::verdict::NO_SITE;
use crate::api::{Client, Failed, Site};
use crate::check::Vetted;
use crate::clock::Deadline;
use crate::failure::{Decided, Failure, Kind, Problem, api_kind};
use crate::names::Domain;
use crate::plan::{Plan, Upload};
use crate::report::{Outcome, Report, SiteReport};
use crate::settings::Settings;
use crate::text;

/// Uploads under way at once.
const AT_ONCE: usize = 16;

/// First and longest pause between two looks at `config_synced`.
const FIRST_LOOK: Duration = Duration::from_millis(250);
const LATER_LOOKS: Duration = Duration::from_secs(3);

/// So long a single look may take even without any wait.
const ONE_LOOK: Duration = Duration::from_secs(5);

/// Brings the certificate to the sites and records everything in the report. An `Err` means that nothing could be
/// begun; failures of single sites are in the report.
pub(crate) async fn run(
    client: &Client,
    vetted: &Vetted<'_>,
    domains: &[Domain],
    settings: &Settings,
    deadline: Deadline,
    report: &mut Report,
) -> anyhow::Result<()> {
    let mut rollout = Rollout { client, vetted, report, kinds: Vec::new(), problems: Vec::new() };
    if !domains.is_empty() && settings.wait.is_zero() {
        rollout.bare(domains).await;
    } else {
        rollout.planned(domains, settings, deadline).await?;
    }
    let (kinds, problems) = (rollout.kinds, rollout.problems);
    if let Some(kind) = Kind::gravest(kinds) {
        report.fail(Failure { kind, problems });
    }
    Ok(())
}

struct Rollout<'a> {
    client: &'a Client,
    vetted: &'a Vetted<'a>,
    report: &'a mut Report,
    kinds: Vec<Kind>,
    problems: Vec<Problem>,
}

/// What became of the upload that feeds a site.
type Result = std::result::Result<u64, Failed>;

impl Rollout<'_> {
    /// One upload for each domain and nothing else: no listing, no guard, no wait.
    async fn bare(&mut self, domains: &[Domain]) {
        let mut hopeless = None;
        for (at, domain) in domains.iter().enumerate() {
            if domains.iter().take(at).any(|earlier| earlier == domain) {
                continue;
            }
            // What stands against one upload stands against all: the private key is not sent again.
            if let Some(reason) = &hopeless {
                self.push_bare(domain, None, Outcome::Refused, Some(format!("not tried: {reason}")));
                continue;
            }
            let result = self.client.upload(self.vetted, domain).await;
            match self.record_upload(domain, result) {
                Ok(id) => self.push_bare(domain, Some(id), Outcome::Uploaded, None),
                Err(failed) => {
                    let outcome = self.upload_failed(domain, &failed);
                    self.push_bare(domain, None, outcome, Some(failed.to_string()));
                    let kind = api_kind(&failed.error);
                    hopeless = matches!(kind, Kind::Denied | Kind::Config).then(|| failed.to_string());
                }
            }
        }
    }

    async fn planned(
        &mut self,
        domains: &[Domain],
        settings: &Settings,
        deadline: Deadline,
    ) -> anyhow::Result<()> {
        let (records, sites) = try_join(self.client.records(), self.client.sites()).await?;
        let wanted = self.wanted(&sites, domains, settings)?;
        let plan = Plan::make(&self.vetted.chain.leaf, &sites, &records, &wanted);
        let results = self.upload(&plan.uploads).await;
        let now = self.await_push(&results, settings.wait, deadline).await;
        self.report.warnings.extend(self.client.notes());
        for left in &plan.left {
            self.report_left(left);
        }
        for (upload, result) in plan.uploads.iter().zip(&results) {
            for site in &upload.sites {
                self.report_site(site, result, now.get(&site.id));
            }
        }
        self.report.sites.sort_by(|a, b| a.domain.cmp(&b.domain));
        Ok(())
    }

    /// The sites that must get the certificate.
    fn wanted<'s>(
        &mut self,
        sites: &'s [Site],
        domains: &[Domain],
        settings: &Settings,
    ) -> anyhow::Result<Vec<&'s Site>> {
        let leaf = &self.vetted.chain.leaf;
        let covered = |site: &&Site| site.domain.is_covered_by_any(leaf.san());
        let wanted: Vec<&Site> = if domains.is_empty() {
            sites.iter().filter(covered).collect()
        } else {
            sites.iter().filter(|site| domains.contains(&site.domain)).collect()
        };
        for domain in domains.iter().filter(|domain| !wanted.iter().any(|site| site.domain == **domain)) {
            let outcome = if settings.skip_unmatched { Outcome::Skipped } else { Outcome::Refused };
            if outcome == Outcome::Refused {
                let message = format!("the account has no site {domain}; nothing was sent for it");
                self.fail(
                    Kind::Service,
                    Problem::new(message, "create the site, or leave out this --domain"),
                );
            }
            self.push_bare(domain, None, outcome, Some(NO_SITE.into()));
        }
        if !wanted.is_empty() || !domains.is_empty() {
            return Ok(wanted);
        }
        let names = text::list(&leaf.names());
        let number = text::count(sites.len(), "site");
        let message = format!("none of the account's {number} is covered by the certificate for {names}");
        if settings.skip_unmatched {
            self.report.sites.extend(leaf.names().into_iter().map(|domain| SiteReport {
                id: None,
                domain,
                cert_id_before: None,
                cert_id: None,
                outcome: Outcome::Skipped,
                detail: Some(NO_SITE.into()),
            }));
            return Ok(wanted);
        }
        let hint = "check whose account the API key belongs to, or pass --skip-unmatched in a hook that runs for every lineage";
        let problem = Problem::new(format!("{message}; nothing was sent"), hint);
        Err(Decided { kind: Kind::Service, problem }.into())
    }

    /// Makes the uploads together; the results are in the order of the plan.
    async fn upload(&mut self, uploads: &[Upload<'_>]) -> Vec<Result> {
        let (client, vetted) = (self.client, self.vetted);
        let answers: Vec<_> = stream::iter(uploads.iter().map(|upload| client.upload(vetted, upload.domain)))
            .buffered(AT_ONCE)
            .collect()
            .await;
        uploads
            .iter()
            .zip(answers)
            .map(|(upload, answer)| self.record_upload(upload.domain, answer))
            .collect()
    }

    /// Reads the sites until every one that was uploaded for is pushed, or the wait is over. At least one reading.
    async fn await_push(&self, results: &[Result], wait: Duration, deadline: Deadline) -> HashMap<u64, Site> {
        let mut now = HashMap::new();
        if !results.iter().any(std::result::Result::is_ok) {
            return now;
        }
        let end = Deadline::after(wait).or_sooner(deadline);
        let ids: Vec<u64> = results.iter().filter_map(|result| result.as_ref().ok().copied()).collect();
        let mut pause = FIRST_LOOK;
        loop {
            match timeout(end.left().max(ONE_LOOK), self.client.sites()).await {
                Ok(Ok(sites)) => now = sites.into_iter().map(|site| (site.id, site)).collect(),
                Ok(Err(failed)) => log::warn!("cannot read the sites after the upload: {failed}"),
                Err(_) => log::warn!("cannot read the sites after the upload: no answer in time"),
            }
            let pending = now
                .values()
                .any(|site: &Site| site.cert_id.is_some_and(|id| ids.contains(&id)) && !site.config_synced);
            if (!pending && !now.is_empty()) || pause >= end.left() {
                return now;
            }
            log::info!("waiting for the push to the edge");
            sleep(pause).await;
            pause = (pause * 3 / 2).min(LATER_LOOKS);
        }
    }
}
