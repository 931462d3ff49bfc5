//! Carries out a plan for one lineage: list, plan, upload, bind, wait, prove, and say for each site what the service and
//! its edge say it is now.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::StreamExt as _;
use futures_util::stream;
use serde_json::{Map, json};
use time::OffsetDateTime;
use tokio::time::sleep;

use super::polling::PendingSite;
use super::scope::Scope;
use crate::api::{Client, Listing, Record, RequestError, Site};
use crate::check::Vetted;
use crate::clock::Deadline;
use crate::error::{CommandError, Diagnostic as _, ErrorKind};
use crate::names::Domain;
use crate::outcome::Outcome;
use crate::plan::{Account, Action, Allow, Plan, PlanRequest, Step, Upload};
use crate::report::DeployReport;
use crate::settings::{Settings, Verify};
use crate::verify::Edge;

/// Requests under way at once, and handshakes.
pub(crate) const AT_ONCE: usize = 16;
pub(crate) const HANDSHAKES_AT_ONCE: usize = 32;

/// So long the edge is asked before anything is changed.
const BEFOREHAND: Duration = Duration::from_secs(3);

/// What is to be deployed, and how far that may go.
pub(crate) struct Order<'a> {
    pub(crate) vetted: &'a Vetted<'a>,
    /// The sites that must get it, each once; empty: every covered one.
    pub(crate) domains: &'a [Domain],
    pub(crate) settings: &'a Settings,
    pub(crate) allow: Allow,
    /// When the leaves in the service's records were issued, as far as that is remembered.
    pub(crate) issued: &'a HashMap<u64, OffsetDateTime>,
    /// What the account has, where that is known already.
    pub(crate) listing: Option<&'a Listing>,
    /// Upload for the domains and do nothing else.
    pub(crate) upload_only: bool,
    /// Plan, and change nothing.
    pub(crate) dry_run: bool,
    pub(crate) deadline: Deadline,
}

/// Brings the certificate to the sites and records everything in the report. An `Err` means that nothing could be
/// begun; failures of single sites are in the report.
pub(crate) async fn run(
    client: &Client,
    order: &Order<'_>,
    report: &mut DeployReport,
) -> Result<(), CommandError> {
    let mut rollout = Rollout { client, order, report, sites: 0 };
    match (order.upload_only, order.dry_run) {
        (true, true) => {
            rollout.report.body.plan = Some(order.domains.iter().map(Step::upload_only).collect())
        }
        (true, false) => rollout.upload_only().await,
        (false, _) => rollout.planned().await?,
    }
    Ok(())
}

pub(crate) struct Rollout<'a> {
    pub(crate) client: &'a Client,
    pub(crate) order: &'a Order<'a>,
    pub(crate) report: &'a mut DeployReport,
    /// How many the account has.
    pub(crate) sites: usize,
}

/// What an upload that succeeded says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub(crate) id: u64,
    pub(crate) created: bool,
}

/// What became of an upload.
pub(crate) type UploadResult = Result<Stored, RequestError>;

