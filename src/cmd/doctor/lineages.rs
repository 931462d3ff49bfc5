//! The lineages of this host: those that edgecert manages, whether their files can be deployed, and whether they are
//! renewed; and those that ACME clients keep besides.

use std::collections::HashSet;
use std::path::PathBuf;

use time::OffsetDateTime;

use super::clients;
use super::finding::{DoctorFinding, Subject};
use super::hook::{ATTACH, Hook};
use super::host::Host;
use crate::api::Site;
use crate::bundle::{self, Bundle, Chain, LeafPeek};
use crate::check::{self, CheckContext, PathRule, Status};
use crate::deploy::LoadedAnchors;
use crate::error::{ErrorKind, shell_word};
use crate::file::{self, ReadError};
use crate::inventory::{self, Inventory, Member};
use crate::names::{Domain, Names};
use crate::plan::Allow;
use crate::settings::{Layers, TrustPolicy};
use crate::source::{AcmeClient, Source};
use crate::state::{Deployments, Given, LineageState, StateError};
use crate::text;
use crate::trust::TrustStores;

/// A lineage on this host.
pub(super) struct HostLineage {
    pub(super) source: Source,
    pub(super) policy: DeployPolicy,
    /// `None`: its certificate cannot be read.
    pub(super) leaf: Option<LeafNames>,
    pub(super) hook: Hook,
    /// Whether it was deployed before, or is configured.
    is_managed: bool,
    /// Whether a hook run is recorded.
    has_hook_run: bool,
}

/// How `deploy` would treat a lineage.
#[derive(Default)]
pub(super) struct DeployPolicy {
    /// Empty: every covered site.
    pub(super) domains: Vec<Domain>,
    pub(super) allow: Allow,
    pub(super) allow_untrusted: bool,
    pub(super) skip_unmatched: bool,
    /// `None`: the path to a root is not checked.
    trust_anchors: Option<TrustPolicy>,
    /// See [`LineageEntry::account`](crate::settings::LineageEntry::account).
    pub(super) account: Option<String>,
    superseded: Option<Superseded>,
}

/// A lineage that is recorded as superseded on all its sites.
struct Superseded {
    /// Fingerprint of the superseded leaf. A renewal may supersede the other lineage in turn.
    fingerprint: String,
    /// Names the lineage that supersedes it.
    detail: String,
}

/// The names of a leaf, and its issue date.
pub(super) struct LeafNames {
    names: Names,
    /// The names as text.
    pub(super) list: Vec<String>,
    pub(super) issued: OffsetDateTime,
    expires: OffsetDateTime,
}

/// The lineages of the inventory.
#[derive(Default)]
pub(super) struct Managed {
    pub(super) lineages: Vec<HostLineage>,
    pub(super) deployments: Deployments,
    pub(super) findings: Vec<DoctorFinding>,
    pub(super) state_errors: Vec<StateError>,
    /// Start of the last run of the lineage whose last run was the earliest; `None` if nothing was deployed.
    pub(super) earliest_run: Option<OffsetDateTime>,
}

impl LeafNames {
    pub(super) fn new(chain: &Chain) -> Self {
        let leaf = &chain.leaf;
        Self {
            names: Names::of(leaf.dns_names()),
            list: leaf.names(),
            issued: leaf.not_before,
            expires: leaf.not_after,
        }
    }
}

impl HostLineage {
    fn new(source: Source, policy: DeployPolicy, has_hook_run: bool, host: &Host<'_>) -> Self {
        let hook = Hook::find(&source, has_hook_run, host);
        Self { source, policy, leaf: None, hook, is_managed: true, has_hook_run }
    }

    /// Reads the lineage and runs the local checks.
    fn check(&mut self, now: OffsetDateTime, stores: &TrustStores) -> Vec<DoctorFinding> {
        let mut findings: Vec<DoctorFinding> = open_key(&self.source).into_iter().collect();
        let anchors = self.policy.trust_anchors.as_ref();
        let anchors = anchors.map(|anchors| LoadedAnchors::load(anchors, stores, file::default_deadline()));
        let anchors = anchors.transpose().unwrap_or_else(|error| {
            findings.push(DoctorFinding::from_error(Subject::Lineage, error));
            None
        });
        let path = anchors.as_ref().and_then(Option::as_ref).map(LoadedAnchors::rule);
        let loaded = self.load();
        if let Some(finding) = self.superseded(loaded.as_ref().ok()) {
            return vec![finding];
        }
        match loaded {
            Ok(bundle) => findings.extend(self.check_bundle(&bundle, now, path)),
            Err(error) => findings.push(unreadable_finding(error)),
        }
        let Some(leaf) = &self.leaf else { return findings };
        if findings.is_empty() {
            let detail = format!("{}: {}", self.title(), text::list(&leaf.list));
            findings.push(DoctorFinding::ok(Subject::Lineage, detail));
        }
        findings.push(self.hook_finding());
        findings.extend(self.not_renewed(leaf, now));
        findings
    }

