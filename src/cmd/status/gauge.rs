//! What `status --check` measures: a duration, and the limits that apply to it.

use std::cmp::Ordering;

use serde::Serialize;
use time::{Duration, OffsetDateTime};

use super::fleet::{Fleet, LineageStatus, SiteStatus, Subject};
use super::problem::Level;
use crate::cli::{LAG, MonitoringArgs, SYNC_AGE, TIME_LEFT, Threshold};
use crate::leaf::Leaf;

/// A measured duration with its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gauge<'a> {
    pub(super) quantity: Quantity,
    pub(super) subject: Subject<'a>,
    pub(super) value: Duration,
    pub(super) limits: Limits,
}

/// The measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Quantity {
    /// Alerts if below its limits; the other quantities alert if above them.
    TimeLeft,
    Lag,
    SyncAge,
}

/// The limits of a duration; `None` disables the alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) warning: Option<Duration>,
    pub(super) critical: Option<Duration>,
}

/// A fleet at a point in time, to be judged by thresholds. `problem` adds what is wrong with it.
#[derive(Clone, Copy)]
pub(super) struct Assessment<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) thresholds: &'a MonitoringArgs,
    pub(super) now: OffsetDateTime,
}

impl<'a> Assessment<'a> {
    /// The lag of each lineage, the time left of the leaf of each site, and the time since the last `sync`.
    pub(super) fn gauges(self) -> Vec<Gauge<'a>> {
        let mut gauges = Vec::new();
        for lineage in self.lineages() {
            gauges.extend(self.lag(lineage));
            gauges.extend(lineage.sites.iter().filter_map(|site| self.time_left(lineage, site)));
        }
        gauges.extend(self.sync_age());
        gauges
    }

    /// The lineages that count: what is superseded may expire.
    pub(super) fn lineages(self) -> impl Iterator<Item = &'a LineageStatus> {
        self.fleet.lineages.iter().filter(|lineage| !lineage.is_superseded())
    }

    /// How long a lineage has been pending, zero if it is not; `None` if the clock was or is wrong.
    pub(super) fn lag(self, lineage: &'a LineageStatus) -> Option<Gauge<'a>> {
        let (subject, value) = (Subject::Lineage(&lineage.name), lineage.lag(self.now)?);
        Some(self.gauge(Quantity::Lag, subject, value, lineage.lifetime()))
    }

    /// The time left of the deployed leaf, or of a leaf that an edge address was last seen to serve if that expires
    /// earlier or nothing was deployed; `None` if unknown.
    pub(super) fn time_left(self, lineage: &'a LineageStatus, site: &'a SiteStatus) -> Option<Gauge<'a>> {
        let served = site.served_leaf();
        let deployed = served.map(|leaf| leaf.not_after - self.now);
        // Before the first deployment an address may refuse the name.
        let is_relevant = served.is_some() || site.seen_leaf().is_some();
        let seen = site.last.edge.slack(self.now).filter(|_| is_relevant);
        let value = deployed.into_iter().chain(seen).min()?;
        let leaf = served.into_iter().chain(site.seen_leaf()).min_by_key(|leaf| leaf.not_after);
        let subject = Subject::Site(&lineage.name, site.last.domain.spelled());
        Some(self.gauge(Quantity::TimeLeft, subject, value, leaf.and_then(Leaf::lifetime)))
    }

    /// The time since the last `sync`. If it never ran, the time since the least recent of the lineages' latest runs;
    /// then it is never critical. `None` if unknown, or if nothing was deployed yet.
    pub(super) fn sync_age(self) -> Option<Gauge<'a>> {
        let last = &self.fleet.last_sync;
        match &last.record {
            _ if self.fleet.lineages.is_empty() => None,
            Some(record) => Some(self.since(record.ended_at)),
            None if !last.faults.is_empty() => None,
            None => {
                let begun = self.fleet.lineages.iter().filter_map(|lineage| lineage.begun_at).min()?;
                let age = self.since(begun);
                let warning = age.limits.warning.or(age.limits.critical);
                Some(Gauge { limits: Limits { warning, critical: None }, ..age })
            }
        }
    }

    /// The time since `sync` ended or began to fail, zero if the clock was set back since.
    pub(super) fn since(self, since: OffsetDateTime) -> Gauge<'a> {
        self.gauge(Quantity::SyncAge, Subject::Sync, (self.now - since).max(Duration::ZERO), None)
    }

    /// A value with its limits, given the lifetime of the certificate; `None`: it is unknown.
    pub(super) fn gauge(
        self,
        quantity: Quantity,
        subject: Subject<'a>,
        value: Duration,
        lifetime: Option<Duration>,
    ) -> Gauge<'a> {
        Gauge { quantity, subject, value, limits: self.thresholds.limits(quantity, lifetime) }
    }
}

