//! Values in files of the state directory that no release writes.

use std::fs;
use std::path::Path;

use crate::harness::Host;
use serde_json::{Value, json};

/// Paths to all fields of a file, as JSON pointers.
fn pointers(json: &Value, path: &str) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match json {
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => return vec![path.to_owned()],
    };
    inner.into_iter().flat_map(|(name, value)| pointers(value, &format!("{path}/{name}"))).collect()
}

/// Copies of a file, each with one hostile value.
fn hostile_copies(file: &Path) -> Vec<Value> {
    let values = [
        json!(0),
        json!(-1),
        json!(9_007_199_254_740_993_u64),
        json!(u64::MAX),
        json!(1e308),
        json!("0001-01-01T00:00:00Z"),
        json!("0000-01-01T00:00:00+05:00"),
        json!("9999-12-31T23:59:59Z"),
        json!("9999-12-31T23:59:59-05:00"),
    ];
    let valid: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let with = |pointer: &str, value: &Value| {
        let mut copy = valid.clone();
        *copy.pointer_mut(pointer).unwrap() = value.clone();
        copy
    };
    let pointers = pointers(&valid, "");
    pointers.iter().flat_map(|pointer| values.iter().map(|value| with(pointer, value))).collect()
}

#[test]
fn hostile_values_are_no_internal_error() {
    let host = Host::deployed();
    host.sync().succeeds();
    for (number, copy) in hostile_copies(&host.state_file()).iter().enumerate() {
        fs::write(host.state().join(format!("copy-{number}.json")), copy.to_string()).unwrap();
    }
    let records = hostile_copies(&host.state().join("last-sync"));
    for (number, copy) in records.iter().enumerate() {
        let name = format!("last-sync-{number}-of-{}", records.len());
        fs::write(host.state().join(name), copy.to_string()).unwrap();
    }
    let metrics = host.state().join("metrics");
    let commands =
        ["status", "status --check", "status --json", "status --metrics METRICS", "sync --timeout 1"];
    for command in commands {
        let hook = crate::harness::edgecert().with_state(host.state());
        let hook = hook.env("EDGECERT_BASE_URL", "http://127.0.0.1:1").env("EDGECERT_API_KEY", "k");
        let command = command.replace("METRICS", metrics.to_str().unwrap());
        let output = hook.args(command.split(' ')).run();
        let text = output.stdout + &output.stderr;
        assert!(output.code != 70 && !text.contains("internal error"), "{command}: {text:.2000}");
    }
}
