//! A real node exporter reads the metrics file of each host, and a real Prometheus scrapes the exporters. Its alerts agree
//! with `status --check`, and every query of the dashboard has a result. The values of the metrics are compared with the
//! other views of the status in `src/cmd/status/agreement_test.rs`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::process::Command;
use std::time::Duration as StdDuration;

use serde_json::Value;
use tempfile::TempDir;
use time::Duration;

use super::dashboard::queries;
use super::host::Host;
use super::rules::RULES;
use crate::harness::Daemon;
use crate::readme::root;

const NODE_EXPORTER: [&str; 2] = ["prometheus-node-exporter", "prometheus-node-exporter"];
const PROMETHEUS: [&str; 2] = ["prometheus", "prometheus"];
const METRICS: &str = "edgecert.prom";

/// Prometheus and its targets: a node exporter for each host, named by the label `instance`.
struct Monitoring {
    prometheus: Daemon,
    address: String,
    /// Kept, because they stop when dropped.
    _exporters: Vec<Daemon>,
}

impl Monitoring {
    /// Starts it with the directories of the textfile collectors.
    fn start(directories: Vec<(&str, TempDir)>) -> Self {
        let (mut exporters, mut targets) = (Vec::new(), String::new());
        for (instance, directory) in directories {
            let textfiles = format!("--collector.textfile.directory={}", directory.path().display());
            let arguments = ["--collector.disable-defaults", "--collector.textfile", &textfiles, LISTEN];
            let [program, package] = NODE_EXPORTER;
            let mut exporter = Daemon::start(directory, program, package, &arguments);
            let address = exporter.address();
            let _ =
                writeln!(targets, "      - targets: ['{address}']\n        labels: {{instance: {instance}}}");
            exporters.push(exporter);
        }
        let directory = TempDir::new().unwrap();
        let configuration = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: ['{}']\n\
             scrape_configs:\n  - job_name: node\n    static_configs:\n{targets}",
            root().join(RULES).display()
        );
        fs::write(directory.path().join("prometheus.yml"), configuration).unwrap();
        let [program, package] = PROMETHEUS;
        let arguments = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", LISTEN];
        let mut prometheus = Daemon::start(directory, program, package, &arguments);
        let address = prometheus.address();
        Self { prometheus, address, _exporters: exporters }
    }

    /// The data that Prometheus' API returns; `None` if it is not ready yet.
    fn get(&self, path: &str, query: Option<&str>) -> Option<Value> {
        get(&self.address, path, query)
    }

    /// The values of an instant query.
    #[track_caller]
    fn query(&self, query: &str) -> Vec<f64> {
        let data = self.get("query", Some(query)).unwrap_or_else(|| panic!("Prometheus refuses {query}"));
        let samples = data["result"].as_array().unwrap().iter();
        samples.map(|sample| sample["value"][1].as_str().unwrap().parse().unwrap()).collect()
    }

    /// Waits until every host was scraped, and the rules were evaluated afterwards.
    fn wait_for_rules(&mut self, hosts: usize) {
        let address = self.address.clone();
        self.prometheus.wait_for("sample of each host", |_| {
            let left = get(&address, "query", Some("count(site:edgecert_left:seconds) by (instance)"))?;
            (left["result"].as_array()?.len() == hosts).then_some(())
        });
        let evaluated = |address: &str| {
            let data = get(address, "rules", None)?;
            Some(data["groups"][0]["lastEvaluation"].as_str()?.to_owned())
        };
        let before = self.prometheus.wait_for("group of rules", |_| evaluated(&address));
        // That evaluation may have begun before the scrape; the one after it did not.
        let mut seen = BTreeSet::from([before]);
        self.prometheus.wait_for("evaluation", |_| {
            seen.insert(evaluated(&address)?);
            (seen.len() == 3).then_some(())
        });
    }
}

const LISTEN: &str = "--web.listen-address=127.0.0.1:0";

