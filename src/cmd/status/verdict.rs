//! The verdict of `status --check`: one line in the format of the Monitoring Plugins, and an exit code.

use serde::Serialize;
use serde_json::{Value, json};

use crate::text::display_as_serialized;

/// Service state. The discriminant is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
#[repr(u8)]
pub(super) enum Level {
    Ok = 0,
    Warning = 1,
    Critical = 2,
}

display_as_serialized!(Level);

/// One reason for a level other than OK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Alert {
    pub(super) level: Level,
    /// `None`: it is not about one lineage.
    pub(super) lineage: Option<String>,
    pub(super) text: String,
    /// Orders the alerts of one level, the highest first.
    pub(super) urgency: i64,
}

/// The result of the check.
pub(super) struct CheckVerdict {
    pub(super) level: Level,
    /// The most severe first.
    pub(super) alerts: Vec<Alert>,
    /// The text if there is no alert.
    pub(super) summary: String,
    pub(super) performance_data: String,
}

impl Alert {
    pub(super) fn new(level: Level, lineage: Option<String>, text: String, urgency: i64) -> Self {
        Self { level, lineage, text, urgency }
    }

    fn to_text(&self) -> String {
        match &self.lineage {
            Some(lineage) => format!("{lineage}: {}", self.text),
            None => self.text.clone(),
        }
    }
}

impl Level {
    pub(super) fn exit_code(self) -> u8 {
        self as u8
    }

    fn to_lowercase(self) -> String {
        self.to_string().to_lowercase()
    }
}

impl CheckVerdict {
    /// The verdict if the status cannot be determined.
    pub(super) fn failed(message: &str) -> Self {
        let (summary, performance_data) = (String::new(), String::new());
        let mut verdict = Self { level: Level::Ok, alerts: Vec::new(), summary, performance_data };
        verdict.fail(message);
        verdict
    }

    /// Adds a failure of the check itself, before all alerts.
    pub(super) fn fail(&mut self, message: &str) {
        self.level = Level::Critical;
        self.alerts.insert(0, Alert::new(Level::Critical, None, message.to_owned(), 0));
    }

    /// The line with its line feed.
    pub(super) fn to_line(&self) -> String {
        let text = match self.alerts.as_slice() {
            [] => self.summary.clone(),
            [only] => only.to_text(),
            [first, rest @ ..] => format!("{}; {} more", first.to_text(), rest.len()),
        };
        // A bar begins the performance data, and a line feed another line.
        let text: String = text.chars().map(|c| if c == '|' || c.is_control() { ' ' } else { c }).collect();
        let performance_data = match self.performance_data.as_str() {
            "" => String::new(),
            data => format!(" | {data}"),
        };
        format!("EDGECERT {} - {text}{performance_data}\n", self.level)
    }

    /// The JSON object with all alerts.
    pub(super) fn to_json(&self) -> Value {
        let alert = |alert: &Alert| json!({"level": alert.level.to_lowercase(), "lineage": alert.lineage, "text": alert.text});
        json!({
            "level": self.level.to_lowercase(),
            "findings": self.alerts.iter().map(alert).collect::<Value>(),
        })
    }
}
