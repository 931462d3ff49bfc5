//! A real node exporter reads the metrics file of each host, and a real Prometheus scrapes the exporters. Its query
//! results agree with `status --json`, and its alerts with `status --check`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::process::Command;
use std::time::Duration as StdDuration;

use serde_json::Value;
use tempfile::TempDir;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

use super::daemon::Daemon;
use super::dashboard::queries;
use super::host::{Host, now};
use super::rules::RULES;
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

    /// The samples of an instant query.
    #[track_caller]
    fn query(&self, query: &str) -> Vec<Sample> {
        let data = self.get("query", Some(query)).unwrap_or_else(|| panic!("Prometheus refuses {query}"));
        let samples = data["result"].as_array().unwrap().iter();
        samples.map(|sample| Sample::new(&sample["metric"], &sample["value"])).collect()
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

/// A sample of an instant query.
#[derive(Debug)]
struct Sample {
    labels: BTreeMap<String, String>,
    value: f64,
}

impl Sample {
    fn new(labels: &Value, value: &Value) -> Self {
        let labels = serde_json::from_value(labels.clone()).unwrap();
        Self { labels, value: value[1].as_str().unwrap().parse().unwrap() }
    }
}

fn unix_seconds(at: OffsetDateTime) -> f64 {
    (at.replace_nanosecond(0).unwrap() - OffsetDateTime::UNIX_EPOCH).as_seconds_f64()
}

/// A host, and what its metrics file says.
struct Target {
    name: &'static str,
    host: Host,
    /// How long ago the metrics file was written.
    age: Duration,
    /// Name and severity of the only alert for it.
    alert: Option<(&'static str, &'static str)>,
    /// The JSON report of the run that wrote the file.
    report: Value,
    /// When it ran.
    written: RangeInclusive<OffsetDateTime>,
}

impl Target {
    /// Writes the metrics file of a host into a directory.
    fn new(
        (name, host, age, alert): (&'static str, Host, Duration, Option<(&'static str, &'static str)>),
        directory: &TempDir,
    ) -> Self {
        let file = directory.path().join(METRICS);
        let begin = now();
        let report = host.write_metrics(&file);
        let written = begin..=now();
        let modified = fs::metadata(&file).unwrap().modified().unwrap() - StdDuration::try_from(age).unwrap();
        File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
        Self { name, host, age, alert, report, written }
    }
}

#[test]
fn prometheus_agrees_with_status() {
    const JUST_WRITTEN: Duration = Duration::ZERO;
    let (expires, pending) = ("EdgecertCertificateExpires", "EdgecertDeploymentPending");
    let (overdue, long) = (Some(("EdgecertSyncOverdue", "critical")), Duration::hours(30));
    let hosts = [
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
    let (mut targets, mut directories) = (Vec::new(), Vec::new());
    for host in hosts {
        let directory = TempDir::new().unwrap();
        targets.push(Target::new(host, &directory));
        directories.push((targets.last().unwrap().name, directory));
    }
    let mut monitoring = Monitoring::start(directories);
    monitoring.wait_for_rules(targets.len());
    for target in &targets {
        compare_values(&monitoring, target);
    }
    compare_alerts(&monitoring, &targets);
    for query in queries() {
        assert!(!monitoring.query(&query).is_empty(), "no result: {query}");
    }
}

/// A series: metric, lineage, site.
type Series = (String, String, String);

/// Compares every metric of a host with its JSON report.
fn compare_values(monitoring: &Monitoring, target: &Target) {
    let (name, report) = (target.name, &target.report);
    let mut found: BTreeMap<Series, f64> = BTreeMap::new();
    for Sample { labels, value } in
        monitoring.query(&format!("{{instance=\"{name}\",__name__=~\"edgecert_.*\"}}"))
    {
        let label = |name: &str| labels.get(name).cloned().unwrap_or_default();
        found.insert((label("__name__"), label("lineage"), label("site")), value);
    }
    let mut expected: BTreeMap<Series, f64> = BTreeMap::new();
    let mut expect = |metric: &str, [lineage, site]: [&Value; 2], value: Option<f64>| {
        let text = |label: &Value| label.as_str().unwrap_or_default().to_owned();
        expected
            .extend(value.map(|value| ((format!("edgecert_{metric}"), text(lineage), text(site)), value)));
    };
    let time = |value: &Value| Some(unix_seconds(OffsetDateTime::parse(value.as_str()?, &Rfc3339).unwrap()));
    let number = |is: bool| f64::from(u8::from(is));
    let last = &report["last_sync"];
    expect("last_sync_timestamp_seconds", [&Value::Null; 2], time(&last["at"]));
    expect("last_sync_exit_code", [&Value::Null; 2], last["exit_code"].as_f64());
    expect("check_level", [&Value::Null; 2], report["exit_code"].as_f64());
    expect("unusable_state_files", [&Value::Null; 2], Some(number(name == "damaged")));
    for lineage in report["lineages"].as_array().unwrap() {
        let pending_since = time(&lineage["pending_since"]);
        for site in lineage["sites"].as_array().unwrap() {
            let labels = [&lineage["name"], &site["domain"]];
            let lag = found.remove(&series("edgecert_deploy_lag_seconds", labels)).unwrap();
            let since = pending_since.unwrap_or_default();
            let lags = [target.written.start(), target.written.end()].map(|at| unix_seconds(*at) - since);
            assert!(lag == 0.0 || lags[0] <= lag && lag <= lags[1], "{name}: {lag} is not in {lags:?}");
            assert_eq!(lag == 0.0, pending_since.is_none(), "{name}: {lag}");

            let on_disk = [&lineage["on_disk"]["not_before"], &lineage["on_disk"]["not_after"]].map(time);
            let lifetime = on_disk[1].zip(on_disk[0]).map(|(until, from)| until - from);
            expect("pending_lifetime_seconds", labels, pending_since.and(lifetime));
            expect("pending", labels, Some(number(pending_since.is_some())));
            expect("superseded", labels, Some(number(site["outcome"] == "superseded")));
            expect("last_success_timestamp_seconds", labels, time(&lineage["last_success"]));
            // For another leaf that visitors get, the report has the expiry only.
            let served = &site["served"]["not_after"];
            let not_before =
                found.remove(&series("edgecert_certificate_not_before_timestamp_seconds", labels));
            if served.is_null() {
                assert_eq!(not_before, time(&site["not_before"]), "{name}");
            }
            let not_after = if served.is_null() { &site["not_after"] } else { served };
            expect("certificate_not_after_timestamp_seconds", labels, time(not_after));
            expect("served", labels, site["serves_leaf"].as_bool().map(number));
            expect("slack_seconds", labels, site["slack_seconds"].as_f64());
        }
    }
    assert_eq!(found, expected, "{name}: metrics (left) and values in {report}");
    let age = monitoring.query(&format!("instance:edgecert_metrics_age:seconds{{instance=\"{name}\"}}"));
    assert!(age[0].value >= target.age.as_seconds_f64(), "{name}: {age:?}");
}

fn series(metric: &str, [lineage, site]: [&Value; 2]) -> Series {
    let text = |label: &Value| label.as_str().unwrap_or_default().to_owned();
    (metric.to_owned(), text(lineage), text(site))
}

/// Compares the alerts of each host with the one expected, and its severity with the verdict of `status --check`.
fn compare_alerts(monitoring: &Monitoring, targets: &[Target]) {
    let alerts = monitoring.get("alerts", None).unwrap();
    for Target { name, host, alert, .. } in targets {
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
