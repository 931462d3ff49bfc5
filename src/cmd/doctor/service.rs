//! Lists the account once, and checks connection, TLS, API key and clock from the responses.

use time::Duration;

use super::finding::{DoctorFinding, Subject};
use crate::api::{AttemptError, Client, ClientConfig, Listing, RequestError};
use crate::clock::Deadline;
use crate::error::{CommandError, Diagnostic as _, ErrorKind};
use crate::runtime::Runtime;
use crate::secret::Redactor;
use crate::settings::Settings;
use crate::text::{count, humanize};
use crate::trust::TrustStores;

/// The responses of the service.
pub(super) struct ServiceProbe {
    pub(super) account: Result<Listing, RequestError>,
    /// How far this host's clock is ahead; `None`: no response had a date.
    clock_skew: Option<Duration>,
}

/// Limit for each request; low, because a person is waiting for the report.
const MAX_ATTEMPTS: u32 = 2;

/// A greater difference makes new certificates look not yet valid.
const MAX_CLOCK_SKEW: Duration = Duration::MINUTE;

impl ServiceProbe {
    /// Lists records and sites.
    pub(super) fn run(settings: &Settings, stores: &TrustStores) -> Result<Self, CommandError> {
        let mut redactor = Redactor::default();
        redactor.hide(settings.api_key.expose());
        let deadline = Deadline::after(settings.timeout);
        let config = ClientConfig::new(settings, stores, deadline)?;
        let client = Client::new(config, redactor, deadline)?.with_max_attempts(MAX_ATTEMPTS);
        let account = Runtime::new()?.block_on(client.listing());
        Ok(Self { account, clock_skew: client.skew() })
    }

    /// Checks everything but the contents of the account.
    pub(super) fn findings(&self, has_api_key: bool) -> Vec<DoctorFinding> {
        let mut findings = match &self.account {
            Ok(account) => {
                let gaps = account.gaps().map(|gap| DoctorFinding::from_error(Subject::Service, gap));
                let mut findings: Vec<DoctorFinding> = gaps.collect();
                if findings.is_empty() {
                    findings.push(DoctorFinding::ok(Subject::Service, summary(account)));
                }
                findings.push(DoctorFinding::ok(Subject::ApiKey, "accepted by the service"));
                findings
            }
            // Without a key nothing more can be checked.
            Err(RequestError { error: AttemptError::Unauthorized { .. }, .. }) if !has_api_key => {
                vec![DoctorFinding::ok(Subject::Service, "reachable; requires an API key")]
            }
            Err(error) => vec![request_failed(&error.error)],
        };
        findings.extend(self.clock_skew.map(check_clock));
        findings
    }
}

fn summary(account: &Listing) -> String {
    let (sites, records) = (account.sites.len(), account.records.len());
    format!("reachable; {} and {}", count(sites, "site"), count(records, "certificate"))
}

fn request_failed(error: &AttemptError) -> DoctorFinding {
    use AttemptError as E;
    let hint = error.hint().unwrap_or_else(|| "see the message of the service".into());
    let (subject, remedy) = match error {
        E::Untrusted { .. } | E::NotTls { .. } | E::NoCommonTls { .. } => (Subject::Tls, hint),
        E::Unauthorized { .. } => (Subject::ApiKey, hint),
        E::Unreachable { .. } | E::TimedOut { .. } | E::ConnectionClosed { .. } => {
            (Subject::Service, "check the base URL, DNS, routes, firewall and proxy".into())
        }
        E::Unavailable { .. } => {
            (Subject::Service, "try again later; `edgecert sync` retries deployments".into())
        }
        _ => (Subject::Service, hint),
    };
    DoctorFinding::fail(subject, error.kind(), error.to_string(), remedy)
}

/// Compares the clock of this host with the dates of the responses.
fn check_clock(skew: Duration) -> DoctorFinding {
    if skew.abs() <= MAX_CLOCK_SKEW {
        return DoctorFinding::ok(Subject::Clock, "within a minute of the service's");
    }
    let direction = if skew.is_positive() { "ahead of" } else { "behind" };
    DoctorFinding::fail(
        Subject::Clock,
        ErrorKind::Config,
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
