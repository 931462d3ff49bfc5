//! The drop-in and the cron file that write the metrics file, and the commands of the reference that install
//! everything.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::host::Host;
use crate::harness::require;
use crate::readme::{REFERENCE, blocks, read, root};

const DROP_IN: &str = "hooks/prometheus/edgecert-metrics.conf";
const CRON: &str = "hooks/prometheus/edgecert-metrics.cron";
const NRPE: &str = "hooks/monitoring/nrpe.cfg";
const METRICS: &str = "/var/lib/prometheus/node-exporter";

/// Runs a command line with these directories replacing those of the system.
#[track_caller]
fn run(line: &str, replaced: &[(&str, &Path)]) -> String {
    let line =
        replaced.iter().fold(line.to_owned(), |line, (from, to)| line.replace(from, to.to_str().unwrap()));
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &line]).current_dir(root()).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let output = shell.output().unwrap();
    let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{line}: {printed}");
    printed
}

#[test]
fn systemd_accepts_the_drop_in() {
    require("systemd-analyze", "systemd");
    let units = TempDir::new().unwrap();
    let at = |name: &str| units.path().join(name);
    fs::create_dir(at("edgecert-sync.service.d")).unwrap();
    for (name, file) in [
        ("edgecert-sync.service", "hooks/systemd/edgecert-sync.service"),
        ("edgecert-sync.service.d/edgecert-metrics.conf", DROP_IN),
    ] {
        fs::write(at(name), read(file).replace("=edgecert ", "=/bin/true ")).unwrap();
    }
    fs::write(at("sysinit.target"), "[Unit]\n").unwrap();
    let printed = run("systemd-analyze verify --man=no UNIT", &[("UNIT", &at("edgecert-sync.service"))]);
    assert_eq!(printed, "");
    // The drop-in was read: a mistake in it is found.
    let mistaken = read(DROP_IN).replace("ReadWritePaths", "ReadWritePath");
    fs::write(at("edgecert-sync.service.d/edgecert-metrics.conf"), mistaken).unwrap();
    let printed =
        run("systemd-analyze verify --man=no UNIT; true", &[("UNIT", &at("edgecert-sync.service"))]);
    assert!(printed.contains("ReadWritePath"), "{printed}");
}

#[test]
fn commands_write_the_metrics_file() {
    let drop_in = read(DROP_IN);
    let setting =
        |key: &str| drop_in.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix("=-")).unwrap();
    assert_eq!(setting("ReadWritePaths"), METRICS);
    let cron = read(CRON);
    let job = cron.lines().last().unwrap().strip_prefix("*/15 * * * * root ").unwrap();
    assert!(cron.ends_with('\n') && cron.contains("\nPATH=") && cron.contains(":/usr/local/bin:"), "{cron}");

    // cron mails any output, even warnings about state files; the journal may have them.
    let job = format!("{job}; test $? = 78");
    for (line, host) in [(setting("ExecStopPost"), Host::healthy()), (job.as_str(), Host::damaged())] {
        let directory = TempDir::new().unwrap();
        let script = directory.path().join("edgecert");
        host.write_script(&script);
        let line = format!("PATH={}; {line}", directory.path().display());
        let printed = run(&line, &[(METRICS, directory.path())]);
        assert_eq!(printed, "", "{line}");
        let text = fs::read_to_string(directory.path().join("edgecert.prom")).unwrap();
        assert!(text.contains("\nedgecert_last_sync_exit_code 0\n"), "{text}");
    }
}

#[test]
fn nrpe_runs_the_check() {
    let line =
        read(NRPE).lines().find_map(|line| line.strip_prefix("command[check_edgecert]=").map(str::to_owned));
    let directory = TempDir::new().unwrap();
    let script = directory.path().join("edgecert");
    let host = Host::healthy();
    host.write_script(&script);
    let line = line.unwrap().replace("/usr/bin/sudo -n ", "");
    let printed = run(&format!("PATH={}; {line}", directory.path().display()), &[]);
    assert!(printed.starts_with("EDGECERT OK - "), "{printed}");
}

#[test]
fn commands_of_the_reference_install_everything() {
    let system = TempDir::new().unwrap();
    for directory in [
        "prometheus",
        "cron.d",
        "sudoers.d",
        "nagios4/conf.d",
        "icinga2/conf.d",
        "zabbix/zabbix_agentd.conf.d",
        "nagios/nrpe.d",
    ] {
        fs::create_dir_all(system.path().join(directory)).unwrap();
    }
    for (program, package) in [("promtool", "prometheus"), ("visudo", "sudo")] {
        require(program, package);
    }
    let reference = blocks(REFERENCE, "sh").concat();
    let mut installed = Vec::new();
    let is_ours =
        |line: &&str| ["install ", "promtool ", "visudo "].iter().any(|program| line.starts_with(program));
    for line in reference.lines().filter(is_ours) {
        run(line, &[("/etc", system.path())]);
        installed.extend(line.split(' ').filter_map(|word| word.strip_prefix("hooks/")).map(str::to_owned));
    }
    // What Grafana imports and what promtool tests stays where it is.
    let mut shipped: Vec<String> = ["prometheus", "monitoring"]
        .iter()
        .flat_map(|folder| fs::read_dir(root().join("hooks").join(folder)).unwrap())
        .map(|file| {
            file.unwrap().path().strip_prefix(root().join("hooks")).unwrap().to_str().unwrap().to_owned()
        })
        .filter(|file| !["edgecert.rules.test.yml", "dashboard.json"].iter().any(|name| file.ends_with(name)))
        .collect();
    installed.sort();
    shipped.sort();
    assert_eq!(
        installed, shipped,
        "files that the reference installs (left) and those in the folders (right)"
    );
}