impl Rollout<'_> {
    /// One upload for each domain and nothing else: no listing, no guard, no wait.
    async fn upload_only(&mut self) {
        let mut hopeless = None;
        for domain in self.order.domains {
            // What stands against one upload stands against all: the private key is not sent again.
            if let Some(reason) = &hopeless {
                self.push_bare(domain, None, Outcome::Refused, Some(format!("not tried: {reason}")));
                continue;
            }
            let result = self.client.upload(self.order.vetted, domain).await;
            match self.record_upload(domain, result) {
                Ok(stored) => self.push_bare(domain, Some(stored.id), Outcome::Uploaded, None),
                Err(failed) => {
                    let outcome = self.upload_failed(domain, &failed);
                    self.push_bare(domain, None, outcome, Some(failed.to_string()));
                    let kind = failed.kind();
                    hopeless =
                        matches!(kind, ErrorKind::Denied | ErrorKind::Config).then(|| failed.to_string());
                }
            }
        }
    }

    async fn planned(&mut self) -> Result<(), CommandError> {
        let own;
        let listing = if let Some(shared) = self.order.listing {
            shared
        } else {
            own = self.client.listing().await?;
            self.report.warnings.extend(own.warnings.iter().cloned());
            &own
        };
        let (sites, scope) = (&listing.sites, Scope::new(self.order));
        self.sites = sites.len();
        if self.finds_nothing(&scope, sites, listing.warnings.is_empty())? {
            return Ok(());
        }
        let edge = Edge::new(self.order.vetted.chain, &self.order.settings.edge_addresses)
            .context("cannot set up TLS")?;
        let issued = self.issued(&edge, &scope, sites, &listing.records).await;
        let request = PlanRequest {
            covers: &|domain| scope.covers(domain),
            issued: self.order.vetted.chain.leaf.not_before,
            domains: self.order.domains,
            allow: self.order.allow,
        };
        let account =
            Account { sites, records: &listing.records, unreadable: &listing.unreadable, issued: &issued };
        let plan = Plan::new(&account, &request);
        if self.order.dry_run {
            self.report.body.plan = Some(plan.steps());
            self.report_what_is_left(&plan);
        } else {
            self.carry_out(&edge, &plan).await;
        }
        // A later reading may say the same again.
        let known = &self.report.warnings;
        let new: Vec<String> =
            self.client.take_warnings().into_iter().filter(|note| !known.contains(note)).collect();
        self.report.warnings.extend(new);
        self.report.body.sites.sort_by(|a, b| a.domain.cmp(&b.domain));
        Ok(())
    }

    async fn carry_out(&mut self, edge: &Edge<'_>, plan: &Plan<'_>) {
        let results = self.upload(&plan.uploads).await;
        let mut pending_sites: Vec<PendingSite<'_>> = Vec::new();
        for target in &plan.targets {
            let Some(place) = target.action.upload() else { continue };
            if let (Some(upload), Some(result)) = (plan.uploads.get(place), results.get(place)) {
                let verify = self.order.settings.verify;
                pending_sites.push(PendingSite::new(target, upload, result.as_ref().copied(), verify));
            }
        }
        let has_to_be_bound = |pending: &PendingSite<'_>| {
            matches!(pending.target.action, Action::Bind(..)) && !pending.is_bound_by_creation()
        };
        self.bind(&mut pending_sites, has_to_be_bound).await;
        self.settle(edge, &mut pending_sites).await;
        self.report_what_is_left(plan);
        for pending in &pending_sites {
            self.report_arrival(pending);
        }
    }

    /// When the leaves were issued that the records hold which may be replaced, as far as that is remembered or the edge
    /// shows them. An edge that keeps silent must not cost the deployment.
    async fn issued(
        &self,
        edge: &Edge<'_>,
        scope: &Scope<'_>,
        sites: &[Site],
        records: &[Record],
    ) -> HashMap<u64, OffsetDateTime> {
        let mut known = self.order.issued.clone();
        if self.order.settings.verify == Verify::Off || self.order.allow.older {
            return known;
        }
        let limit = BEFOREHAND.min(self.order.deadline.left() / 4);
        let looks = scope.shown_by(sites, records).into_iter().map(|(id, sites)| async move {
            for site in sites {
                if let Some(issued) = edge.latest_issued(site, limit).await {
                    return Some((id, issued));
                }
            }
            None
        });
        let looks =
            stream::iter(looks).buffer_unordered(HANDSHAKES_AT_ONCE).take_until(Box::pin(sleep(limit)));
        let shown: Vec<(u64, OffsetDateTime)> = looks.filter_map(std::future::ready).collect().await;
        for (id, issued) in shown {
            let latest = known.get(&id).map_or(issued, |before| issued.max(*before));
            known.insert(id, latest);
        }
        known
    }

    /// Makes the uploads together; the results are in the order of the plan.
    async fn upload(&mut self, uploads: &[Upload<'_>]) -> Vec<UploadResult> {
        let (client, vetted) = (self.client, self.order.vetted);
        let answers: Vec<_> = stream::iter(uploads.iter().map(|upload| client.upload(vetted, upload.domain)))
            .buffered(AT_ONCE)
            .collect()
            .await;
        let mut results = Vec::with_capacity(uploads.len());
        for (upload, answer) in uploads.iter().zip(answers) {
            let mut result = self.record_upload(upload.domain, answer);
            // One site that the service refuses does not keep the others from their certificate.
            for domain in &upload.alternatives {
                if !result.as_ref().is_err_and(|failed| failed.kind() == ErrorKind::Service) {
                    break;
                }
                let answer = client.upload(vetted, domain).await;
                result = self.record_upload(domain, answer);
            }
            results.push(result);
        }
        results
    }

    /// Sets `cert_id` of the pending sites for which `which` says so, together.
    pub(crate) async fn bind(
        &self,
        pending_sites: &mut [PendingSite<'_>],
        which: impl Fn(&PendingSite<'_>) -> bool,
    ) {
        let unplaced_sites = pending_sites.iter_mut().filter(|pending| which(pending) && !pending.is_fed());
        let updates = unplaced_sites.filter_map(|pending| Some((pending.stored.ok()?.id, pending))).map(
            |(id, pending)| async move {
                log::info!("binding {} to certificate {id}", pending.target.site.domain);
                let fields = Map::from_iter([("cert_id".to_owned(), json!(id))]);
                pending.binding = Some(self.client.update_site(pending.target.site.id, &fields).await);
            },
        );
        stream::iter(updates).buffer_unordered(AT_ONCE).for_each(std::future::ready).await;
    }
}
