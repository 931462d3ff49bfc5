//! The status in Prometheus' text format, as a file for the node exporter's textfile collector.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::io;
use std::path::Path;

use time::{Duration, OffsetDateTime};

use super::fleet::{Fleet, LineageStatus, SiteStatus};
use crate::error::{CommandError, ErrorKind, Result, write_hint};
use crate::file::{self, StagedFile};
use crate::leaf::Leaf;
use crate::outcome::Outcome;
use crate::text;

/// A metric with a series for each site, or for a lineage without sites.
struct Metric {
    name: &'static str,
    help: &'static str,
    /// The value of a series; `None` omits the series.
    value: fn(&LineageStatus, Option<&SiteStatus>, OffsetDateTime) -> Option<i64>,
}

const METRICS: [Metric; 9] = [
    Metric {
        name: "edgecert_deploy_lag_seconds",
        help: "How long the deployment of the current certificate has been pending; 0 if it is deployed.",
        value: |lineage, _, now| Some(lineage.lag(now)?.whole_seconds()),
    },
    Metric {
        name: "edgecert_certificate_not_before_timestamp_seconds",
        help: "When the validity of the deployed certificate began.",
        value: |lineage, site, _| Some(leaf(lineage, site)?.not_before.unix_timestamp()),
    },
    Metric {
        name: "edgecert_certificate_not_after_timestamp_seconds",
        help: "When the deployed certificate expires.",
        value: |lineage, site, _| Some(leaf(lineage, site)?.not_after.unix_timestamp()),
    },
    Metric {
        name: "edgecert_served",
        help: "Whether every edge address was last seen to serve the certificate.",
        value: |lineage, site, _| site?.serves_leaf(lineage).map(i64::from),
    },
    Metric {
        name: "edgecert_slack_seconds",
        help: "Time left to deploy before visitors get an invalid certificate.",
        value: |_, site, now| site?.slack(now).map(Duration::whole_seconds),
    },
    Metric {
        name: "edgecert_pending",
        help: "Whether a deployment is pending.",
        value: |lineage, _, _| Some(i64::from(lineage.pending.is_some())),
    },
    Metric {
        name: "edgecert_pending_lifetime_seconds",
        help: "Lifetime of the certificate whose deployment is pending.",
        value: |lineage, _, _| Some(lineage.pending.as_ref().and(lineage.lifetime())?.whole_seconds()),
    },
    Metric {
        name: "edgecert_last_success_timestamp_seconds",
        help: "When a deployment last succeeded.",
        value: |lineage, _, _| lineage.last_success.map(OffsetDateTime::unix_timestamp),
    },
    Metric {
        name: "edgecert_superseded",
        help: "Whether another lineage provides the certificate of the site.",
        value: |_, site, _| site.map(|site| i64::from(site.state.outcome == Outcome::Superseded)),
    },
];

/// The leaf that the visitors of a site get, or the one that a lineage without sites deployed.
fn leaf<'a>(lineage: &'a LineageStatus, site: Option<&'a SiteStatus>) -> Option<&'a Leaf> {
    site.map_or(lineage.deployed.as_ref(), SiteStatus::served_leaf)
}

/// Formats the file, with the exit code of the check as the level.
pub(super) fn format(fleet: &Fleet, check_level: u8, now: OffsetDateTime) -> String {
    let row = |lineage, site| (LineageStatus::subject(lineage, site), (lineage, site));
    let rows = fleet.lineages.iter().flat_map(|lineage| lineage.rows().map(move |site| row(lineage, site)));
    // A second series with the same labels would make the collector reject the whole file. The first one remains.
    let mut series = BTreeMap::new();
    series.extend(rows.rev());
    let mut text = String::new();
    for Metric { name, help, value } in &METRICS {
        text += &header(name, help);
        for (subject, (lineage, site)) in &series {
            if let Some(value) = value(lineage, *site, now) {
                let (lineage, site) = (escape(&lineage.name), escape(subject.site.unwrap_or_default()));
                let _ = writeln!(text, "{name}{{lineage=\"{lineage}\",site=\"{site}\"}} {value}");
            }
        }
    }
    // Without labels: they also cover problems that have no series because their lineage is unknown.
    if let Some(last) = &fleet.last_sync.record {
        let (ended_at, exit_code) = (last.ended_at.unix_timestamp(), last.exit_code);
        text += &single("edgecert_last_sync_timestamp_seconds", "When sync last ended.", ended_at);
        text += &single("edgecert_last_sync_exit_code", "Exit code of the last sync.", exit_code);
    }
    let unusable = fleet.state_errors.len() + fleet.last_sync.faults.len();
    text + &single(
        "edgecert_check_level",
        "Verdict of status --check: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.",
        check_level,
    ) + &single(
        "edgecert_unusable_state_files",
        "Number of state files that are damaged, unreadable, or of a later release.",
        unusable,
    )
}

/// Formats a metric without labels.
fn single(name: &str, help: &str, value: impl Display) -> String {
    format!("{}{name} {value}\n", header(name, help))
}

fn header(name: &str, help: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} gauge\n")
}

