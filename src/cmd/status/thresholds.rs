//! The thresholds of `status --check`. They depend on the lifetime of the certificate, so that one check fits 6-day and
//! 200-day certificates.

use time::Duration;

use super::gauge::{Gauge, Limits, Quantity};
use super::lineage_status::{LineageStatus, lifetime};
use crate::cli::{DefaultThreshold, LAG, MonitoringArgs, SYNC_AGE, SyncThreshold, TIME_LEFT, Threshold};
use crate::leaf::Leaf;

/// The given thresholds, each as warning and critical; `None` stands for the default.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thresholds {
    time_left: [Option<Threshold>; 2],
    lag: [Option<Threshold>; 2],
    sync_age: [Option<SyncThreshold>; 2],
}

impl Thresholds {
    pub(super) fn new(args: &MonitoringArgs) -> Self {
        Self {
            time_left: [args.time_left_warning(), args.critical],
            lag: [args.lag_warning(), args.lag_critical()],
            sync_age: [args.sync_warning, args.sync_critical],
        }
    }

    /// The time left of a deployed leaf.
    pub(super) fn time_left(&self, left: Duration, leaf: &Leaf) -> Gauge {
        let limits = limits(self.time_left, &TIME_LEFT, lifetime(leaf.not_before, leaf.not_after));
        Gauge::new(Quantity::TimeLeft, left, limits)
    }

    /// How long a lineage has been pending; zero if it is not.
    pub(super) fn lag(&self, lag: Duration, lineage: &LineageStatus) -> Gauge {
        let lifetime = lineage.latest_leaf().and_then(|leaf| lifetime(leaf.not_before, leaf.not_after));
        Gauge::new(Quantity::Lag, lag, limits(self.lag, &LAG, lifetime))
    }

    /// How long a lineage may have been pending, if nothing else is known of it.
    pub(super) fn unknown_lag(&self, lag: Duration) -> Gauge {
        Gauge::new(Quantity::Lag, lag, limits(self.lag, &LAG, None))
    }

    /// The time since the last `sync`.
    pub(super) fn sync_age(&self, age: Duration) -> Gauge {
        let limit = |given, default| match given {
            Some(SyncThreshold::Off) => None,
            Some(SyncThreshold::After(duration)) => Some(duration),
            None => Some(default),
        };
        let ([warning, critical], [default_warning, default_critical]) = (self.sync_age, SYNC_AGE);
        let limits =
            Limits { warning: limit(warning, default_warning), critical: limit(critical, default_critical) };
        Gauge::new(Quantity::SyncAge, age, limits)
    }

    /// Whether both limits on the last `sync` are off.
    pub(super) fn ignore_sync(&self) -> bool {
        self.sync_age == [Some(SyncThreshold::Off); 2]
    }
}