    /// Reports that the lineage is superseded. Whatever else is wrong with it does not matter then.
    fn superseded(&self, bundle: Option<&Bundle>) -> Option<DoctorFinding> {
        let Superseded { fingerprint, detail } = self.policy.superseded.as_ref()?;
        let on_disk = bundle.and_then(|bundle| bundle.chain.as_ref().ok());
        if on_disk.is_some_and(|chain| chain.leaf.fingerprint() != *fingerprint) {
            return None;
        }
        let detail = format!("{} is superseded: {detail}", self.title());
        let remedy = "delete it with its ACME client, then run `edgecert status --forget` on it";
        Some(DoctorFinding::warn(Subject::Lineage, detail, remedy))
    }

    fn load(&self) -> Result<Bundle, ReadError> {
        let mut files = self.source.files.clone();
        // Certificate and key may be in one file.
        files.key.get_or_insert_with(|| files.cert.clone());
        bundle::load(&files, file::default_deadline())
    }

    fn check_bundle(
        &mut self,
        bundle: &Bundle,
        now: OffsetDateTime,
        path: Option<PathRule<'_>>,
    ) -> Vec<DoctorFinding> {
        self.leaf = bundle.chain.as_ref().ok().map(LeafNames::new);
        let directory = self.source.acme_directory();
        let context = CheckContext {
            domains: &self.policy.domains,
            at: now,
            untrusted: if self.policy.allow_untrusted { Status::Warn } else { Status::Fail },
            path,
            directory: directory.as_deref(),
        };
        check::run(bundle, &context).into_iter().filter_map(check_finding).collect()
    }

    /// The name of the lineage in messages: its directory, or its certificate if the files were given one by one.
    pub(super) fn title(&self) -> String {
        let directory = self.source.directory.as_ref().filter(|_| self.source.client != AcmeClient::Files);
        text::path(directory.unwrap_or(&self.source.files.cert))
    }

    /// Whether its next renewal should be deployed.
    pub(super) fn is_deployed(&self) -> bool {
        self.is_managed || self.hook.is_installed()
    }

    /// Reports what shows whether the client runs edgecert.
    fn hook_finding(&self) -> DoctorFinding {
        let (title, client) = (self.title(), self.source.client);
        match &self.hook {
            Hook::Named(place) => {
                let ran =
                    if self.has_hook_run { "a hook run is recorded" } else { "no hook run is recorded yet" };
                let detail = format!("{} names edgecert for {title}; {ran}", text::path(place));
                DoctorFinding::ok(Subject::Hook, detail)
            }
            Hook::Ran => DoctorFinding::ok(Subject::Hook, format!("a hook run is recorded for {title}")),
            Hook::NoHooks => {
                let detail = format!("no hook is known of {title}; `edgecert sync` deploys its renewals");
                DoctorFinding::ok(Subject::Hook, detail)
            }
            Hook::Missing { detail, remedy } => hook_fault(detail.clone(), remedy),
            Hook::Unknown => {
                let detail = format!(
                    "cannot tell whether {client} calls edgecert for {title}: its configuration does not say, and no hook run is recorded"
                );
                DoctorFinding::warn(Subject::Hook, detail, ATTACH)
            }
        }
    }

    /// Reports a lineage of a client that covers these sites, but was never deployed or configured.
    pub(super) fn unmanaged_finding(&self, sites: &[&Site], is_covered_by_others: bool) -> DoctorFinding {
        let title = self.title();
        let domains: Vec<String> = sites.iter().map(|site| site.domain.to_string()).collect();
        let covers = format!("{title} covers {}", text::list(&domains));
        match &self.hook {
            Hook::Named(place) => {
                let detail =
                    format!("{covers}, and {} names edgecert, but it was never deployed", text::path(place));
                DoctorFinding::warn(Subject::Hook, detail, format!("run `edgecert {}`", self.source.flags()))
            }
            _ if is_covered_by_others => {
                let detail = format!("{covers}, as another lineage does, and no hook deploys it");
                DoctorFinding::warn(
                    Subject::Hook,
                    detail,
                    "ignore it, or delete the lineage that is not needed",
                )
            }
            Hook::Missing { detail, remedy } => hook_fault(format!("{covers}, but {detail}"), remedy),
            Hook::Unknown | Hook::NoHooks | Hook::Ran => hook_fault(
                format!("{covers}, but was never deployed and is not configured"),
                &format!("{ATTACH}, or name the lineage in a [[lineage]] of the configuration"),
            ),
        }
    }

