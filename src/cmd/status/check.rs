//! Judges the status of all lineages, for monitoring.

use time::{Duration, OffsetDateTime};

use super::gauge::{Gauge, Quantity};
use super::lineage_status::{DiskStatus, EdgeOutcome, LeafAge, LineageStatus, SiteStatus};
use super::sync_check;
use super::thresholds::Thresholds;
use super::verdict::{Alert, CheckVerdict, Level, Measurement};
use crate::error::ErrorKind;
use crate::state::{LastSync, RunResult, StateError};
use crate::text::{count, humanize, rfc3339, sanitize};

/// The inputs of the verdict.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) lineages: &'a [LineageStatus],
    /// Each becomes an alert.
    pub(super) state_errors: &'a [StateError],
    pub(super) last_sync: &'a LastSync,
}

/// Evaluates the lineages and the last `sync`. Without any lineage, the last `sync` is ignored, because its alert would
/// hide that nothing is known.
pub(super) fn evaluate(subject: Subject<'_>, thresholds: &Thresholds, now: OffsetDateTime) -> CheckVerdict {
    let Subject { lineages, state_errors, last_sync } = subject;
    let mut alerts: Vec<Alert> =
        state_errors.iter().map(|error| state_alert(error, thresholds, now)).collect();
    alerts.extend(lineages.iter().flat_map(|lineage| alerts_of(lineage, thresholds, now)));
    let mut measurements: Vec<Measurement> =
        lineages.iter().flat_map(|lineage| measurements(lineage, thresholds, now)).collect();
    if !lineages.is_empty() {
        let is_pending = lineages.iter().any(|lineage| pending_alert(lineage, thresholds, now).is_some());
        let (age, found) = sync_check::evaluate(last_sync, lineages, thresholds, is_pending, now);
        alerts.extend(found);
        measurements.extend(age.map(|gauge| Measurement { gauge, lineage: None, site: None }));
    }
    let pending = lineages.iter().filter(|lineage| lineage.pending_since.is_some()).count();
    let worst = |quantity| worst(&measurements, quantity);
    let lag = worst(Quantity::Lag).unwrap_or_else(|| thresholds.unknown_lag(Duration::ZERO));
    let left = worst(Quantity::TimeLeft);
    let gauges = [Some(lag), left, worst(Quantity::SyncAge)].into_iter().flatten();
    let performance_data = gauges
        .fold(format!("pending={pending};;;0"), |data, gauge| format!("{data} {}", gauge.performance_data()));
    let summary = summary(lineages.len(), pending, left);
    let mut verdict = CheckVerdict { alerts, summary, performance_data, measurements };
    verdict.sort();
    verdict
}

/// The lag of a lineage, and the time left of the leaf of each site.
fn measurements(lineage: &LineageStatus, thresholds: &Thresholds, now: OffsetDateTime) -> Vec<Measurement> {
    if lineage.is_superseded() {
        return Vec::new();
    }
    let measurement = |gauge, site| Measurement { gauge, lineage: Some(lineage.name.clone()), site };
    let lag = lineage.known_lag(now).map(|lag| measurement(thresholds.lag(lag, lineage), None));
    let left =
        |site: &SiteStatus| Some(measurement(time_left(site, thresholds, now)?, Some(site.domain.clone())));
    lag.into_iter().chain(lineage.sites.iter().filter_map(left)).collect()
}

/// The gauge that is nearest to its thresholds, or farthest beyond them.
fn worst(measurements: &[Measurement], quantity: Quantity) -> Option<Gauge> {
    let gauges = measurements.iter().map(|measured| measured.gauge);
    gauges.filter(|gauge| gauge.quantity == quantity).max_by(Gauge::compare)
}

/// The alert for a state file. A damaged one may hide a deployment that has been pending since the file was written.
fn state_alert(error: &StateError, thresholds: &Thresholds, now: OffsetDateTime) -> Alert {
    let written_at = error.damaged().filter(|file| file.is_pending).and_then(|file| file.written_at);
    let level = match written_at {
        Some(at) => thresholds.unknown_lag(now - at).level().max(Level::Warning),
        None if error.is_invalid() => Level::Warning,
        // It may hide anything, so there is no level to derive.
        None => Level::Unknown,
    };
    Alert::from_message(level, &error.to_string())
}

fn alerts_of(lineage: &LineageStatus, thresholds: &Thresholds, now: OffsetDateTime) -> Vec<Alert> {
    if lineage.is_superseded() {
        return Vec::new();
    }
    let mut alerts: Vec<Alert> = pending_alert(lineage, thresholds, now).into_iter().collect();
    alerts.extend(pending_expiry_alert(lineage, now));
    alerts.extend(expiry_alert(lineage, thresholds, now));
    alerts.extend(disk_alert(lineage));
    // While a deployment is pending, the edges serve the previous leaf, and the lag is judged instead.
    let sites = lineage.sites.iter().filter(|_| lineage.pending_since.is_none());
    alerts.extend(sites.filter_map(stale_edge).map(|text| warning(lineage, &text)));
    alerts.extend(lineage.sites.iter().filter_map(|site| unchecked_edge(lineage, site)));
    alerts
}

fn warning(lineage: &LineageStatus, text: &str) -> Alert {
    Alert::new(Level::Warning, Some(&lineage.name), text)
}

