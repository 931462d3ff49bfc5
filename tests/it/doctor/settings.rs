//! `doctor --settings`: the settings in effect, with their origin.

use serde_json::Value;

use crate::harness::{Hook, edgecert};

fn list() -> Hook {
    edgecert().args(["doctor", "--settings"])
}

/// The row of a setting, as `value from origin`, or its error.
fn row(json: &Value, key: &str) -> String {
    let rows = json["settings"].as_array().unwrap();
    let row = rows.iter().find(|row| row["key"] == key && row["lineage"].is_null()).unwrap();
    let text = |field: &str| row[field].as_str().unwrap_or("nothing").to_owned();
    match row["error"].as_str() {
        Some(error) => format!("{error} ({})", text("origin")),
        None => format!("{} from {}", text("value"), text("origin")),
    }
}

#[test]
fn settings_name_their_origin() {
    let hook = list()
        .args(["--json", "--timeout", "60"])
        .env("EDGECERT_WAIT", "5")
        .env("EDGECERT_API_KEY", "hunter22");
    let text =
        "base_url = \"https://api.example.net\"\nrebind = true\n[[lineage]]\npath = \"/l\"\nwait = 7\n";
    let file = hook.write_file(".config/edgecert/config.toml", text);
    let output = hook.env("EDGECERT_CONFIG", &file).succeeds();
    let (json, file) = (output.json(), file.display().to_string());
    assert_eq!(row(&json, "config"), format!("{file} from variable EDGECERT_CONFIG"));
    assert_eq!(row(&json, "base_url"), format!("https://api.example.net from {file} line 1"));
    assert_eq!(row(&json, "rebind"), format!("true from {file} line 2"));
    assert_eq!(row(&json, "timeout"), "60 from flag --timeout");
    assert_eq!(row(&json, "wait"), "5 from variable EDGECERT_WAIT");
    assert_eq!(row(&json, "verify_every"), "86400 from default");
    assert_eq!(row(&json, "api_key"), "8 characters from variable EDGECERT_API_KEY");
    assert!(!output.stdout.contains("hunter22") && output.stderr.is_empty());
}

#[test]
fn settings_fill_a_table() {
    let hook = list().env("EDGECERT_API_KEY", "key").env("EDGECERT_WAIT", "soon");
    let text = "base_url = \"https://api.example.net\"\n[[lineage]]\npath = \"/l\"\nrebind = true\n";
    let stdout = hook.with_config(text).exits_with(78).stdout;
    let lines: Vec<Vec<&str>> = stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["SETTING", "VALUE", "FROM", "LINEAGE"], "{stdout}");
    let has = |words: &[&str]| lines.iter().any(|line| line.starts_with(words));
    assert!(has(&["wait", "invalid", "variable", "EDGECERT_WAIT"]), "{stdout}");
    assert!(stdout.contains("    EDGECERT_WAIT: "), "{stdout}");
    assert!(has(&["ca_file", "-"]) || has(&["ca_file"]), "{stdout}");
    let own = lines.iter().find(|line| line.last() == Some(&"/l")).unwrap();
    assert_eq!(own[..2], ["rebind", "true"], "{stdout}");
    assert!(has(&["api_key", "3", "characters"]), "{stdout}");
}
