//! What there is to say about the hooks of lineages: those that edgecert looks after, and those that it does not know.

use super::finding::{Finding, Subject};
use super::hook_detection::{self, Attachment};
use super::host::Host;
use super::lineages::Lineage;
use crate::api::Site;
use crate::error::{ErrorKind, shell_word};
use crate::source::Client;
use crate::text;

/// Whether the client of a lineage that edgecert looks after calls it.
pub(super) fn of_known(lineage: &Lineage, host: &Host<'_>) -> Finding {
    let title = lineage.title();
    match hook_detection::look(&lineage.source, host) {
        Attachment::Calls { place } => {
            Finding::ok(Subject::Hook, format!("{} calls edgecert for {title}", text::path(&place)))
        }
        Attachment::CallsByName { place } => Finding::warn(
            Subject::Hook,
            format!(
                "{} calls edgecert for {title} by its name, and it is in none of the usual directories",
                text::path(&place)
            ),
            "name it with its whole path, or link it into /usr/local/bin",
        ),
        Attachment::CallsNothing { place } => fail(
            format!("the hook for {title} in {} is not there, or cannot be started", text::path(&place)),
            "install edgecert there, or attach it where it is",
        ),
        Attachment::Missing { place, hook_detection } => {
            fail(format!("{} does not call edgecert for {title}", text::path(&place)), hook_detection)
        }
        Attachment::Unseen => unseen(lineage.source.client, &title),
    }
}

/// A client that keeps no record of hooks. What changes there is found by `edgecert sync` at the latest.
fn unseen(client: Client, title: &str) -> Finding {
    match client {
        Client::Kubernetes | Client::Files => {
            let detail = format!("{title} has no hook to look at; `edgecert sync` deploys what changes");
            Finding::ok(Subject::Hook, detail)
        }
        client => Finding::warn(
            Subject::Hook,
            format!("no record of {} tells whether it calls edgecert for {title}", client),
            "see \"Attach it to your ACME client\" in the README",
        ),
    }
}

/// A lineage that was never deployed and stands in no configuration, although it covers sites: those of which `alone` are
/// covered by no other.
pub(super) fn of_stranger(lineage: &Lineage, sites: &[&Site], alone: usize, host: &Host<'_>) -> Finding {
    let title = lineage.title();
    let domains: Vec<String> = sites.iter().map(|site| site.domain.to_string()).collect();
    let covers = format!("{title} covers {}", text::list(&domains));
    match hook_detection::look(&lineage.source, host) {
        Attachment::Calls { .. } | Attachment::CallsByName { .. } => Finding::warn(
            Subject::Hook,
            format!("{covers} and has its hook, but was never deployed"),
            format!("edgecert --lineage {}", shell_word(&title)),
        ),
        Attachment::CallsNothing { place } => fail(
            format!("{covers}, but its hook in {} is not there, or cannot be started", text::path(&place)),
            "install edgecert there, or attach it where it is",
        ),
        Attachment::Missing { .. } | Attachment::Unseen if alone == 0 => Finding::warn(
            Subject::Hook,
            format!("{covers}, as another lineage does; it has no hook"),
            "leave it so, or delete the lineage that is not needed",
        ),
        Attachment::Missing { hook_detection, .. } => {
            fail(format!("{covers}, but has no hook"), hook_detection)
        }
        Attachment::Unseen => fail(
            format!("{covers}, but was never deployed and is not configured"),
            "attach edgecert to the client (README), or name the lineage in a [[lineage]] of the configuration",
        ),
    }
}

/// Whether the client calls edgecert, so that this lineage takes part in who wins.
pub(super) fn is_attached(lineage: &Lineage, host: &Host<'_>) -> bool {
    let found = hook_detection::look(&lineage.source, host);
    matches!(found, Attachment::Calls { .. } | Attachment::CallsByName { .. })
}

fn fail(detail: String, remedy: impl Into<String>) -> Finding {
    Finding::fail(Subject::Hook, ErrorKind::Config, detail, remedy)
}