/// The alert for a deployment that has been pending for too long or since a time in the future, or that waiting will
/// not finish because the service's responses are unintelligible.
fn pending_alert(lineage: &LineageStatus, thresholds: &Thresholds, now: OffsetDateTime) -> Option<Alert> {
    if let Some(fault) = lineage.clock_fault(now) {
        let alert = Alert::from_message(Level::Warning, &fault);
        return Some(Alert { lineage: Some(lineage.name.clone()), ..alert });
    }
    let gauge = thresholds.lag(lineage.lag(now)?, lineage);
    let is_unintelligible = |result: &RunResult| result.exit_code == ErrorKind::Protocol.exit_code();
    let level = match &lineage.last_error {
        Some(result) if is_unintelligible(result) => gauge.level().max(Level::Warning),
        _ => Some(gauge.level()).filter(|level| *level > Level::Ok)?,
    };
    let reason = match (&lineage.last_error, &lineage.disk) {
        (Some(result), _) => result.error.as_deref().map(sanitize),
        (None, DiskStatus::Leaf { age: LeafAge::Newer, .. }) => {
            Some("no run has seen this certificate".into())
        }
        (None, _) => Some("no run has finished".into()),
    };
    let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let text = format!("pending for {}", humanize(gauge.value));
    Some(Alert::new(level, Some(&lineage.name), &text).with_detail(&reason).with_urgency(gauge.urgency()))
}

/// The alert for a certificate that has expired before it was deployed.
fn pending_expiry_alert(lineage: &LineageStatus, now: OffsetDateTime) -> Option<Alert> {
    let until = lineage.pending_leaf.as_ref().map(|leaf| leaf.not_after).filter(|until| *until < now)?;
    let text = format!("the pending certificate expired at {}", rfc3339(until));
    Some(Alert::new(Level::Critical, Some(&lineage.name), &text).with_urgency(f64::INFINITY))
}

/// The alert for the site whose leaf is nearest to its thresholds, or farthest beyond them.
fn expiry_alert(lineage: &LineageStatus, thresholds: &Thresholds, now: OffsetDateTime) -> Option<Alert> {
    let gauges = lineage.sites.iter().filter_map(|site| Some((time_left(site, thresholds, now)?, site)));
    // `max_by` takes the last one of equals, and the first site is expected.
    let (gauge, site) = gauges.rev().max_by(|(a, _), (b, _)| a.compare(b))?;
    let level = Some(gauge.level()).filter(|level| *level > Level::Ok)?;
    let (domain, left, at) = (&site.domain, humanize(gauge.value), rfc3339(now + gauge.value));
    // The address may have been unreachable since.
    let is_deployed = site.expiry() == Some(now + gauge.value);
    let seen = if is_deployed { "" } else { ", as its edge was last seen" };
    let (text, detail) = match () {
        () if gauge.value.is_zero() => {
            ("no valid certificate served".to_owned(), format!(" ({domain}{seen})"))
        }
        () if gauge.is_expired() => {
            (format!("certificate expired {left} ago"), format!(" ({domain}, at {at}{seen})"))
        }
        () => (format!("certificate expires in {left}"), format!(" ({domain}, at {at}{seen})")),
    };
    let alert = Alert::new(level, Some(&lineage.name), &text).with_detail(&detail);
    Some(alert.with_urgency(gauge.urgency()))
}

/// The time left of the deployed leaf, or of a leaf that an edge address was last seen to serve if that expires
/// earlier; `None` if unknown.
fn time_left(site: &SiteStatus, thresholds: &Thresholds, now: OffsetDateTime) -> Option<Gauge> {
    let leaf = site.served_leaf()?;
    let deployed = leaf.not_after - now;
    let left = site.seen.slack(now).map_or(deployed, |seen| seen.min(deployed));
    let seen = site.seen_leaf().filter(|seen| seen.not_after < leaf.not_after);
    Some(thresholds.time_left(left, seen.unwrap_or(leaf)))
}

/// Describes an edge that does not serve the leaf, according to handshakes just now or in an earlier run.
fn stale_edge(site: &SiteStatus) -> Option<String> {
    let stale = site.edge.as_ref().and_then(|edge| edge.stale.first());
    let was_stale = || {
        (site.serves_leaf == Some(false)).then_some("an edge address was last seen without this certificate")
    };
    Some(format!("{}: {}", site.domain, stale.map(String::as_str).or_else(was_stale)?))
}

/// The alert for an edge that `--verify` could not check at any address.
fn unchecked_edge(lineage: &LineageStatus, site: &SiteStatus) -> Option<Alert> {
    let edge =
        site.edge.as_ref().filter(|edge| edge.outcome == EdgeOutcome::Unreachable && edge.served == 0)?;
    let text = format!("no edge address of {} could be checked", site.domain);
    let reason = edge.unreachable.first().map(|reason| format!(": {reason}")).unwrap_or_default();
    Some(Alert::new(Level::Unknown, Some(&lineage.name), &text).with_detail(&reason))
}

/// The alert for files that are missing although needed, or cannot be read.
fn disk_alert(lineage: &LineageStatus) -> Option<Alert> {
    let (text, detail) = match &lineage.disk {
        DiskStatus::Missing if lineage.is_needed() => {
            ("certificate is missing but still needed", lineage.cert.as_ref())
        }
        DiskStatus::Unreadable(reason) => ("certificate cannot be read", Some(reason)),
        DiskStatus::Leaf { .. } | DiskStatus::Missing => return None,
    };
    let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
    Some(warning(lineage, text).with_detail(&detail))
}

fn summary(lineages: usize, pending: usize, left: Option<Gauge>) -> String {
    let pending = match pending {
        0 => "nothing pending".to_owned(),
        pending => format!("{pending} pending within the limit"),
    };
    let left = left.map(|gauge| format!(", {} left", humanize(gauge.value))).unwrap_or_default();
    format!("{}, {pending}{left}", count(lineages, "lineage"))
}

#[cfg(test)]
mod tests;