/// Escapes the value of a label.
fn escape(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

/// The file's permissions.
const MODE: u32 = 0o644;

/// Replaces the file atomically, so that the collector never reads a part of it.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    let failed = |reason: &str, kind| {
        let message = format!("cannot write the metrics file {}: {reason}", text::path(path));
        CommandError::new(ErrorKind::Config, message).hint(write_hint(kind, "name another file"))
    };
    // Renaming would replace a device, or a link such as `/dev/stdout`, by a file.
    if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(failed("not a regular file", io::ErrorKind::AlreadyExists));
    }
    let mut temporary = path.as_os_str().to_owned();
    // The collector does not read files with this extension.
    temporary.push(format!(".{}.new", std::process::id()));
    let replace = || {
        let staged = StagedFile::write(path, temporary.into(), &[text.as_bytes()], MODE)?;
        // Regardless of the umask, because the collector runs as another user.
        staged.set_mode(MODE)?;
        staged.replace()
    };
    replace().map_err(|error: io::Error| failed(&file::reason(&error), error.kind()))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, deployed, fleet, last_sync, missing, pending, until};
    use super::*;

    #[test]
    fn each_site_has_a_series() {
        let mut fresh = deployed("new", 60);
        fresh.sites.clear();
        (fresh.deployed, fresh.last_success) = (None, None);
        let last_sync = last_sync(Duration::minutes(12), 75, None);
        let fleet = Fleet { last_sync, ..fleet([fresh, pending("shop", 20, Duration::hours(2))]) };
        let text = format(&fleet, 1, NOW);
        expect_test::expect![[r#"
            # HELP edgecert_deploy_lag_seconds How long the deployment of the current certificate has been pending; 0 if it is deployed.
            # TYPE edgecert_deploy_lag_seconds gauge
            edgecert_deploy_lag_seconds{lineage="new",site=""} 0
            edgecert_deploy_lag_seconds{lineage="shop",site="a.example"} 7200
            # HELP edgecert_certificate_not_before_timestamp_seconds When the validity of the deployed certificate began.
            # TYPE edgecert_certificate_not_before_timestamp_seconds gauge
            edgecert_certificate_not_before_timestamp_seconds{lineage="shop",site="a.example"} 1789218000
            # HELP edgecert_certificate_not_after_timestamp_seconds When the deployed certificate expires.
            # TYPE edgecert_certificate_not_after_timestamp_seconds gauge
            edgecert_certificate_not_after_timestamp_seconds{lineage="shop",site="a.example"} 1796994000
            # HELP edgecert_served Whether every edge address was last seen to serve the certificate.
            # TYPE edgecert_served gauge
            # HELP edgecert_slack_seconds Time left to deploy before visitors get an invalid certificate.
            # TYPE edgecert_slack_seconds gauge
            edgecert_slack_seconds{lineage="shop",site="a.example"} 1731600
            # HELP edgecert_pending Whether a deployment is pending.
            # TYPE edgecert_pending gauge
            edgecert_pending{lineage="new",site=""} 0
            edgecert_pending{lineage="shop",site="a.example"} 1
            # HELP edgecert_pending_lifetime_seconds Lifetime of the certificate whose deployment is pending.
            # TYPE edgecert_pending_lifetime_seconds gauge
            edgecert_pending_lifetime_seconds{lineage="shop",site="a.example"} 7776000
            # HELP edgecert_last_success_timestamp_seconds When a deployment last succeeded.
            # TYPE edgecert_last_success_timestamp_seconds gauge
            edgecert_last_success_timestamp_seconds{lineage="shop",site="a.example"} 1792670400
            # HELP edgecert_superseded Whether another lineage provides the certificate of the site.
            # TYPE edgecert_superseded gauge
            edgecert_superseded{lineage="shop",site="a.example"} 0
            # HELP edgecert_last_sync_timestamp_seconds When sync last ended.
            # TYPE edgecert_last_sync_timestamp_seconds gauge
            edgecert_last_sync_timestamp_seconds 1795261680
            # HELP edgecert_last_sync_exit_code Exit code of the last sync.
            # TYPE edgecert_last_sync_exit_code gauge
            edgecert_last_sync_exit_code 75
            # HELP edgecert_check_level Verdict of status --check: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
            # TYPE edgecert_check_level gauge
            edgecert_check_level 1
            # HELP edgecert_unusable_state_files Number of state files that are damaged, unreadable, or of a later release.
            # TYPE edgecert_unusable_state_files gauge
            edgecert_unusable_state_files 0
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn site_has_its_own_expiry() {
        let mut lineage = deployed("x", 60);
        lineage.sites[0].leaf = Some(until(OffsetDateTime::UNIX_EPOCH));
        let text = format(&fleet([lineage]), 0, NOW);
        assert!(text.contains("not_after_timestamp_seconds{lineage=\"x\",site=\"a.example\"} 0\n"), "{text}");
    }

    #[test]
    fn labels_are_escaped_and_unique() {
        let name = "a\\b\"c\nd";
        let text = format(&fleet([missing(name), missing(name)]), 0, NOW);
        let pending: Vec<&str> = text.lines().filter(|line| line.starts_with("edgecert_pending{")).collect();
        assert_eq!(pending, [r#"edgecert_pending{lineage="a\\b\"c\nd",site="a.example"} 0"#]);
    }

    #[test]
    fn unknown_sync_has_no_metrics() {
        let text = format(&Fleet::default(), 3, NOW);
        assert!(text.contains("edgecert_check_level 3\n") && !text.contains("last_sync"), "{text}");
    }
}