    /// Reports a certificate that should have been renewed. One that has expired is refused by the checks.
    fn not_renewed(&self, leaf: &LeafNames, now: OffsetDateTime) -> Option<DoctorFinding> {
        let (left, lifetime) = (leaf.expires - now, leaf.expires - leaf.issued);
        if left.is_negative() || left >= lifetime / 4 {
            return None;
        }
        let command = match self.source.client {
            AcmeClient::Certbot => "`certbot renew`",
            AcmeClient::AcmeSh => "`acme.sh --cron`",
            AcmeClient::Dehydrated => "`dehydrated --cron`",
            _ => "its ACME client",
        };
        let detail = format!(
            "{} has {} of {} left, less than a quarter: nothing has renewed it",
            self.title(),
            text::humanize(left),
            text::humanize(lifetime)
        );
        let remedy = format!("run {command}, and let a timer or crontab run it");
        Some(DoctorFinding::warn(Subject::Renewal, detail, remedy))
    }

    /// Whether its certificate covers a site.
    pub(super) fn covers(&self, site: &Domain) -> bool {
        self.leaf.as_ref().is_some_and(|leaf| leaf.names.cover(site))
    }

    /// Whether it would be deployed to a site.
    pub(super) fn is_deployed_to(&self, site: &Domain) -> bool {
        (self.policy.domains.is_empty() || self.policy.domains.contains(site)) && self.covers(site)
    }
}

impl Managed {
    /// Checks the lineages of the configuration and those deployed before.
    pub(super) fn check(
        inventory: Inventory<'_>,
        layers: &Layers<'_>,
        host: &Host<'_>,
        now: OffsetDateTime,
        stores: &TrustStores,
    ) -> Self {
        let (mut managed, mut state_errors) = (Self::default(), Vec::new());
        let visitor = |member: Member<'_>| {
            if let Some(state) = &member.state {
                managed.deployments.add(&member.name, state);
                managed.earliest_run = managed.earliest_run.into_iter().chain([state.begun_at]).min();
            }
            let policy = DeployPolicy::new(&member, layers);
            let has_hook_run = member.state.as_ref().is_some_and(|state| state.has_hook_run);
            match member.source {
                Ok(source) => {
                    let mut lineage = HostLineage::new(source, policy, has_hook_run, host);
                    managed.findings.extend(lineage.check(now, stores));
                    managed.lineages.push(lineage);
                }
                Err(error) => managed.findings.push(DoctorFinding::from_error(Subject::Lineage, error)),
            }
        };
        inventory.visit(visitor, |error| state_errors.push(error));
        managed.lineages.sort_by_key(HostLineage::title);
        Self { state_errors, ..managed }
    }
}

/// Finds the lineages of ACME clients that cover sites and that edgecert does not manage, and reports directories that
/// cannot be searched.
pub(super) fn find_unmanaged(
    host: &Host<'_>,
    managed: &[HostLineage],
    sites: &[Site],
) -> (Vec<HostLineage>, Vec<DoctorFinding>) {
    let (found, denied) = clients::find(host);
    // Resolved once, as there may be thousands of either.
    let paths: HashSet<PathBuf> = managed.iter().map(|lineage| lineage.source.real_path()).collect();
    let unmanaged =
        found.into_iter().filter(|source| !paths.contains(&source.real_path())).filter_map(|source| {
            let certificate = bundle::load_chain(&source.files).ok()?;
            let leaf = Some(LeafNames::new(certificate.chain.as_ref().ok()?));
            let lineage = HostLineage::new(source, DeployPolicy::default(), false, host);
            Some(HostLineage { leaf, is_managed: false, ..lineage })
        });
    let covers_site = |lineage: &HostLineage| sites.iter().any(|site| lineage.covers(&site.domain));
    (unmanaged.filter(covers_site).collect(), denied)
}

fn hook_fault(detail: String, remedy: &str) -> DoctorFinding {
    DoctorFinding::fail(Subject::Hook, ErrorKind::Config, detail, remedy)
}

