//! A verdict for monitoring: one line in the style of the Monitoring Plugins, and an exit code.

use serde_json::{Value, json};

/// What is not as it should be; the discriminant is the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Level {
    Ok = 0,
    Warning = 1,
    Critical = 2,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// `None`: it is not about a lineage.
    pub(super) lineage: Option<String>,
    pub(super) text: String,
    /// Of the same level the more urgent one comes first.
    pub(super) urgency: i64,
}

/// What came of it.
pub(super) struct Verdict {
    pub(super) level: Level,
    /// The most severe first.
    pub(super) findings: Vec<Finding>,
    /// What is said where all is well, and the figures.
    pub(super) well: String,
    pub(super) figures: String,
}

impl Finding {
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
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
        }
    }

    pub(super) fn exit_code(self) -> u8 {
        self as u8
    }
}

impl Verdict {
    /// A verdict for a state that cannot be known.
    pub(super) fn failed(message: &str) -> Self {
        let (well, figures) = (String::new(), String::new());
        let mut verdict = Self { level: Level::Ok, findings: Vec::new(), well, figures };
        verdict.fail(message);
        verdict
    }

    /// Adds what failed on the way, before everything else.
    pub(super) fn fail(&mut self, message: &str) {
        self.level = Level::Critical;
        self.findings.insert(0, Finding::new(Level::Critical, None, message.to_owned(), 0));
    }

    /// The line, with its end.
    pub(super) fn to_line(&self) -> String {
        let said = match self.findings.as_slice() {
            [] => self.well.clone(),
            [only] => only.to_text(),
            [first, rest @ ..] => format!("{}; {} more", first.to_text(), rest.len()),
        };
        // A bar would begin the figures, and a line feed another line.
        let said: String = said.chars().map(|c| if c == '|' || c.is_control() { ' ' } else { c }).collect();
        let figures = if self.figures.is_empty() { String::new() } else { format!(" | {}", self.figures) };
        format!("EDGECERT {} - {said}{figures}\n", self.level.word())
    }

    /// The same for scripts, with every finding.
    pub(super) fn to_json(&self) -> Value {
        let finding = |finding: &Finding| {
            json!({
                "level": finding.level.word().to_lowercase(),
                "lineage": finding.lineage,
                "text": finding.text,
            })
        };
        json!({
            "level": self.level.word().to_lowercase(),
            "findings": self.findings.iter().map(finding).collect::<Value>(),
        })
    }
}
