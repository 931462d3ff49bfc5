//! Nagios 4 accepts the definitions, runs the check on hosts in every state, and understands what it prints.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use time::Duration;

use super::host::{Host, write_script};
use crate::harness::{Daemon, cannot_run, require};
use crate::readme::read;

const DEFINITIONS: &str = "hooks/monitoring/nagios.cfg";
const PROGRAM: &str = "nagios4";
const PACKAGE: &str = "nagios4-core";

/// Definitions of Debian's configuration: the templates, and the host that Nagios runs on.
const OBJECTS: &str = "
define timeperiod {
    timeperiod_name 24x7
    alias           always
    sunday          00:00-24:00
    monday          00:00-24:00
    tuesday         00:00-24:00
    wednesday       00:00-24:00
    thursday        00:00-24:00
    friday          00:00-24:00
    saturday        00:00-24:00
}
define command {
    command_name    nothing
    command_line    /bin/true
}
define contact {
    contact_name                    nobody
    host_notifications_enabled      0
    service_notifications_enabled   0
    host_notification_period        24x7
    service_notification_period     24x7
    host_notification_commands      nothing
    service_notification_commands   nothing
}
define service {
    name                generic-service
    register            0
    check_period        24x7
    notification_period 24x7
    max_check_attempts  3
    check_interval      10
    retry_interval      2
    contacts            nobody
}
";

/// The hosts of the fleet.
const FLEET: [&str; 4] = ["healthy", "warning", "critical", "unknown"];

fn host_definition(name: &str, more: &str) -> String {
    format!(
        "define host {{\n    host_name {name}\n    address 127.0.0.1\n    max_check_attempts 3\n    \
         check_period 24x7\n    notification_period 24x7\n    contacts nobody\n    {more}\n}}\n"
    )
}

/// Writes the configuration, with a script for each host in place of edgecert.
fn configure(directory: &Path) {
    let mut objects = OBJECTS.to_owned() + &host_definition("localhost", "");
    for name in FLEET {
        objects += &host_definition(name, "hostgroups edgecert");
    }
    fs::write(directory.join("objects.cfg"), objects).unwrap();

    let at = directory.display();
    // In place of SSH, a shell on this host runs the command.
    let definitions = read(DEFINITIONS)
        .replace("/usr/lib/nagios/plugins/check_by_ssh -H $HOSTADDRESS$ -t 45 -C", "/bin/sh -c")
        .replace("/usr/bin/sudo -n edgecert", &format!("{at}/localhost"))
        .replace("sudo -n edgecert", &format!("{at}/$HOSTNAME$"))
        // Intervals are in seconds here, so that the fleet is checked after its hosts.
        .replace("check_interval          15", "check_interval          1")
        .replace("retry_interval          5", "retry_interval          1");
    fs::write(directory.join("edgecert.cfg"), definitions).unwrap();

    fs::create_dir(directory.join("spool")).unwrap();
    let main = format!(
        "cfg_file={at}/objects.cfg\ncfg_file={at}/edgecert.cfg\nlog_file={at}/nagios.log\n\
         object_cache_file={at}/objects.cache\nstatus_file={at}/status.dat\nstatus_update_interval=1\n\
         nagios_user=root\nnagios_group=root\ncheck_external_commands=0\ncommand_file={at}/commands\n\
         query_socket={at}/query\nlock_file={at}/nagios.pid\ntemp_file={at}/nagios.tmp\ntemp_path={at}\n\
         check_result_path={at}/spool\ncheck_result_reaper_frequency=1\nretain_state_information=0\n\
         use_syslog=0\ncheck_for_updates=0\ninterval_length=1\nservice_inter_check_delay_method=n\n\
         host_inter_check_delay_method=n\nillegal_macro_output_chars=`~$&|'\"<>\n"
    );
    fs::write(directory.join("nagios.cfg"), main).unwrap();
}

/// Fails with `cannot run here` unless the plugin for the whole fleet is installed.
fn require_check_cluster() {
    if !Path::new("/usr/lib/nagios/plugins/check_cluster").is_file() {
        cannot_run("check_cluster is not installed (Debian package monitoring-plugins-basic)");
    }
}

/// The attributes of each service in Nagios' status file, by host and service.
fn services(directory: &Path) -> Option<BTreeMap<(String, String), BTreeMap<String, String>>> {
    let status = fs::read_to_string(directory.join("status.dat")).ok()?;
    let blocks = status.split("servicestatus {\n").skip(1).map(|rest| rest.split('}').next().unwrap());
    let attributes = |block: &str| -> BTreeMap<String, String> {
        let pairs = block.lines().filter_map(|line| line.trim().split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let services = blocks.map(attributes);
    let key = |service: &BTreeMap<String, String>| {
        ["host_name", "service_description"].map(|name| service[name].clone())
    };
    Some(services.map(|service| (key(&service).into(), service)).collect())
}

#[test]
fn nagios_sees_every_state() {
    require_check_cluster();
    let directory = TempDir::new().unwrap();
    configure(directory.path());
    let script = |name: &str| directory.path().join(name);
    let hosts = [
        ("localhost", Host::healthy()),
        ("healthy", Host::healthy()),
        ("warning", Host::expiring(Duration::hours(30))),
        ("critical", Host::pending(Duration::days(2))),
    ];
    for (name, host) in &hosts {
        host.write_script(&script(name));
    }
    write_script(&script("unknown"), &script("nonexistent"));

    let main = script("nagios.cfg");
    require(PROGRAM, PACKAGE);
    let verified = Command::new(PROGRAM).arg("-v").arg(&main).output().unwrap();
    let printed = String::from_utf8_lossy(&verified.stdout);
    assert!(printed.contains("Total Warnings: 0\nTotal Errors:   0\n"), "{printed}");

    let mut daemon = Daemon::start(directory, PROGRAM, PACKAGE, &[main.to_str().unwrap()]);
    let fleet_key = ("localhost".to_owned(), "edgecert-fleet".to_owned());
    let services = daemon.wait_for("check of the fleet", |directory| {
        let services = services(directory)?;
        let has_seen_all =
            services.get(&fleet_key)?["plugin_output"].contains("1 warning, 1 unknown, 1 critical");
        has_seen_all.then_some(services)
    });
    assert_eq!(services.len(), FLEET.len() + 2);
    assert_eq!(services[&fleet_key]["current_state"], "1");
    for (name, host) in &hosts {
        let service = &services[&((*name).to_owned(), "edgecert".to_owned())];
        let (code, output) = host.check();
        assert_eq!(service["current_state"], code.to_string(), "{name}: {output}");
        let (text, performance_data) = output.lines().next().unwrap().split_once(" | ").unwrap();
        assert_eq!(service["plugin_output"], text, "{name}");
        let labels = |data: &str| {
            data.split(' ').map(|item| item.split('=').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(labels(&service["performance_data"]), labels(performance_data), "{name}");
    }
    let states =
        FLEET.map(|name| services[&(name.to_owned(), "edgecert".to_owned())]["current_state"].clone());
    assert_eq!(states, ["0", "1", "2", "3"]);
}
