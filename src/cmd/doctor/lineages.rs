//! The lineages of this host: those that edgecert manages, and a dry run of their deployments; and those that ACME clients
//! keep besides.

use std::sync::Arc;

use time::OffsetDateTime;

use super::finding::{DoctorFinding, Subject};
use super::hook::{self, ATTACH};
use super::host::{Host, entries};
use super::service::Account;
use crate::api::Site;
use crate::bundle;
use crate::check::Status;
use crate::clock::Deadline;
use crate::deploy::{Deployment, Journal};
use crate::error::{CommandError, ErrorKind, shell_word};
use crate::file;
use crate::hint::Place;
use crate::inventory;
use crate::leaf::Leaf;
use crate::names::{Domain, Names, hosts};
use crate::report::Report;
use crate::settings::{Guards, LineageEntry, Settings};
use crate::source::{AcmeClient, Source};
use crate::state::{Given, LineageState};
use crate::text;

/// Directories of certbot and dehydrated with a subdirectory for each lineage.
const DIRECTORIES: [&str; 2] = ["/etc/letsencrypt/live", "/var/lib/dehydrated/certs"];

/// A lineage on this host.
pub(super) struct HostLineage {
    pub(super) source: Source,
    /// Its directory, or its certificate if the files were given one by one.
    pub(super) title: String,
    /// The sites that it is for; empty: every covered site.
    domains: Vec<Domain>,
    guards: Guards,
    settings: Arc<Settings>,
    /// Index of the account that it is deployed to.
    pub(super) account: usize,
    /// `None`: it has no certificate that could be deployed.
    leaf: Option<Leaf>,
    names: Names,
    hook: DoctorFinding,
    /// Whether it was deployed before, or is configured.
    pub(super) is_managed: bool,
    /// What supersedes it on all its sites.
    superseded: Option<String>,
    /// Why sites would not get its certificate.
    pub(super) blocked: Vec<CommandError>,
}

impl HostLineage {
    /// Examines a lineage. `target` returns the settings of a deployment with these options, and the index of its account;
    /// `None` if there are none.
    pub(super) fn new(
        (source, entry): (Source, Option<&LineageEntry>),
        state: Option<&LineageState>,
        target: impl FnOnce(&Given) -> Option<(Arc<Settings>, usize)>,
        host: &Host<'_>,
    ) -> Option<Self> {
        let leaf = bundle::leaf(&source.files, None).ok().flatten();
        let given = state.map(|state| state.given(leaf.as_ref()).0).unwrap_or_default();
        let (settings, account) = target(&given)?;
        // A renewal may supersede the other lineage in turn.
        let superseded = state.filter(|state| state.may_be_recorded(leaf.as_ref()) && state.is_superseded());
        let reason = |state: &LineageState| state.sites.iter().find_map(|site| site.detail.clone());
        let leaf = leaf.filter(|_| superseded.is_none());
        let directory = source.directory.as_ref().filter(|_| source.client != AcmeClient::Files);
        let title = text::path(directory.unwrap_or(&source.files.cert));
        let hook = hook::check(&source, &title, state.is_some_and(|state| state.has_hook_run), host);
        Some(Self {
            domains: inventory::domains(&given, entry),
            guards: given.guards,
            settings,
            account,
            names: Names::of(leaf.iter().flat_map(|leaf| leaf.names.iter().map(String::as_str))),
            leaf,
            hook,
            is_managed: state.is_some() || entry.is_some(),
            superseded: superseded.and_then(reason).map(|reason| text::sanitize(&reason)),
            blocked: Vec::new(),
            source,
            title,
        })
    }