/// The thresholds for a certificate with this lifetime.
fn limits(
    [warning, critical]: [Option<Threshold>; 2],
    [default_warning, default_critical]: &[DefaultThreshold; 2],
    lifetime: Option<Duration>,
) -> Limits {
    let limit = |given: Option<Threshold>, default: &DefaultThreshold| {
        // A share of an unknown lifetime is unknown, too.
        given.and_then(|threshold| threshold.of(lifetime)).unwrap_or_else(|| default.of(lifetime))
    };
    Limits {
        warning: Some(limit(warning, default_warning)),
        critical: Some(limit(critical, default_critical)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, deployed, until};
    use super::super::verdict::Level::{self, Critical, Ok, Warning};
    use super::*;
    use crate::leaf::Leaf;

    const HOUR: i64 = 3_600;
    const DAY: i64 = 24 * HOUR;

    /// Lifetime in days, warning and critical threshold in seconds.
    type Row = (i64, i64, i64);

    fn leaf(days: i64) -> Leaf {
        Leaf { not_before: NOW, ..until(NOW + Duration::days(days)) }
    }

    /// A lineage whose leaf has this lifetime.
    fn lineage(days: i64) -> LineageStatus {
        LineageStatus { pending_leaf: Some(leaf(days)), ..deployed("x", 60) }
    }

    /// The levels at these values, in seconds.
    fn levels(gauge: impl Fn(Duration) -> Gauge, values: [i64; 4]) -> [Level; 4] {
        values.map(|seconds| gauge(Duration::seconds(seconds)).level())
    }

    #[test]
    fn time_left_follows_the_lifetime() {
        let rows: [Row; 5] = [
            (6, 36 * HOUR, 14 * HOUR + 24 * 60),
            (45, 11 * DAY + 6 * HOUR, 3 * DAY),
            (90, 14 * DAY, 3 * DAY),
            (200, 14 * DAY, 3 * DAY),
            // The dates of such a certificate contradict each other.
            (0, 14 * DAY, 3 * DAY),
        ];
        for (days, warning, critical) in rows {
            let gauge = |left| Thresholds::default().time_left(left, &leaf(days));
            let found = levels(gauge, [warning, warning - 1, critical, critical - 1]);
            assert_eq!(found, [Ok, Warning, Warning, Critical], "{days} days");
            assert_eq!(gauge(Duration::seconds(-1)).level(), Critical);
        }
    }

    #[test]
    fn lag_follows_the_lifetime() {
        let rows: [Row; 5] = [
            (6, 3 * HOUR + 36 * 60, 7 * HOUR + 12 * 60),
            (45, 6 * HOUR, DAY),
            (90, 6 * HOUR, DAY),
            (200, 6 * HOUR, DAY),
            (0, 6 * HOUR, DAY),
        ];
        for (days, warning, critical) in rows {
            let lineage = lineage(days);
            let gauge = |lag| Thresholds::default().lag(lag, &lineage);
            let found = levels(gauge, [warning, warning + 1, critical, critical + 1]);
            assert_eq!(found, [Ok, Warning, Warning, Critical], "{days} days");
        }
    }

    #[test]
    fn sync_age_is_limited() {
        let thresholds = Thresholds::default();
        let found = levels(|age| thresholds.sync_age(age), [3 * HOUR, 3 * HOUR + 1, DAY, DAY + 1]);
        assert_eq!(found, [Ok, Warning, Warning, Critical]);
        let rows = [
            ([Some(SyncThreshold::Off), None], [Ok, Ok, Ok, Critical]),
            ([None, Some(SyncThreshold::Off)], [Ok, Warning, Warning, Warning]),
            ([Some(SyncThreshold::Off); 2], [Ok; 4]),
            ([Some(SyncThreshold::After(Duration::ZERO)), None], [Warning, Warning, Warning, Critical]),
        ];
        for (sync_age, expected) in rows {
            let thresholds = Thresholds { sync_age, ..Thresholds::default() };
            let found = levels(|age| thresholds.sync_age(age), [3 * HOUR, 3 * HOUR + 1, DAY, DAY + 1]);
            assert_eq!(found, expected, "{sync_age:?}");
        }
    }

    #[test]
    fn override_replaces_the_default() {
        let args = MonitoringArgs {
            warning: Some(Threshold::Fixed(Duration::days(14))),
            lag_critical: Some(Threshold::Share(0.5)),
            ..MonitoringArgs::default()
        };
        let thresholds = Thresholds::new(&args);
        // Warns from its first minute: the user asked for it.
        assert_eq!(thresholds.time_left(Duration::days(6), &leaf(6)).level(), Warning);
        assert_eq!(thresholds.time_left(Duration::hours(14), &leaf(6)).level(), Critical);
        assert_eq!(thresholds.lag(Duration::days(3), &lineage(6)).level(), Warning);
        assert_eq!(thresholds.lag(Duration::days(3) + Duration::SECOND, &lineage(6)).level(), Critical);
        // Half of an unknown lifetime: the default.
        assert_eq!(thresholds.unknown_lag(Duration::days(1) + Duration::SECOND).level(), Critical);
    }

    #[test]
    fn earlier_flags_keep_their_meaning() {
        let args = MonitoringArgs { warn_days: Some(20), max_lag: Some(7_200), ..MonitoringArgs::default() };
        let thresholds = Thresholds::new(&args);
        let found =
            levels(|left| thresholds.time_left(left, &leaf(200)), [20 * DAY, 20 * DAY - 1, 3 * DAY, DAY]);
        assert_eq!(found, [Ok, Warning, Warning, Critical]);
        // As before, nothing warns of a lag below the limit.
        let found = levels(|lag| thresholds.lag(lag, &lineage(200)), [0, 7_200, 7_201, DAY]);
        assert_eq!(found, [Ok, Ok, Critical, Critical]);
        let endless = Thresholds::new(&MonitoringArgs { max_lag: Some(u64::MAX), ..args });
        assert_eq!(endless.lag(Duration::days(9), &lineage(6)).level(), Ok);
    }
}
