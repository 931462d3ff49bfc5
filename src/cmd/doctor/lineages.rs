//! The lineages that edgecert manages, and whether their files can be deployed.

use time::OffsetDateTime;

use super::finding::{DoctorFinding, Subject};
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
}

/// The lineages of the inventory.
#[derive(Default)]
pub(super) struct Managed {
    pub(super) lineages: Vec<(Source, DeployPolicy)>,
    pub(super) deployments: Deployments,
    /// Findings about configuration entries that lead to no lineage.
    pub(super) findings: Vec<DoctorFinding>,
    pub(super) state_errors: Vec<StateError>,
}

impl LeafNames {
    pub(super) fn new(chain: &Chain) -> Self {
        let leaf = &chain.leaf;
        Self { names: Names::of(leaf.dns_names()), list: leaf.names(), issued: leaf.not_before }
    }
}

impl HostLineage {
    /// Reads a lineage and runs the local checks.
    pub(super) fn check(
        source: Source,
        policy: DeployPolicy,
        now: OffsetDateTime,
        stores: &TrustStores,
    ) -> (Self, Vec<DoctorFinding>) {
        let mut lineage = Self { source, policy, leaf: None };
        let mut findings: Vec<DoctorFinding> = open_key(&lineage.source).into_iter().collect();
        let anchors = lineage
            .policy
            .trust_anchors
            .as_ref()
            .map(|anchors| LoadedAnchors::load(anchors, stores, file::default_deadline()));
        let anchors = anchors.transpose().unwrap_or_else(|error| {
            findings.push(DoctorFinding::from_error(Subject::Lineage, error));
            None
        });
        let path = anchors.as_ref().and_then(Option::as_ref).map(LoadedAnchors::rule);
        let loaded = lineage.load();
        if let Some(finding) = lineage.superseded(loaded.as_ref().ok()) {
            return (lineage, vec![finding]);
        }
        match loaded {
            Ok(bundle) => findings.extend(lineage.check_bundle(&bundle, now, path)),
            Err(error) => findings.push(unreadable_finding(error)),
        }
        if let (Some(leaf), []) = (&lineage.leaf, findings.as_slice()) {
            let detail = format!("{}: {}", lineage.title(), text::list(&leaf.list));
            findings.push(DoctorFinding::ok(Subject::Lineage, detail));
        }
        (lineage, findings)
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
    /// Visits the lineages of the configuration and those deployed before.
    pub(super) fn new(inventory: Inventory<'_>, layers: &Layers<'_>) -> Self {
        let mut managed = Self::default();
        let mut state_errors = Vec::new();
        inventory.visit(|member| managed.add(member, layers), |error| state_errors.push(error));
        Self { state_errors, ..managed }
    }

    fn add(&mut self, member: Member<'_>, layers: &Layers<'_>) {
        if let Some(state) = &member.state {
            self.deployments.add(&member.name, state);
        }
        let policy = DeployPolicy::new(&member, layers);
        match member.source {
            Ok(source) => self.lineages.push((source, policy)),
            Err(error) => self.findings.push(DoctorFinding::from_error(Subject::Lineage, error)),
        }
    }
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
        let options = layers.lineage_options(&recorded.settings, member.entry);
        Self {
            domains: inventory::domains(&recorded, member.entry),
            allow: Allow {
                rebind: options.rebind,
                shrink: recorded.guards.allow_shrink,
                older: recorded.guards.allow_older,
                lets: recorded.guards.replace_lets,
                partial: recorded.guards.allow_partial,
            },
            allow_untrusted: options.allow_untrusted,
            skip_unmatched: options.skip_unmatched,
            trust_anchors: Some(options.trust_anchors),
            account: member.entry.and_then(|entry| entry.account.clone()),
            superseded: member.state.as_ref().and_then(Superseded::recorded),
        }
    }
}

/// Reports that no lineage of this host covers a site of the account.
pub(super) fn none(sites: &[Site]) -> DoctorFinding {
    let remedy = match sites.first() {
        Some(site) => {
            let domain = shell_word(&site.domain.to_string());
            format!(
                "issue a certificate with an ACME client that runs edgecert, for example with `certbot certonly -d {domain} \
                 --deploy-hook edgecert`, or deploy an existing one with `edgecert --lineage DIR`"
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
