//! The structure of the Grafana dashboard. `prometheus.rs` runs its queries.

use serde_json::{Value, json};

use crate::readme::read;

const DASHBOARD: &str = "hooks/prometheus/dashboard.json";

fn dashboard() -> Value {
    serde_json::from_str(&read(DASHBOARD)).unwrap()
}

/// The queries of all panels, with every host selected.
pub(super) fn queries() -> Vec<String> {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().replace("$instance", ".*")).collect()
}

#[test]
fn dashboard_is_importable_anywhere() {
    let dashboard = dashboard();
    let variables: Vec<_> = dashboard["templating"]["list"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variable| &variable["name"])
        .collect();
    assert_eq!(variables, ["datasource", "instance"]);
    assert!(dashboard.get("id").is_none_or(Value::is_null), "an ID belongs to one installation");
    // Every data source is the one that the user selects.
    let chosen = json!({"type": "prometheus", "uid": "${datasource}"});
    assert_eq!(dashboard["templating"]["list"][1]["datasource"], chosen);
    for panel in dashboard["panels"].as_array().unwrap() {
        assert_eq!(panel["datasource"], chosen, "{}", panel["title"]);
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"], chosen, "{}", panel["title"]);
            assert!(target["expr"].as_str().unwrap().contains("$instance"), "{target}");
        }
    }
}