impl Superseded {
    fn recorded(state: &LineageState) -> Option<Self> {
        let detail = state.sites.iter().find_map(|site| site.detail.as_deref())?;
        let fingerprint = state.leaf.as_ref()?.fingerprint.clone();
        state.is_superseded().then(|| Self { fingerprint, detail: text::sanitize(detail) })
    }
}

impl DeployPolicy {
    fn new(member: &Member<'_>, layers: &Layers<'_>) -> Self {
        let recorded = recorded_options(member);
        let settings = layers.merge(&recorded.settings, member.entry);
        Self {
            domains: inventory::domains(&recorded, member.entry),
            allow: Allow {
                rebind: settings.rebind.unwrap_or(false),
                shrink: recorded.guards.allow_shrink,
                older: recorded.guards.allow_older,
                lets: recorded.guards.replace_lets,
                partial: recorded.guards.allow_partial,
            },
            allow_untrusted: settings.allow_untrusted.unwrap_or(false),
            skip_unmatched: settings.skip_unmatched.unwrap_or(false),
            trust_anchors: Some(TrustPolicy::new(settings.trust_anchors, layers.env)),
            account: member.entry.and_then(|entry| entry.account.clone()),
            superseded: member.state.as_ref().and_then(Superseded::recorded),
        }
    }
}

/// Reports that no lineage of this host covers a site of the account.
pub(super) fn none(sites: &[Site], host: &Host<'_>) -> DoctorFinding {
    let remedy = match sites.first() {
        Some(site) => {
            let [domain, program] =
                [site.domain.to_string(), text::path(&host.edgecert())].map(|word| shell_word(&word));
            format!(
                "issue a certificate with an ACME client that runs edgecert, for example with `certbot certonly -d {domain} \
                 --deploy-hook {program}`, or deploy an existing one with `edgecert --lineage DIR`"
            )
        }
        None => "create a site with `edgecert sites create`".to_owned(),
    };
    let detail = "no lineage is configured, and none found on this host covers a site of the account";
    DoctorFinding::warn(Subject::Lineage, detail, remedy)
}

/// Reports a pattern that matches no lineage. There may be none yet.
pub(super) fn unmatched(pattern: &str) -> DoctorFinding {
    let detail = format!("the path {} in the configuration matches no lineage", text::sanitize(pattern));
    DoctorFinding::warn(Subject::Lineage, detail, "correct `path` in its [[lineage]]")
}

/// The options that the state of a lineage holds for its certificate on disk.
fn recorded_options(member: &Member<'_>) -> Given {
    let (Some(state), Ok(source)) = (&member.state, &member.source) else {
        return Given::default();
    };
    let known = state.leaf.as_ref().map(|leaf| leaf.fingerprint.as_str());
    let is_recorded = matches!(bundle::peek_leaf(&source.files, known), Ok(LeafPeek::Known));
    state.given(is_recorded).0
}

/// Converts the finding of a local check, unless nothing is wrong.
fn check_finding(finding: check::Finding) -> Option<DoctorFinding> {
    let remedy = finding.hint.unwrap_or_else(|| "run `edgecert check` on this lineage".into());
    match finding.status {
        Status::Fail => {
            Some(DoctorFinding::fail(Subject::Lineage, ErrorKind::Refused, finding.detail, remedy))
        }
        Status::Warn => Some(DoctorFinding::warn(Subject::Lineage, finding.detail, remedy)),
        Status::Ok | Status::Skipped => None,
    }
}

/// Reports a private key that others can read. In a mounted secret that is usual, and only its pod has access.
fn open_key(source: &Source) -> Option<DoctorFinding> {
    let key = source.files.key.as_ref().filter(|key| file::is_open_to_others(key))?;
    let path = text::path(key);
    let detail = format!("others can read the private key {path}");
    if source.client == AcmeClient::Kubernetes {
        let remedy = "set defaultMode: 0400 where the secret is mounted";
        return Some(DoctorFinding::warn(Subject::Lineage, detail, remedy));
    }
    let remedy = format!("run `chmod o= {}`", shell_word(&path));
    Some(DoctorFinding::fail(Subject::Lineage, ErrorKind::Config, detail, remedy))
}

fn unreadable_finding(error: ReadError) -> DoctorFinding {
    let is_missing = error.is_missing();
    let finding = DoctorFinding::from_error(Subject::Lineage, error);
    let remedy =
        "if the lineage was deleted, remove it from the configuration, or run `edgecert status --forget`";
    if is_missing { DoctorFinding { remedy: Some(remedy.into()), ..finding } } else { finding }
}
