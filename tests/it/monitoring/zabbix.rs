//! The Zabbix agent accepts the user parameters, and the values are what an item needs.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use time::Duration;

use super::host::Host;
use crate::harness::require;
use crate::readme::read;

const PARAMETERS: &str = "hooks/monitoring/zabbix.conf";
const PROGRAM: &str = "zabbix_agentd";

/// The value that the agent gets for a key.
fn value(configuration: &Path, key: &str) -> String {
    let mut command = Command::new(PROGRAM);
    command.args(["-c", configuration.to_str().unwrap(), "-t", key]);
    let output = command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let value = printed.trim_start().strip_prefix(key).and_then(|rest| rest.trim().strip_prefix("[t|"));
    let value = value.and_then(|rest| rest.strip_suffix(']'));
    value.unwrap_or_else(|| panic!("{printed}{}", String::from_utf8_lossy(&output.stderr))).to_owned()
}

#[test]
fn zabbix_gets_verdict_and_json() {
    require(PROGRAM, "zabbix-agent");
    let directory = TempDir::new().unwrap();
    let script = directory.path().join("edgecert");
    let parameters = read(PARAMETERS).replace("/usr/bin/sudo -n edgecert", script.to_str().unwrap());
    let configuration = directory.path().join("agent.conf");
    fs::write(&configuration, format!("Server=127.0.0.1\nHostname=h\n{parameters}")).unwrap();
    for (host, code) in [(Host::healthy(), 0), (Host::pending(Duration::days(2)), 2)] {
        host.write_script(&script);
        let (expected, output) = host.check();
        assert_eq!(expected, code, "{output}");
        let word = output.split_whitespace().nth(1).unwrap();
        let text = value(&configuration, "edgecert.check");
        assert!(text.starts_with(&format!("EDGECERT {word} - ")), "{text}");

        // A warning, which goes to standard error, does not damage the JSON object.
        fs::write(host.state.path().join("other-0123456789.json"), "{").unwrap();
        let json: Value = serde_json::from_str(&value(&configuration, "edgecert.json")).unwrap();
        assert_eq!(json["exit_code"].as_i64().unwrap().max(1), i64::from(code.max(1)), "{json}");
        assert!(!json["check"]["findings"].as_array().unwrap().is_empty(), "{json}");
        assert!(json["last_sync"]["at"].is_string() && json["lineages"][0]["sites"].is_array(), "{json}");
    }
}