fn get(address: &str, path: &str, query: Option<&str>) -> Option<Value> {
    let mut curl = Command::new("curl");
    curl.args(["-s", "--get", &format!("http://{address}/api/v1/{path}")]);
    if let Some(query) = query {
        curl.args(["--data-urlencode", &format!("query={query}")]);
    }
    let output = curl.output().expect("cannot run here: curl is not installed (Debian package curl)");
    let mut answer: Value = serde_json::from_slice(&output.stdout).ok()?;
    (answer["status"] == "success").then(|| answer["data"].take())
}

/// A name, a host, how long ago its metrics file was written, and name and severity of the only alert for it.
type Target = (&'static str, Host, Duration, Option<(&'static str, &'static str)>);

/// Writes the metrics file of a host into a new directory.
fn write_metrics(host: &Host, age: Duration) -> TempDir {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join(METRICS);
    host.write_metrics(&file);
    let modified = fs::metadata(&file).unwrap().modified().unwrap() - StdDuration::try_from(age).unwrap();
    File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
    directory
}

#[test]
fn prometheus_agrees_with_status() {
    const JUST_WRITTEN: Duration = Duration::ZERO;
    let (expires, pending) = ("EdgecertCertificateExpires", "EdgecertDeploymentPending");
    let (overdue, long) = (Some(("EdgecertSyncOverdue", "critical")), Duration::hours(30));
    let targets: [Target; 10] = [
        ("healthy", Host::healthy(), JUST_WRITTEN, None),
        ("superseded", Host::superseded(), JUST_WRITTEN, None),
        ("expiring", Host::expiring(Duration::hours(30)), JUST_WRITTEN, Some((expires, "warning"))),
        ("late", Host::expiring(Duration::hours(6)), JUST_WRITTEN, Some((expires, "critical"))),
        ("waiting", Host::pending(Duration::hours(12)), JUST_WRITTEN, Some((pending, "warning"))),
        ("stuck", Host::pending(Duration::hours(30)), JUST_WRITTEN, Some((pending, "critical"))),
        ("stale", Host::stale(), JUST_WRITTEN, Some(("EdgecertEdgeStale", "warning"))),
        ("dead", Host::without_timer(long), JUST_WRITTEN, overdue),
        ("damaged", Host::damaged(), JUST_WRITTEN, Some(("EdgecertStateUnusable", "warning"))),
        ("silent", Host::without_timer(long), long, overdue),
    ];
    let directories = targets.iter().map(|(name, host, age, _)| (*name, write_metrics(host, *age)));
    let mut monitoring = Monitoring::start(directories.collect());
    monitoring.wait_for_rules(targets.len());
    for (name, _, age, _) in &targets {
        let query = format!("instance:edgecert_metrics_age:seconds{{instance=\"{name}\"}}");
        assert!(monitoring.query(&query)[0] >= age.as_seconds_f64(), "{name}");
    }
    compare_alerts(&monitoring, &targets);
    for query in queries() {
        assert!(!monitoring.query(&query).is_empty(), "no result: {query}");
    }
}

/// Compares the alerts of each host with the one expected, and its severity with the verdict of `status --check`.
fn compare_alerts(monitoring: &Monitoring, targets: &[Target]) {
    let alerts = monitoring.get("alerts", None).unwrap();
    for (name, host, _, alert) in targets {
        // Alerts that are not firing yet count, too: nothing lasts that long here.
        let label = |alert: &Value, name: &str| alert["labels"][name].as_str().unwrap().to_owned();
        let of_host =
            alerts["alerts"].as_array().unwrap().iter().filter(|alert| label(alert, "instance") == *name);
        let found: BTreeSet<_> =
            of_host.map(|alert| (label(alert, "alertname"), label(alert, "severity"))).collect();
        let is_critical = alert.is_some_and(|(_, severity)| severity == "critical");
        let mut expected = BTreeSet::new();
        if let Some((name, severity)) = *alert {
            expected.insert((name.to_owned(), severity.to_owned()));
            // Until the critical one fires, and until any alert fires.
            expected.insert((name.to_owned(), "warning".to_owned()));
            expected.insert(("EdgecertCheckFails".to_owned(), severity.to_owned()));
        }
        assert_eq!(found, expected, "{name}");
        let (code, output) = host.check();
        let level = alert.map_or(0, |_| if is_critical { 2 } else { 1 });
        assert_eq!(code, level, "{name}: {output}");
    }
}
