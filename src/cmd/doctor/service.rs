//! Lists an account once, and checks connection, TLS, API key and clock from the responses.

use std::rc::Rc;
use std::sync::Arc;

use time::Duration;

use super::finding::{DoctorFinding, Subject};
use crate::api::{AttemptError, Listing, RequestError};
use crate::clock::Deadline;
use crate::deploy::{AccountSnapshot, ClientCache};
use crate::error::{Diagnostic as _, ErrorKind};
use crate::plan::IndexedListing;
use crate::secret::Redactor;
use crate::settings::Settings;
use crate::text::{count, humanize};

/// An account that lineages are deployed to.
pub(super) struct Account {
    /// Tells it from the account of the run, which has none.
    pub(super) name: Option<String>,
    pub(super) settings: Arc<Settings>,
    pub(super) clients: ClientCache,
    /// `None`: it could not be listed.
    pub(super) snapshot: Option<AccountSnapshot>,
}

/// Limit for each request; low, because a person is waiting for the report.
const MAX_ATTEMPTS: u32 = 2;

/// A greater difference makes new certificates look not yet valid.
const MAX_CLOCK_SKEW: Duration = Duration::MINUTE;

impl Account {
    /// Lists the account. Without an API key, an empty one is sent.
    pub(super) async fn list(&mut self) -> Vec<DoctorFinding> {
        let deadline = Deadline::after(self.settings.timeout);
        let client = match self.clients.client(&self.settings, Redactor::default(), deadline) {
            Ok(client) => client.with_max_attempts(MAX_ATTEMPTS),
            Err(error) => return vec![self.named(Subject::Tls.failed(error))],
        };
        let mut findings = match client.listing().await {
            Ok(listing) => self.listed(listing),
            // Without a key nothing more can be checked.
            Err(RequestError { error: AttemptError::Unauthorized { .. }, .. })
                if self.settings.api_key.expose().is_empty() =>
            {
                vec![Subject::Service.ok("reachable; requires an API key")]
            }
            Err(error) => vec![request_failed(&error.error)],
        };
        findings.extend(client.skew.get().map(check_clock));
        findings.into_iter().map(|finding| self.named(finding)).collect()
    }

    fn listed(&mut self, listing: Listing) -> Vec<DoctorFinding> {
        let mut findings: Vec<_> =
            listing.gaps().map(|gap| Subject::Service.failed(gap.diagnose())).collect();
        if findings.is_empty() {
            let (sites, records) =
                (count(listing.sites.items.len(), "site"), count(listing.records.items.len(), "certificate"));
            findings.push(Subject::Service.ok(format!("reachable; {sites} and {records}")));
        }
        findings.push(Subject::ApiKey.ok("accepted by the service"));
        let (listing, deployments) = (Rc::new(IndexedListing::new(listing)), Rc::default());
        self.snapshot = Some(AccountSnapshot { listing, deployments });
        findings
    }

    /// Puts its name before a finding about it.
    pub(super) fn named(&self, finding: DoctorFinding) -> DoctorFinding {
        let Some(name) = &self.name else { return finding };
        DoctorFinding { detail: format!("{name}: {}", finding.detail), ..finding }
    }
}

fn request_failed(error: &AttemptError) -> DoctorFinding {
    use AttemptError as E;
    let known = error.diagnose();
    let subject = match known.kind() {
        ErrorKind::Config => Subject::Tls,
        ErrorKind::Denied => Subject::ApiKey,
        _ => Subject::Service,
    };
    subject.failed(match error {
        E::NoResponse { .. } => known.hint("check the base URL, DNS, routes, firewall and proxy"),
        E::Refused { .. } | E::NotOk { .. } => known.hint("see the message of the service"),
        _ => known,
    })
}

/// Compares the clock of this host with the dates of the responses.
fn check_clock(skew: Duration) -> DoctorFinding {
    if skew.abs() <= MAX_CLOCK_SKEW {
        return Subject::Clock.ok("within a minute of the service's");
    }
    let direction = if skew.is_positive() { "ahead of" } else { "behind" };
    Subject::Clock.fail(
        format!("this host's clock is {} {direction} the service's", humanize(skew)),
        "synchronize it with NTP, for example with `timedatectl set-ntp true`",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    #[test]
    fn clock_may_be_off_by_a_minute() {
        let rows = [
            (0, Status::Ok, "within a minute of the service's"),
            (60, Status::Ok, "within a minute of the service's"),
            (-60, Status::Ok, "within a minute of the service's"),
            (61, Status::Fail, "this host's clock is 61 seconds ahead of the service's"),
            (-61, Status::Fail, "this host's clock is 61 seconds behind the service's"),
            (-10_000, Status::Fail, "this host's clock is 2 hours behind the service's"),
        ];
        for (seconds, status, detail) in rows {
            let finding = check_clock(Duration::seconds(seconds));
            assert_eq!((finding.status, finding.detail.as_str()), (status, detail));
        }
    }
}
