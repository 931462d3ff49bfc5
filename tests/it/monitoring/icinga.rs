//! Icinga 2 accepts the definitions, runs the check on hosts in every state, and understands what it prints.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use time::Duration;

use super::host::{Host, now, write_script};
use crate::harness::{Daemon, require};
use crate::readme::read;

const DEFINITIONS: &str = "hooks/monitoring/icinga2.conf";
const PROGRAM: &str = "icinga2";
const PACKAGE: &str = "icinga2-bin";

/// The hosts of the fleet, with the variables of each.
const FLEET: [(&str, &str); 5] = [
    ("healthy", ""),
    ("warning", ""),
    ("critical", ""),
    ("unknown", ""),
    (
        "lenient",
        "vars.edgecert_warning = \"1h\"; vars.edgecert_critical = \"1%\"; vars.edgecert_sync_warning = \"off\"",
    ),
];
/// Where the socket for queries is, below the directory.
const SOCKET: &str = "run/livestatus";

/// Writes the configuration, with a script for each host in place of edgecert. Returns the arguments of the daemon.
fn configure(directory: &Path) -> Vec<String> {
    let at = directory.display();
    let command = r#""/usr/bin/sudo", "-n", "edgecert""#;
    let definitions = read(DEFINITIONS);
    assert!(definitions.contains(command), "{definitions}");
    fs::write(
        directory.join("edgecert.conf"),
        definitions.replace(command, &format!("\"{at}/$host.name$\"")),
    )
    .unwrap();
    let mut main = format!(
        "const NodeName = \"localhost\"\nobject CheckerComponent \"checker\" {{ }}\n\
         object LivestatusListener \"livestatus\" {{ socket_type = \"unix\"; socket_path = \"{at}/{SOCKET}\" }}\n\
         object CheckCommand \"up\" {{ command = [ \"/bin/true\" ] }}\n\
         object Host NodeName {{ check_command = \"up\" }}\n"
    );
    for (name, variables) in FLEET {
        let _ = writeln!(
            main,
            "object Host \"{name}\" {{ check_command = \"up\"; vars.edgecert = true; {variables} }}"
        );
    }
    let _ = writeln!(main, "include \"{at}/edgecert.conf\"");
    fs::write(directory.join("icinga2.conf"), main).unwrap();
    for name in ["data", "run", "run/icinga2", "log", "cache", "spool"] {
        fs::create_dir(directory.join(name)).unwrap();
    }
    let mut arguments: Vec<String> = ["daemon", "-c"].map(str::to_owned).into();
    arguments.push(format!("{at}/icinga2.conf"));
    for (constant, name) in [
        ("DataDir", "data"),
        ("InitRunDir", "run"),
        ("LogDir", "log"),
        ("CacheDir", "cache"),
        ("SpoolDir", "spool"),
    ] {
        arguments.push(format!("-D{constant}={at}/{name}"));
    }
    arguments.extend(["-DRunAsUser=root", "-DRunAsGroup=root"].map(str::to_owned));
    arguments
}

/// Sends a request to Icinga's socket; `None` if it does not answer yet.
fn ask(directory: &Path, request: &str) -> Option<String> {
    let mut socket = UnixStream::connect(directory.join(SOCKET)).ok()?;
    socket.write_all(request.as_bytes()).ok()?;
    socket.shutdown(Shutdown::Write).ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Host, state, first line, other lines and performance data of a service.
type Service = (String, u64, String, String, Value);

/// The services that were checked.
fn checked(directory: &Path) -> Option<Vec<Service>> {
    let request = "GET services\nFilter: description = edgecert\nFilter: has_been_checked = 1\n\
        Columns: host_name state plugin_output long_plugin_output perf_data\nOutputFormat: json\n\n";
    serde_json::from_str(&ask(directory, request)?).ok()
}

#[test]
fn icinga_sees_every_state() {
    let directory = TempDir::new().unwrap();
    let arguments = configure(directory.path());
    let script = |name: &str| directory.path().join(name);
    let expiring = Host::expiring(Duration::hours(30));
    let hosts = [
        ("localhost", &Host::healthy()),
        ("healthy", &Host::healthy()),
        ("warning", &expiring),
        ("critical", &Host::pending(Duration::days(2))),
        // Variables of the host become flags of the check.
        ("lenient", &expiring),
    ];
    for (name, host) in &hosts {
        host.write_script(&script(name));
    }
    write_script(&script("unknown"), &script("nonexistent"));

    require(PROGRAM, PACKAGE);
    let validated = Command::new(PROGRAM)
        .args(&arguments)
        .arg("-C")
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&validated.stdout);
    assert!(validated.status.success() && !printed.contains("warning/"), "{printed}");

    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut daemon = Daemon::start(directory, PROGRAM, PACKAGE, &arguments);
    // Icinga spreads first checks over a minute, unless they are forced.
    let at = now().unix_timestamp();
    for host in hosts.iter().map(|(name, _)| *name).chain(["unknown"]) {
        let command = format!("COMMAND [{at}] SCHEDULE_FORCED_SVC_CHECK;{host};edgecert;{at}\n\n");
        daemon.wait_for("socket", |directory| ask(directory, &command));
    }
    let services = daemon.wait_for("check of each host", |directory| {
        checked(directory).filter(|services| services.len() == hosts.len() + 1)
    });
    for (name, state, first, rest, data) in &services {
        let expected = match name.as_str() {
            "warning" => 1,
            "critical" => 2,
            "unknown" => 3,
            _ => 0,
        };
        assert_eq!(*state, expected, "{name}: {first}\n{rest}");
        assert!(first.starts_with("EDGECERT ") && first.len() <= 80, "{name}: {first}");
        let is_measured =
            data.as_str().is_some_and(|data| data.contains("lag=") && data.contains("sync_age="));
        assert_eq!(is_measured, name != "unknown", "{name}: {data}");
    }
}
