//! The thresholds of `status --check`. They depend on the lifetime of the certificate, so that one check fits 6-day and
//! 200-day certificates.

use time::Duration;

use super::gauge::Limits;
use crate::cli::{DefaultThreshold, LAG, MonitoringArgs, SYNC_AGE, SyncThreshold, TIME_LEFT, Threshold};

/// What they are for a certificate or for `sync`. A threshold that was not given has its default.
impl MonitoringArgs {
    /// The limits on the time left of a leaf with this lifetime.
    pub(super) fn time_left(&self, lifetime: Option<Duration>) -> Limits {
        limits([self.warning, self.critical], &TIME_LEFT, lifetime)
    }

    /// The limits on how long a leaf with this lifetime may be pending.
    pub(super) fn lag(&self, lifetime: Option<Duration>) -> Limits {
        limits([self.lag_warning, self.lag_critical], &LAG, lifetime)
    }

    /// The limits on the time since the last `sync`.
    pub(super) fn sync_age(&self) -> Limits {
        let limit = |given, default| match given {
            Some(SyncThreshold::Off) => None,
            Some(SyncThreshold::After(duration)) => Some(duration),
            None => Some(default),
        };
        let [warning, critical] = SYNC_AGE;
        Limits { warning: limit(self.sync_warning, warning), critical: limit(self.sync_critical, critical) }
    }

    /// Whether both limits on the last `sync` are off.
    pub(super) fn ignore_sync(&self) -> bool {
        [self.sync_warning, self.sync_critical] == [Some(SyncThreshold::Off); 2]
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
    use super::*;

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
            assert_eq!(seconds(thresholds.time_left(lifetime)), time_left.map(Some), "{days:?}");
            assert_eq!(seconds(thresholds.lag(lifetime)), lag.map(Some), "{days:?}");
        }
    }

    #[test]
    fn sync_limits_can_be_off() {
        let (off, now) = (Some(SyncThreshold::Off), Some(SyncThreshold::After(Duration::ZERO)));
        let rows = [
            ([None, None], [Some(3 * HOUR), Some(DAY)], false),
            ([off, None], [None, Some(DAY)], false),
            ([None, off], [Some(3 * HOUR), None], false),
            ([off, off], [None, None], true),
            ([now, None], [Some(0), Some(DAY)], false),
        ];
        for ([sync_warning, sync_critical], expected, is_ignored) in rows {
            let thresholds = MonitoringArgs { sync_warning, sync_critical, ..MonitoringArgs::default() };
            assert_eq!(seconds(thresholds.sync_age()), expected, "{thresholds:?}");
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
            seconds(thresholds.time_left(lifetime)),
            limits,
            "warns from its first minute, as asked for"
        );
        assert_eq!(seconds(thresholds.lag(lifetime)), [3 * HOUR + 36 * 60, 3 * DAY].map(Some));
        // Half of an unknown lifetime: the default.
        assert_eq!(seconds(thresholds.lag(None)), [6 * HOUR, DAY].map(Some));
    }
}
