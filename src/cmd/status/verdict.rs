//! The verdict of `status --check` in the format of the Monitoring Plugins: a short first line with performance data, a
//! line for each alert, and an exit code.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use super::gauge::Gauge;
use crate::text::display_as_serialized;

/// Service state, the least severe first. A problem that was found outranks what could not be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Level {
    Ok,
    Unknown,
    Warning,
    Critical,
}

display_as_serialized!(Level);

/// One reason for a level other than OK.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Alert {
    pub(super) level: Level,
    /// `None`: it is not about one lineage.
    pub(super) lineage: Option<String>,
    pub(super) text: String,
    /// Follows the text if there is room.
    pub(super) detail: String,
    /// Orders the alerts of one level, the highest first.
    pub(super) urgency: f64,
}

/// A gauge of a lineage, a site, or the host.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measurement {
    pub(super) gauge: Gauge,
    pub(super) lineage: Option<String>,
    pub(super) site: Option<String>,
}

/// The result of the check.
#[derive(Debug, Default)]
pub(super) struct CheckVerdict {
    /// The most severe first, once sorted.
    pub(super) alerts: Vec<Alert>,
    /// The text if there is no alert.
    pub(super) summary: String,
    pub(super) performance_data: String,
    pub(super) measurements: Vec<Measurement>,
}

/// Maximum length of the first line up to the bar, in characters: what a pager shows.
const MAX_FIRST_LINE: usize = 80;
/// Longer names of lineages are cut in the first line, to leave room for what is wrong.
const MAX_NAME: usize = 30;
/// Alerts beyond this number are only counted.
const MAX_DETAILS: usize = 20;

impl Alert {
    pub(super) fn new(level: Level, lineage: Option<&str>, text: &str) -> Self {
        let (lineage, text) = (lineage.map(str::to_owned), printable(text));
        Self { level, lineage, text, detail: String::new(), urgency: 0.0 }
    }

    /// Creates an alert from an error message. Such messages often say what is wrong before a colon or semicolon, and
    /// why, or what to do, after it.
    pub(super) fn from_message(level: Level, message: &str) -> Self {
        let end = [": ", "; "].into_iter().filter_map(|end| message.find(end)).min();
        let (text, detail) = message.split_at(end.unwrap_or(message.len()));
        Self::new(level, None, text).with_detail(detail)
    }

    pub(super) fn with_detail(self, detail: &str) -> Self {
        Self { detail: printable(detail), ..self }
    }

    pub(super) fn with_urgency(self, urgency: f64) -> Self {
        Self { urgency, ..self }
    }

    /// The text with the name of the lineage, and with the detail.
    fn to_text(&self) -> String {
        let lineage = self.lineage.as_ref().map(|lineage| format!("{}: ", printable(lineage)));
        format!("{}{}{}", lineage.unwrap_or_default(), self.text, self.detail)
    }

    /// The text in at most this many characters, without the detail if that does not fit.
    fn to_short_text(&self, max: usize) -> String {
        let lineage =
            self.lineage.as_ref().map(|lineage| format!("{}: ", cut(&printable(lineage), MAX_NAME)));
        let text = lineage.unwrap_or_default() + &self.text;
        if text.chars().count() + self.detail.chars().count() <= max {
            return text + &self.detail;
        }
        cut(&text, max)
    }
}

impl Level {
    pub(super) fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Warning => 1,
            Self::Critical => 2,
            Self::Unknown => 3,
        }
    }

    fn to_lowercase(self) -> String {
        self.to_string().to_lowercase()
    }
}

impl CheckVerdict {
    /// The verdict if the status cannot be determined.
    pub(super) fn failed(message: &str) -> Self {
        let mut verdict = Self::default();
        verdict.fail(message);
        verdict
    }

    /// Adds a failure of the check itself.
    pub(super) fn fail(&mut self, message: &str) {
        self.alerts.push(Alert::from_message(Level::Unknown, message));
        self.sort();
    }

    /// Puts the most severe alert first. Otherwise, they keep their order.
    pub(super) fn sort(&mut self) {
        self.alerts.sort_by(|a, b| b.level.cmp(&a.level).then_with(|| b.urgency.total_cmp(&a.urgency)));
    }

    pub(super) fn level(&self) -> Level {
        self.alerts.iter().map(|alert| alert.level).max().unwrap_or(Level::Ok)
    }

    /// Why the level is UNKNOWN; `None` if it is not.
    pub(super) fn failure(&self) -> Option<String> {
        let first = self.alerts.first().filter(|alert| alert.level == Level::Unknown);
        first.map(Alert::to_text)
    }

    /// The lines, each with its line feed.
    pub(super) fn to_text(&self) -> String {
        let mut text = self.first_line();
        for alert in self.alerts.iter().take(MAX_DETAILS) {
            let _ = writeln!(text, "{}: {}", alert.level, alert.to_text());
        }
        if self.alerts.len() > MAX_DETAILS {
            let _ = writeln!(text, "and {} more", self.alerts.len() - MAX_DETAILS);
        }
        text
    }

    fn first_line(&self) -> String {
        let head = format!("EDGECERT {} - ", self.level());
        // One for the space before the bar.
        let max = MAX_FIRST_LINE - 1 - head.len();
        let text = match self.alerts.as_slice() {
            [] => cut(&self.summary, max),
            [only] => only.to_short_text(max),
            [first, rest @ ..] => {
                let rest = format!("; {} more", rest.len());
                first.to_short_text(max - rest.len()) + &rest
            }
        };
        let performance_data = match self.performance_data.as_str() {
            "" => String::new(),
            data => format!(" | {data}"),
        };
        format!("{head}{text}{performance_data}\n")
    }