impl Gauge<'_> {
    pub(super) fn level(&self) -> Level {
        let is_exceeded = |limit: &Duration| match self.quantity {
            Quantity::TimeLeft => self.value < *limit,
            Quantity::Lag | Quantity::SyncAge => self.value > *limit,
        };
        match self.limits {
            _ if self.is_expired() => Level::Critical,
            Limits { critical: Some(limit), .. } if is_exceeded(&limit) => Level::Critical,
            Limits { warning: Some(limit), .. } if is_exceeded(&limit) => Level::Warning,
            _ => Level::Ok,
        }
    }

    pub(super) fn is_expired(&self) -> bool {
        self.quantity == Quantity::TimeLeft && self.value.is_negative()
    }

    /// Orders alerts of the same level: 1 at the first limit, higher beyond it.
    pub(super) fn urgency(&self) -> f64 {
        let limit = self.limits.warning.or(self.limits.critical).unwrap_or(Duration::MAX);
        // No value is zero: where nothing is pending, the limits still tell which is nearer.
        let [value, limit] =
            [self.value, limit].map(|duration| duration.as_seconds_f64().max(f64::MIN_POSITIVE));
        if self.quantity == Quantity::TimeLeft { limit / value } else { value / limit }
    }

    /// Compares gauges of the same quantity: the greater one is farther beyond its limits, or nearer to them.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let by_urgency = || self.urgency().total_cmp(&other.urgency());
        // Both expired.
        let by_value = || other.value.cmp(&self.value);
        self.level().cmp(&other.level()).then_with(by_urgency).then_with(by_value)
    }

    /// Performance data: `label=value[unit];warning;critical;min`. The threshold `N:` alerts below N.
    pub(super) fn performance_data(&self) -> String {
        let seconds = |duration: Duration| duration.whole_seconds().to_string();
        let (label, number, below, end): (_, fn(Duration) -> String, _, _) = match self.quantity {
            // No minimum, because the value is negative after the expiry.
            Quantity::TimeLeft => ("days_left", days, ":", ""),
            Quantity::Lag => ("lag", seconds, "", ";0"),
            Quantity::SyncAge => ("sync_age", seconds, "", ";0"),
        };
        let limit = |limit: Option<Duration>| limit.map(|limit| number(limit) + below).unwrap_or_default();
        let unit = if self.quantity == Quantity::TimeLeft { "" } else { "s" };
        let (value, Limits { warning, critical }) = (number(self.value), self.limits);
        format!("{label}={value}{unit};{};{}{end}", limit(warning), limit(critical))
    }
}

impl MonitoringArgs {
    /// The limits on a quantity. They depend on the lifetime of the certificate, so that one check fits 6-day and 200-day
    /// certificates; one that was not given has its default.
    fn limits(&self, quantity: Quantity, lifetime: Option<Duration>) -> Limits {
        let ([warning, critical], [default_warning, default_critical]) = match quantity {
            Quantity::TimeLeft => ([self.warning, self.critical], TIME_LEFT),
            Quantity::Lag => ([self.lag_warning, self.lag_critical], LAG),
            Quantity::SyncAge => ([self.sync_warning, self.sync_critical], SYNC_AGE.map(Threshold::Fixed)),
        };
        let limit = |given: Option<Threshold>, default: Threshold| match given {
            Some(Threshold::Off) => None,
            // A share of an unknown lifetime is unknown, too.
            given => given.and_then(|threshold| threshold.of(lifetime)).or(default.of(lifetime)),
        };
        Limits { warning: limit(warning, default_warning), critical: limit(critical, default_critical) }
    }

    /// Whether both limits on the last `sync` are off.
    pub(super) fn ignore_sync(&self) -> bool {
        self.limits(Quantity::SyncAge, None) == Limits { warning: None, critical: None }
    }
}

