//! Findings about the hooks of lineages, managed or not.

use super::finding::{DoctorFinding, Subject};
use super::hook_detection::{self, HookStatus, WrongHook};
use super::host::Host;
use super::lineages::HostLineage;
use super::path_miss;
use super::renewals::Renewals;
use super::unmanaged::Unmanaged;
use crate::error::{ErrorKind, shell_word};
use crate::source::AcmeClient;
use crate::text;

/// Remedy for clients that record no hooks, or whose hooks no command can set.
pub(super) const ATTACH: &str = "see \"Attach it to your ACME client\" in the README";

const REPAIR: &str = "install edgecert there, or correct the path";

/// Checks whether the client of a managed lineage calls edgecert.
pub(super) fn check_managed(
    lineage: &HostLineage,
    host: &Host<'_>,
    renewals: &Renewals<'_>,
) -> DoctorFinding {
    let title = lineage.title();
    match hook_detection::detect(&lineage.source, host, renewals) {
        HookStatus::Installed { config } => {
            DoctorFinding::ok(Subject::Hook, format!("{} calls edgecert for {title}", text::path(&config)))
        }
        HookStatus::NotInPath { config, miss } => path_miss::finding(&title, &config, &miss, host),
        HookStatus::Broken { config } => {
            let config = text::path(&config);
            fail(format!("the hook for {title} in {config} does not exist or is not executable"), REPAIR)
        }
        HookStatus::NotDeploying { config, remedy } => {
            let config = text::path(&config);
            fail(format!("{config} calls edgecert, but not to deploy {title}"), remedy)
        }
        HookStatus::WrongHook(wrong) => wrong_hook(&wrong),
        HookStatus::NotInstalled { config, remedy } => {
            fail(format!("{} does not call edgecert for {title}", text::path(&config)), remedy)
        }
        HookStatus::Unknown => unknown(lineage.source.client, &title),
    }
}

/// Creates the finding for a pre or post hook. It does not name the lineage, because lineages may share the hook.
fn wrong_hook(wrong: &WrongHook) -> DoctorFinding {
    let WrongHook { place, is_pre, remedy, .. } = wrong;
    let reason = if *is_pre {
        "as a pre hook, before anything is renewed"
    } else {
        "as a post hook, which does not name the renewed lineages"
    };
    fail(format!("{place} runs edgecert {reason}"), remedy)
}

fn unknown(client: AcmeClient, title: &str) -> DoctorFinding {
    match client {
        AcmeClient::Kubernetes | AcmeClient::Files => {
            let detail = format!("{title} belongs to no client with hooks; `edgecert sync` deploys renewals");
            DoctorFinding::ok(Subject::Hook, detail)
        }
        client => {
            let reason = match client {
                AcmeClient::Certbot | AcmeClient::AcmeSh => {
                    "its configuration for this lineage was not found"
                }
                _ => "it does not record hooks",
            };
            let detail = format!("cannot tell whether {client} calls edgecert for {title}: {reason}");
            DoctorFinding::warn(Subject::Hook, detail, ATTACH)
        }
    }
}

/// Checks a lineage that covers sites and was never deployed or configured.
pub(super) fn check_unmanaged(
    unmanaged: &Unmanaged<'_>,
    covered_by_others: bool,
    host: &Host<'_>,
) -> DoctorFinding {
    let title = unmanaged.lineage.title();
    let domains: Vec<String> = unmanaged.sites.iter().map(|site| site.domain.to_string()).collect();
    let covers = format!("{title} covers {}", text::list(&domains));
    match &unmanaged.hook {
        HookStatus::NotInPath { config, miss } => path_miss::finding(&title, config, miss, host),
        HookStatus::Installed { .. } => DoctorFinding::warn(
            Subject::Hook,
            format!("{covers} and has a hook, but was never deployed"),
            format!("run `edgecert --lineage {}`", shell_word(&title)),
        ),
        HookStatus::WrongHook(wrong) => wrong_hook(wrong),
        HookStatus::Broken { config } => {
            let config = text::path(config);
            fail(format!("{covers}, but its hook in {config} does not exist or is not executable"), REPAIR)
        }
        HookStatus::NotDeploying { .. } | HookStatus::NotInstalled { .. } | HookStatus::Unknown
            if covered_by_others =>
        {
            DoctorFinding::warn(
                Subject::Hook,
                format!("{covers}, as another lineage does, and has no hook"),
                "ignore it, or delete the lineage that is not needed",
            )
        }
        HookStatus::NotDeploying { config, remedy } => {
            let config = text::path(config);
            fail(format!("{covers}, but its hook in {config} does not deploy it"), remedy)
        }
        HookStatus::NotInstalled { remedy, .. } => fail(format!("{covers}, but has no hook"), remedy),
        HookStatus::Unknown => fail(
            format!("{covers}, but was never deployed and is not configured"),
            "call edgecert from the client's hook (see the README), or name the lineage in a [[lineage]] of the configuration",
        ),
    }
}

fn fail(detail: String, remedy: impl Into<String>) -> DoctorFinding {
    DoctorFinding::fail(Subject::Hook, ErrorKind::Config, detail, remedy)
}