    /// Goes through the steps of a deployment and changes nothing. Without a listing, only the local checks are run.
    pub(super) async fn check(&mut self, account: &Account, now: OffsetDateTime) -> Vec<DoctorFinding> {
        if let Some(reason) = &self.superseded {
            // Whatever else is wrong with it does not matter then.
            let detail = format!("{} is superseded: {reason}", self.title);
            let remedy = "delete it with its ACME client, then run `edgecert status --forget` on it";
            return vec![Subject::Lineage.warn(detail, remedy)];
        }
        let mut report = Report::new("doctor");
        let (lineage, domains) = (Some(self.source.flags()), hosts(&self.domains));
        report.set_place(Place { lineage, domains, ..Place::default() });
        let snapshot = account.snapshot.as_ref();
        let deployment = Deployment {
            source: &self.source,
            settings: &self.settings,
            domains: &self.domains,
            guards: self.guards,
            upload_only: snapshot.is_none(),
            force: false,
            dry_run: true,
            account: snapshot,
            deadline: Deadline::after(self.settings.timeout),
            progress: &|_| {},
        };
        let mut journal = Journal::read_only(&self.source, None, &mut report);
        let result = deployment.run(&mut journal, &account.clients, &mut report).await;
        self.blocked = report.errors().iter().filter(|error| error.site().is_some()).cloned().collect();
        let mut findings: Vec<DoctorFinding> = open_key(&self.source).into_iter().collect();
        for finding in &report.deployed.checks {
            let error = CommandError::from(finding).placed(&report.place);
            match finding.status {
                Status::Fail => findings.push(Subject::Lineage.failed(error)),
                Status::Warn => {
                    let remedy = error.advice().unwrap_or_else(|| "run `edgecert check` on it".into());
                    findings.push(Subject::Lineage.warn(&finding.detail, remedy));
                }
                Status::Ok | Status::Skipped => {}
            }
        }
        if let Err(error) = result {
            let is_about_files = error.kind() == ErrorKind::NoInput;
            let mut error = error.placed(&report.place);
            if is_about_files && error.is_misuse() {
                error = error.hint("if the lineage was deleted, remove it from the configuration, or run `edgecert status --forget`");
            }
            let failed = Subject::Lineage.failed(error);
            findings.push(if is_about_files { failed } else { account.named(failed) });
        }
        let Some(leaf) = &self.leaf else { return findings };
        if findings.is_empty() {
            findings.push(Subject::Lineage.ok(format!("{}: {}", self.title, text::list(&leaf.names))));
        }
        findings.push(self.hook.clone());
        let (left, lifetime) = (leaf.not_after - now, leaf.not_after - leaf.not_before);
        // A certificate that has expired is refused by the checks.
        if !left.is_negative() && left < lifetime / 4 {
            let command = match self.source.client {
                AcmeClient::Certbot => "`certbot renew`",
                AcmeClient::AcmeSh => "`acme.sh --cron`",
                AcmeClient::Dehydrated => "`dehydrated --cron`",
                _ => "its ACME client",
            };
            let (left, lifetime) = (text::humanize(left), text::humanize(lifetime));
            let detail = format!(
                "{} has {left} of {lifetime} left, less than a quarter: nothing has renewed it",
                self.title
            );
            let remedy = format!("run {command}, and let a timer or crontab run it");
            findings.push(Subject::Renewal.warn(detail, remedy));
        }
        findings
    }

    /// Whether its next renewal should be deployed.
    pub(super) fn is_deployed(&self) -> bool {
        self.is_managed || self.hook.status == Status::Ok
    }

    /// Reports a lineage of a client that covers these sites, but was never deployed or configured.
    pub(super) fn unmanaged_finding(&self, sites: &[&Site]) -> DoctorFinding {
        let covers = format!("{} covers {}", self.title, text::list(sites.iter().map(|site| &site.domain)));
        let found = &self.hook.detail;
        match self.hook.status {
            Status::Ok => {
                let detail = format!("{covers}, but was never deployed; {found}");
                Subject::Hook.warn(detail, format!("run `edgecert {}`", self.source.flags()))
            }
            Status::Fail => DoctorFinding { detail: format!("{covers}, but {found}"), ..self.hook.clone() },
            _ => Subject::Hook.fail(
                format!("{covers}, but was never deployed and is not configured"),
                format!("{ATTACH}, or name the lineage in a [[lineage]] of the configuration"),
            ),
        }
    }

