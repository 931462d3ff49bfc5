//! One listing of the account, and what it says about connection, TLS, API key and clock.

use time::Duration;

use super::finding::{Finding, Subject};
use crate::api::{AttemptError, Client, ClientConfig, List, Record, RequestError, Site};
use crate::clock::Deadline;
use crate::error::{CommandError, Diagnostic as _, ErrorKind};
use crate::runtime::Runtime;
use crate::secret::Redactor;
use crate::settings::Settings;
use crate::text::{count, humanize};

/// What came of asking the service.
pub(super) struct Asked {
    pub(super) account: Result<Account, RequestError>,
    /// How far this host's clock is ahead; `None`: no report named its date.
    skew: Option<Duration>,
    /// What was strange about the answers.
    pub(super) notes: Vec<String>,
}

/// What the account has.
pub(super) struct Account {
    pub(super) records: Vec<Record>,
    pub(super) sites: List<Site>,
}

/// A person waits for the report: what fails is tried once again, not until the deadline.
const ATTEMPTS: u32 = 2;

/// A certificate is not valid a minute early for everybody.
const MAX_SKEW: Duration = Duration::MINUTE;

/// Asks for certificates and sites.
pub(super) fn ask(settings: &Settings) -> Result<Asked, CommandError> {
    let mut redactor = Redactor::default();
    redactor.hide(&settings.api_key);
    let (access, deadline) = (ClientConfig::new(settings)?, Deadline::after(settings.timeout));
    let client = Client::new(&access, redactor, deadline)?.with_max_attempts(ATTEMPTS);
    let account = Runtime::new()?.block_on(async {
        Ok(Account { records: client.records().await?.items, sites: client.sites().await? })
    })?;
    Ok(Asked { account, skew: client.skew(), notes: client.take_warnings() })
}

/// What the answers say, except about the account.
pub(super) fn findings(asked: &Asked, has_key: bool) -> Vec<Finding> {
    let mut findings = match &asked.account {
        Ok(account) => vec![
            Finding::ok(Subject::Service, contents(account)),
            Finding::ok(Subject::ApiKey, "the service accepts it"),
        ],
        // That much can be seen without a key.
        Err(RequestError { error: AttemptError::Unauthorized { .. }, .. }) if !has_key => {
            vec![Finding::ok(Subject::Service, "it answers, and wants an API key")]
        }
        Err(failed) => vec![failure(&failed.error)],
    };
    findings.extend(asked.skew.map(clock));
    findings
}

fn contents(account: &Account) -> String {
    let (sites, records) = (account.sites.items.len(), account.records.len());
    format!("it answers: {} and {}", count(sites, "site"), count(records, "certificate"))
}

fn failure(error: &AttemptError) -> Finding {
    let (kind, hint) = (error.kind(), error.hint());
    let hint = hint.unwrap_or_else(|| "see what it says".into());
    match error {
        AttemptError::Untrusted { reason, .. } => {
            let clock = if reason.contains("valid") || reason.contains("expired") {
                "; look at this host's clock, too"
            } else {
                ""
            };
            Finding::fail(Subject::Tls, kind, error.to_string(), format!("{hint}{clock}"))
        }
        AttemptError::TlsFailed { .. } => Finding::fail(Subject::Tls, kind, error.to_string(), hint),
        AttemptError::Unauthorized { .. } => Finding::fail(Subject::ApiKey, kind, error.to_string(), hint),
        AttemptError::Unreachable { .. }
        | AttemptError::TimedOut { .. }
        | AttemptError::ConnectionClosed { .. } => {
            let remedy = "check the base URL, and this host's way to it: DNS, routes, firewall, proxy";
            Finding::fail(Subject::Service, kind, error.to_string(), remedy)
        }
        AttemptError::Unavailable { .. } => {
            let remedy = "ask again later; edgecert repeats a deployment by itself";
            Finding::fail(Subject::Service, kind, error.to_string(), remedy)
        }
        _ => Finding::fail(Subject::Service, kind, error.to_string(), hint),
    }
}

/// What the service's date says about this host's clock, which is ahead by so much.
fn clock(skew: Duration) -> Finding {
    if skew.abs() <= MAX_SKEW {
        return Finding::ok(Subject::Clock, "within a minute of the service's");
    }
    let direction = if skew.is_positive() { "ahead of" } else { "behind" };
    Finding::fail(
        Subject::Clock,
        ErrorKind::Config,
        format!("this host's clock is {} {direction} the service's", humanize(skew)),
        "set it by NTP, for example: timedatectl set-ntp true",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Status;

    #[test]
    fn a_clock_may_be_off_by_a_minute() {
        let rows = [
            (0, Status::Ok, "within a minute of the service's"),
            (60, Status::Ok, "within a minute of the service's"),
            (-60, Status::Ok, "within a minute of the service's"),
            (61, Status::Fail, "this host's clock is 61 seconds ahead of the service's"),
            (-61, Status::Fail, "this host's clock is 61 seconds behind the service's"),
            (-10_000, Status::Fail, "this host's clock is 2 hours behind the service's"),
        ];
        for (seconds, status, detail) in rows {
            let found = clock(Duration::seconds(seconds));
            assert_eq!((found.status, found.detail.as_str()), (status, detail));
        }
    }
}