    /// The JSON object with all alerts, and all values with their thresholds.
    pub(super) fn to_json(&self) -> Value {
        let alert = |alert: &Alert| json!({"level": alert.level.to_lowercase(), "lineage": alert.lineage, "text": format!("{}{}", alert.text, alert.detail)});
        let value = |measured: &Measurement| {
            json!(measured.gauge.to_json(measured.lineage.as_deref(), measured.site.as_deref()))
        };
        json!({
            "level": self.level().to_lowercase(),
            "findings": self.alerts.iter().map(alert).collect::<Value>(),
            "values": self.measurements.iter().map(value).collect::<Value>(),
        })
    }
}

/// Replaces bars, which begin performance data, and control characters, such as line feeds, by spaces.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c == '|' || c.is_control() { ' ' } else { c }).collect()
}

/// Cuts text to this many characters.
fn cut(text: &str, max: usize) -> String {
    const ELLIPSIS: &str = "...";
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let start: String = text.chars().take(max.saturating_sub(ELLIPSIS.len())).collect();
    format!("{}{ELLIPSIS}", start.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alert(level: Level, lineage: &str, text: &str) -> Alert {
        Alert::new(level, Some(lineage), text)
    }

    fn verdict(alerts: Vec<Alert>) -> CheckVerdict {
        let mut verdict =
            CheckVerdict { alerts, performance_data: "pending=1;;;0".into(), ..CheckVerdict::default() };
        verdict.sort();
        verdict
    }

    #[test]
    fn problems_outrank_failed_checks() {
        let rows: [(&[Level], u8); 7] = [
            (&[], 0),
            (&[Level::Unknown], 3),
            (&[Level::Warning], 1),
            (&[Level::Critical], 2),
            (&[Level::Unknown, Level::Warning], 1),
            (&[Level::Warning, Level::Critical, Level::Unknown], 2),
            (&[Level::Unknown, Level::Unknown], 3),
        ];
        for (levels, expected) in rows {
            let verdict = verdict(levels.iter().map(|level| alert(*level, "x", "y")).collect());
            assert_eq!(verdict.level().exit_code(), expected, "{levels:?}");
            assert!(verdict.first_line().starts_with(&format!("EDGECERT {} - ", verdict.level())));
        }
    }

    #[test]
    fn first_line_fits_a_pager() {
        let long = "würde ".repeat(40);
        for (lineage, text) in [("shop", &*long), (&*long, "short"), (&*long, &*long), ("", ""), ("x", "y")] {
            for count in [1, 2, 12_345] {
                let text = verdict(vec![alert(Level::Critical, lineage, text); count]).to_text();
                let line = text.lines().next().unwrap().split_once('|').unwrap();
                assert!(line.0.chars().count() <= 80, "{line:?}");
                assert_eq!(line.1, " pending=1;;;0");
                if count > 1 {
                    assert!(line.0.ends_with(&format!("; {} more ", count - 1)), "{line:?}");
                }
            }
        }
        let text = verdict(vec![alert(Level::Warning, "shop", &"x".repeat(70))]).to_text();
        assert_eq!(text.lines().next().unwrap().split_once(" |").unwrap().0.len(), 79);
        assert!(text.contains("x... |"), "{text}");
        // A detail is complete, or left out.
        let detailed =
            |detail: &str| verdict(vec![alert(Level::Warning, "shop", "late").with_detail(detail)]).to_text();
        assert!(detailed(" (the reason)").starts_with("EDGECERT WARNING - shop: late (the reason) | "));
        let text = detailed(&format!(" ({})", "x".repeat(60)));
        assert!(
            text.starts_with("EDGECERT WARNING - shop: late | ") && text.contains("WARNING: shop: late (xxx")
        );
    }

    #[test]
    fn message_is_split_into_text_and_detail() {
        for (message, text) in [
            ("cannot read /x: no such file; name another", "cannot read /x"),
            ("sync never ran; check its timer: now", "sync never ran"),
            ("timed out", "timed out"),
        ] {
            let alert = Alert::from_message(Level::Unknown, message);
            assert_eq!((&*alert.text, alert.to_text()), (text, message.to_owned()));
        }
    }

    #[test]
    fn each_alert_has_a_line() {
        let alerts = [
            alert(Level::Unknown, "c", "no"),
            alert(Level::Warning, "b", "a|b\nEDGECERT OK - c\u{1b}[0m"),
            alert(Level::Warning, "z", "sooner").with_urgency(1.0),
            alert(Level::Critical, "a", &"x".repeat(100)),
        ];
        let text = verdict(alerts.to_vec()).to_text();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let first = format!("CRITICAL: a: {}", "x".repeat(100));
        assert_eq!(
            lines,
            [&*first, "WARNING: z: sooner", "WARNING: b: a b EDGECERT OK - c [0m", "UNKNOWN: c: no"]
        );
        assert_eq!(text.matches('|').count(), 1);

        let text = verdict(vec![alert(Level::Warning, "a", "b"); 33]).to_text();
        assert_eq!((text.lines().count(), text.lines().last()), (22, Some("and 13 more")));
    }
}
