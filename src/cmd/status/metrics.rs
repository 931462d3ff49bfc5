//! The facts for Prometheus, in its text format, as the node exporter reads it from a file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use time::OffsetDateTime;

use super::facts::{Lineage, Site};
use crate::error::{AdHocError, CommandError, ErrorKind};
use crate::file::{self, StagedFile};

/// A series for each lineage and site.
struct Metric {
    name: &'static str,
    help: &'static str,
    /// `None`: it is not known of this one.
    value: fn(&Lineage, Option<&Site>, OffsetDateTime) -> Option<i64>,
}

const METRICS: [Metric; 4] = [
    Metric {
        name: "edgecert_deploy_lag_seconds",
        help: "How long the present certificate has been waiting to be deployed; 0 where it is.",
        value: |lineage, _, now| Some(lineage.lag(now).unwrap_or_default().whole_seconds()),
    },
    Metric {
        name: "edgecert_certificate_not_after_timestamp_seconds",
        help: "When the certificate expires that was deployed.",
        value: |lineage, site, _| {
            let deployed = || lineage.deployed.as_ref().map(|leaf| leaf.not_after);
            let until = site.map_or_else(deployed, Site::expiry);
            until.map(OffsetDateTime::unix_timestamp)
        },
    },
    Metric {
        name: "edgecert_pending",
        help: "Whether a certificate is waiting to be deployed.",
        value: |lineage, _, _| Some(i64::from(lineage.pending_since.is_some())),
    },
    Metric {
        name: "edgecert_last_success_timestamp_seconds",
        help: "When a deployment last succeeded.",
        value: |lineage, _, _| lineage.last_success.map(OffsetDateTime::unix_timestamp),
    },
];

/// The file's text.
pub(super) fn text(lineages: &[Lineage], now: OffsetDateTime) -> String {
    // Two series of the same labels would make the reader refuse the whole file.
    let mut labelled: BTreeMap<(&str, &str), (&Lineage, Option<&Site>)> = BTreeMap::new();
    for lineage in lineages {
        for site in &lineage.sites {
            labelled.entry((&lineage.name, &site.domain)).or_insert((lineage, Some(site)));
        }
        if lineage.sites.is_empty() {
            labelled.entry((&lineage.name, "")).or_insert((lineage, None));
        }
    }
    let mut text = String::new();
    for Metric { name, help, value } in &METRICS {
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
        for ((lineage_name, domain), (lineage, site)) in &labelled {
            if let Some(value) = value(lineage, *site, now) {
                let (lineage_name, domain) = (escaped(lineage_name), escaped(domain));
                let _ = writeln!(text, "{name}{{lineage=\"{lineage_name}\",site=\"{domain}\"}} {value}");
            }
        }
    }
    text
}

/// A label's value.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

/// Replaces the file by this text, so that a reader sees the old one or the new one.
pub(super) fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    let failed = |reason: String| {
        let message = format!("cannot write the metrics file {}: {reason}", crate::text::path(path));
        let hint = "name a file in a directory that exists and that this user can write";
        CommandError::from(AdHocError::new(ErrorKind::Config, message, hint))
    };
    // A device or a link of the system's (`/dev/stdout`) is not to be replaced by a file.
    if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
        return Err(failed("it is no regular file".into()));
    }
    let temporary = beside(path).ok_or_else(|| failed("it is no name of a file".into()))?;
    replace(path, temporary, text).map_err(|error| failed(file::reason(&error)))
}

/// A name that the node exporter does not read.
fn beside(path: &Path) -> Option<PathBuf> {
    let mut name = path.file_name()?.to_owned();
    name.push(format!(".{}.new", std::process::id()));
    Some(path.with_file_name(name))
}

fn replace(path: &Path, temporary: PathBuf, text: &str) -> io::Result<()> {
    const MODE: u32 = 0o644;
    let staged = StagedFile::write(path, temporary, &[text.as_bytes()], MODE)?;
    // Whatever the umask says: the exporter runs as another user.
    staged.set_mode(MODE)?;
    staged.replace()?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    file::sync_directory(directory)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{NOW, deployed, gone, pending};
    use super::*;
    use time::Duration;

    #[test]
    fn each_metric_has_a_series_for_each_lineage_and_site() {
        let mut fresh = deployed("new", 60);
        fresh.sites.clear();
        (fresh.deployed, fresh.last_success) = (None, None);
        let text = text(&[fresh, pending("shop", 20, Duration::hours(2))], NOW);
        expect_test::expect![[r#"
            # HELP edgecert_deploy_lag_seconds How long the present certificate has been waiting to be deployed; 0 where it is.
            # TYPE edgecert_deploy_lag_seconds gauge
            edgecert_deploy_lag_seconds{lineage="new",site=""} 0
            edgecert_deploy_lag_seconds{lineage="shop",site="a.example"} 7200
            # HELP edgecert_certificate_not_after_timestamp_seconds When the certificate expires that was deployed.
            # TYPE edgecert_certificate_not_after_timestamp_seconds gauge
            edgecert_certificate_not_after_timestamp_seconds{lineage="shop",site="a.example"} 1796994000
            # HELP edgecert_pending Whether a certificate is waiting to be deployed.
            # TYPE edgecert_pending gauge
            edgecert_pending{lineage="new",site=""} 0
            edgecert_pending{lineage="shop",site="a.example"} 1
            # HELP edgecert_last_success_timestamp_seconds When a deployment last succeeded.
            # TYPE edgecert_last_success_timestamp_seconds gauge
            edgecert_last_success_timestamp_seconds{lineage="shop",site="a.example"} 1792670400
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn a_site_has_the_date_of_what_its_own_visitors_get() {
        let mut lineage = deployed("x", 60);
        lineage.sites[0].not_after = Some(OffsetDateTime::UNIX_EPOCH);
        let text = text(&[lineage], NOW);
        assert!(text.contains("not_after_timestamp_seconds{lineage=\"x\",site=\"a.example\"} 0\n"), "{text}");
    }

    #[test]
    fn labels_are_escaped_and_no_series_comes_twice() {
        let name = "a\\b\"c\nd";
        let text = text(&[gone(name), gone(name)], NOW);
        let pending: Vec<&str> = text.lines().filter(|line| line.starts_with("edgecert_pending{")).collect();
        assert_eq!(pending, [r#"edgecert_pending{lineage="a\\b\"c\nd",site="a.example"} 0"#]);
    }
}