/// Formats days with at most four decimals, a resolution of about ten seconds.
fn days(duration: Duration) -> String {
    let days = format!("{:.4}", duration / Duration::DAY);
    let days = days.trim_end_matches('0').trim_end_matches('.');
    if days == "-0" { "0".into() } else { days.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gauge(quantity: Quantity, value: i64, warning: i64, critical: i64) -> Gauge<'static> {
        let limit = |seconds| Some(Duration::seconds(seconds));
        let limits = Limits { warning: limit(warning), critical: limit(critical) };
        Gauge { quantity, subject: Subject::Host, value: Duration::seconds(value), limits }
    }

    const HOUR: i64 = 3_600;
    const DAY: i64 = 24 * HOUR;

    fn seconds(limits: Limits) -> [Option<i64>; 2] {
        [limits.warning, limits.critical].map(|limit| limit.map(Duration::whole_seconds))
    }

    #[test]
    fn limits_follow_the_lifetime() {
        let thresholds = MonitoringArgs::default();
        // The lifetime in days, and the limits on the time left and on the lag.
        let rows = [
            (Some(6), [36 * HOUR, 14 * HOUR + 24 * 60], [3 * HOUR + 36 * 60, 7 * HOUR + 12 * 60]),
            (Some(45), [11 * DAY + 6 * HOUR, 3 * DAY], [6 * HOUR, DAY]),
            (Some(90), [14 * DAY, 3 * DAY], [6 * HOUR, DAY]),
            (Some(200), [14 * DAY, 3 * DAY], [6 * HOUR, DAY]),
            (None, [14 * DAY, 3 * DAY], [6 * HOUR, DAY]),
        ];
        for (days, time_left, lag) in rows {
            let lifetime = days.map(Duration::days);
            assert_eq!(
                seconds(thresholds.limits(Quantity::TimeLeft, lifetime)),
                time_left.map(Some),
                "{days:?}"
            );
            assert_eq!(seconds(thresholds.limits(Quantity::Lag, lifetime)), lag.map(Some), "{days:?}");
        }
    }

    #[test]
    fn sync_limits_can_be_off() {
        let (off, now) = (Some(Threshold::Off), Some(Threshold::Fixed(Duration::ZERO)));
        let rows = [
            ([None, None], [Some(3 * HOUR), Some(DAY)], false),
            ([off, None], [None, Some(DAY)], false),
            ([None, off], [Some(3 * HOUR), None], false),
            ([off, off], [None, None], true),
            ([now, None], [Some(0), Some(DAY)], false),
        ];
        for ([sync_warning, sync_critical], expected, is_ignored) in rows {
            let thresholds = MonitoringArgs { sync_warning, sync_critical, ..MonitoringArgs::default() };
            assert_eq!(seconds(thresholds.limits(Quantity::SyncAge, None)), expected, "{thresholds:?}");
            assert_eq!(thresholds.ignore_sync(), is_ignored, "{thresholds:?}");
        }
    }

    #[test]
    fn override_replaces_the_default() {
        let thresholds = MonitoringArgs {
            warning: Some(Threshold::Fixed(Duration::days(14))),
            lag_critical: Some(Threshold::Share(0.5)),
            ..MonitoringArgs::default()
        };
        let lifetime = Some(Duration::days(6));
        let limits = [14 * DAY, 14 * HOUR + 24 * 60].map(Some);
        assert_eq!(
            seconds(thresholds.limits(Quantity::TimeLeft, lifetime)),
            limits,
            "warns from its first minute, as asked for"
        );
        assert_eq!(
            seconds(thresholds.limits(Quantity::Lag, lifetime)),
            [3 * HOUR + 36 * 60, 3 * DAY].map(Some)
        );
        // Half of an unknown lifetime: the default.
        assert_eq!(seconds(thresholds.limits(Quantity::Lag, None)), [6 * HOUR, DAY].map(Some));
    }

    #[test]
    fn performance_data_follow_the_guidelines() {
        let off = Limits { warning: None, critical: Some(Duration::DAY) };
        let rows = [
            (gauge(Quantity::Lag, 259_200, 21_600, 86_400), "lag=259200s;21600;86400;0"),
            (gauge(Quantity::TimeLeft, 512_352, 129_600, 51_840), "days_left=5.93;1.5:;0.6:"),
            (gauge(Quantity::TimeLeft, -86_401, 1_209_600, 90), "days_left=-1;14:;0.001:"),
            (gauge(Quantity::TimeLeft, -1, 0, 0), "days_left=0;0:;0:"),
            (Gauge { limits: off, ..gauge(Quantity::SyncAge, 60, 0, 0) }, "sync_age=60s;;86400;0"),
        ];
        for (gauge, expected) in rows {
            assert_eq!(gauge.performance_data(), expected);
        }
    }

    #[test]
    fn gauge_beyond_its_limit_is_greater() {
        let left = |value, warning| gauge(Quantity::TimeLeft, value, warning, warning / 4);
        let lag = |value, warning| gauge(Quantity::Lag, value, warning, warning * 4);
        // Each is greater than the one before.
        let rows = [
            vec![
                left(900, 400),
                left(500, 400),
                left(399, 400),
                left(30, 40),
                left(99, 400),
                left(-1, 40),
                left(-2, 400),
            ],
            vec![
                lag(0, 400),
                lag(0, 40),
                lag(200, 400),
                lag(39, 40),
                lag(500, 400),
                lag(60, 40),
                lag(161, 40),
            ],
        ];
        for gauges in rows {
            for pair in gauges.windows(2) {
                assert_eq!(pair[1].compare(&pair[0]), Ordering::Greater, "{pair:?}");
            }
        }
    }
}
