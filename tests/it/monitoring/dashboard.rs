//! The structure of the Grafana dashboard. `prometheus.rs` runs its queries.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::readme::read;

const DASHBOARD: &str = "hooks/prometheus/dashboard.json";
/// Columns of Grafana's grid.
const COLUMNS: u64 = 24;

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

#[test]
fn panels_are_unique_and_do_not_overlap() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let texts = |key: &str| panels.iter().map(|panel| panel[key].to_string()).collect::<BTreeSet<_>>();
    assert_eq!((texts("id").len(), texts("title").len()), (panels.len(), panels.len()), "unique");
    let mut cells = BTreeSet::new();
    for panel in panels {
        assert!(!panel["description"].as_str().unwrap().is_empty());
        let [x, y, width, height] = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        assert!(x + width <= COLUMNS, "{}", panel["title"]);
        for cell in (x..x + width).flat_map(|x| (y..y + height).map(move |y| (x, y))) {
            assert!(cells.insert(cell), "{} covers another panel", panel["title"]);
        }
    }
}