    /// Whether it would be deployed to a site.
    pub(super) fn is_for(&self, site: &Domain) -> bool {
        (self.domains.is_empty() || self.domains.contains(site)) && self.names.cover(site)
    }
}

/// Finds the lineages of the ACME clients that have a directory for each.
pub(super) fn find(host: &Host<'_>) -> impl Iterator<Item = Source> {
    let acme_sh = host.env.path("LE_CONFIG_HOME").or_else(|| host.env.path("LE_WORKING_DIR"));
    let acme_sh = acme_sh.or_else(|| host.env.path("HOME").map(|home| home.join(".acme.sh")));
    let parents = DIRECTORIES.into_iter().map(|path| host.at(path)).chain(acme_sh);
    let directories = parents.flat_map(|path| entries(&path)).filter(|path| path.is_dir());
    directories.filter_map(|path| Source::at(&path).ok())
}

/// Reports that no lineage of this host covers a site of the account.
pub(super) fn none(sites: &[Site], host: &Host<'_>) -> DoctorFinding {
    let remedy = match sites.first() {
        Some(site) => {
            let (domain, program) = (shell_word(&site.domain.to_string()), host.program());
            format!(
                "issue a certificate with an ACME client that runs edgecert, for example with `certbot certonly -d {domain} \
                 --deploy-hook {program}`, or deploy an existing one with `edgecert --lineage DIR`"
            )
        }
        None => "create a site with `edgecert sites create`".to_owned(),
    };
    let detail = "no lineage is configured, and none found on this host covers a site of the account";
    Subject::Lineage.warn(detail, remedy)
}

/// Reports a private key that others can read. In a mounted secret that is usual, and only its pod has access.
fn open_key(source: &Source) -> Option<DoctorFinding> {
    let key = source.files.key.as_ref().filter(|key| file::is_open_to_others(key))?;
    let path = text::path(key);
    let detail = format!("others can read the private key {path}");
    Some(match source.client {
        AcmeClient::Kubernetes => {
            Subject::Lineage.warn(detail, "set defaultMode: 0400 where the secret is mounted")
        }
        _ => Subject::Lineage.fail(detail, format!("run `chmod o= {}`", shell_word(&path))),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::env::Env;

    #[test]
    fn directories_of_clients_are_searched() {
        let root = tempfile::TempDir::new().unwrap();
        let at = |path: &str| root.path().join(path);
        for path in [
            "etc/letsencrypt/live/README",
            "etc/letsencrypt/live/a.example/fullchain.pem",
            "etc/letsencrypt/live/a.example/privkey.pem",
            "var/lib/dehydrated/certs/b.example/fullchain.pem",
            "home/.acme.sh/*.c.example_ecc/fullchain.cer",
            "home/.acme.sh/*.c.example_ecc/*.c.example.cer",
            "home/.acme.sh/*.c.example_ecc/*.c.example.key",
            "home/.acme.sh/ca/account.json",
        ] {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), "").unwrap();
        }
        let env: Env = [("HOME", at("home"))].into_iter().collect();
        let host = Host::new(root.path().to_owned(), &env);
        let line = |source: Source| {
            let cert = source.files.cert.strip_prefix(root.path()).unwrap();
            format!("{} {}", source.client, cert.display())
        };
        assert_eq!(
            find(&host).map(line).collect::<Vec<_>>(),
            [
                "certbot etc/letsencrypt/live/a.example/fullchain.pem",
                "certbot var/lib/dehydrated/certs/b.example/fullchain.pem",
                "acme.sh home/.acme.sh/*.c.example_ecc/fullchain.cer",
            ]
        );
    }
}
