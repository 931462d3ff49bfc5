//! The verdict of `status --check` in the format of the Monitoring Plugins: a short first line with performance data, a
//! line for each problem, and an exit code.

use std::fmt::Write as _;

use serde_json::{Value, json};
use time::Duration;

use super::assessment::{Assessment, Gauge, Level, Problem, Quantity};
use super::fleet::Subject;
use crate::text::{count, humanize};

/// The result of the check.
#[derive(Debug, Default)]
pub(super) struct CheckVerdict<'a> {
    /// Those above OK, the most severe first.
    problems: Vec<Problem<'a>>,
    gauges: Vec<Gauge<'a>>,
    /// The text if there is no problem.
    summary: String,
    performance_data: String,
}

/// Maximum length of the first line up to the bar, in characters: what a pager shows.
const MAX_FIRST_LINE: usize = 80;
/// Longer names of lineages are cut in the first line, to leave room for what is wrong.
const MAX_NAME: usize = 30;
/// Problems beyond this number are only counted.
const MAX_DETAILS: usize = 20;

impl<'a> CheckVerdict<'a> {
    pub(super) fn new(assessment: Assessment<'a>) -> Self {
        let (mut problems, gauges) = (assessment.problems(), assessment.gauges());
        problems.retain(|problem| problem.level > Level::Ok);
        // The one that is nearest to its thresholds, or farthest beyond them.
        let worst = |quantity| {
            let gauges = gauges.iter().filter(|gauge| gauge.quantity == quantity);
            gauges.max_by(|a, b| a.compare(b)).copied()
        };
        let none = || assessment.gauge(Quantity::Lag, Subject::default(), Duration::ZERO, None);
        let lag = worst(Quantity::Lag).unwrap_or_else(none);
        let left = worst(Quantity::TimeLeft);
        let lineages = &assessment.fleet.lineages;
        let pending = lineages.iter().filter(|lineage| lineage.pending.is_some()).count();
        let mut performance_data = format!("pending={pending};;;0");
        for gauge in [Some(lag), left, worst(Quantity::SyncAge)].into_iter().flatten() {
            let _ = write!(performance_data, " {}", gauge.performance_data());
        }
        let pending = match pending {
            0 => "nothing pending".to_owned(),
            pending => format!("{pending} pending within the limit"),
        };
        let left = left.map(|gauge| format!(", {} left", humanize(gauge.value))).unwrap_or_default();
        let summary = format!("{}, {pending}{left}", count(lineages.len(), "lineage"));
        Self { problems, gauges, summary, performance_data }
    }

    /// Adds a failure of the check itself. Problems that were found outrank it.
    pub(super) fn fail(mut self, text: &str, detail: &str) -> Self {
        self.problems.push(Problem::new(Level::Unknown, Subject::default(), text).detail(detail));
        self
    }

    pub(super) fn level(&self) -> Level {
        self.problems.iter().map(|problem| problem.level).max().unwrap_or(Level::Ok)
    }

    pub(super) fn exit_code(&self) -> u8 {
        match self.level() {
            Level::Ok => 0,
            Level::Warning => 1,
            Level::Critical => 2,
            Level::Unknown => 3,
        }
    }

    /// Why the level is UNKNOWN; `None` if it is not.
    pub(super) fn failure(&self) -> Option<String> {
        self.problems.first().filter(|_| self.level() == Level::Unknown).map(text)
    }

    /// The lines, each with its line feed.
    pub(super) fn to_text(&self) -> String {
        let head = format!("EDGECERT {} - ", self.level()).to_uppercase();
        // One for the space before the bar.
        let max = MAX_FIRST_LINE - 1 - head.len();
        let first = match self.problems.as_slice() {
            [] => cut(&self.summary, max),
            [only] => short_text(only, max),
            [first, rest @ ..] => {
                let rest = format!("; {} more", rest.len());
                short_text(first, max - rest.len()) + &rest
            }
        };
        let bar = if self.performance_data.is_empty() { "" } else { " | " };
        let mut lines = format!("{head}{first}{bar}{}\n", self.performance_data);
        for problem in self.problems.iter().take(MAX_DETAILS) {
            let level = problem.level.to_string().to_uppercase();
            let _ = writeln!(lines, "{level}: {}", text(problem));
        }
        if self.problems.len() > MAX_DETAILS {
            let _ = writeln!(lines, "and {} more", self.problems.len() - MAX_DETAILS);
        }
        lines
    }

    /// The JSON object with all problems, and all values with their thresholds.
    pub(super) fn to_json(&self) -> Value {
        let finding = |problem: &Problem<'_>| {
            json!({
                "level": problem.level,
                "lineage": problem.subject.lineage,
                "site": problem.subject.site,
                "hint": problem.hint,
                "text": printable(&format!("{}{}", problem.text, problem.detail)),
            })
        };
        let value = |gauge: &Gauge<'_>| {
            let [warning, critical] = gauge.limits.map(|limit| limit.map(Duration::whole_seconds));
            json!({
                "quantity": gauge.quantity,
                "lineage": gauge.subject.lineage,
                "site": gauge.subject.site,
                "seconds": gauge.value.whole_seconds(),
                "warning": warning,
                "critical": critical,
            })
        };
        json!({
            "level": self.level(),
            "findings": self.problems.iter().map(finding).collect::<Value>(),
            "values": self.gauges.iter().map(value).collect::<Value>(),
        })
    }
}

/// The sentence of a problem after the name of its lineage.
fn text(problem: &Problem<'_>) -> String {
    let lineage = problem.subject.lineage.map(|lineage| format!("{lineage}: "));
    printable(&(lineage.unwrap_or_default() + &problem.sentence()))
}

/// The text in at most this many characters, with the cause and what helps if these fit.
fn short_text(problem: &Problem<'_>, max: usize) -> String {
    let lineage = problem.subject.lineage.map(|lineage| format!("{}: ", cut(lineage, MAX_NAME)));
    let lineage = lineage.unwrap_or_default();
    let longer = [problem.sentence(), format!("{}{}", problem.text, problem.detail)];
    let longer = longer.map(|text| format!("{lineage}{text}"));
    let fitting = longer.into_iter().find(|line| line.chars().count() <= max);
    printable(&fitting.unwrap_or_else(|| cut(&format!("{lineage}{}", problem.text), max)))
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

    fn problem<'a>(level: Level, lineage: &'a str, text: &str) -> Problem<'a> {
        Problem::new(level, Subject { lineage: Some(lineage), site: None }, text)
    }

    fn verdict(problems: Vec<Problem<'_>>) -> CheckVerdict<'_> {
        CheckVerdict { problems, performance_data: "pending=1;;;0".into(), ..CheckVerdict::default() }
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
            let verdict = verdict(levels.iter().map(|level| problem(*level, "x", "y")).collect());
            assert_eq!(verdict.exit_code(), expected, "{levels:?}");
            assert!(
                verdict.to_text().starts_with(&format!("EDGECERT {} - ", verdict.level()).to_uppercase())
            );
        }
    }

    #[test]
    fn first_line_fits_a_pager() {
        let long = "würde ".repeat(40);
        for (lineage, text) in [("shop", &*long), (&*long, "short"), (&*long, &*long), ("", ""), ("x", "y")] {
            for count in [1, 2, 12_345] {
                let text = verdict(vec![problem(Level::Critical, lineage, text); count]).to_text();
                let line = text.lines().next().unwrap().split_once('|').unwrap();
                assert!(line.0.chars().count() <= 80, "{line:?}");
                assert_eq!(line.1, " pending=1;;;0");
                if count > 1 {
                    assert!(line.0.ends_with(&format!("; {} more ", count - 1)), "{line:?}");
                }
            }
        }
        let text = verdict(vec![problem(Level::Warning, "shop", &"x".repeat(70))]).to_text();
        assert_eq!(text.lines().next().unwrap().split_once(" |").unwrap().0.len(), 79);
        assert!(text.contains("x... |"), "{text}");
        // A detail is complete, or left out.
        let detailed =
            |detail: &str| verdict(vec![problem(Level::Warning, "shop", "late").detail(detail)]).to_text();
        assert!(detailed(" (the reason)").starts_with("EDGECERT WARNING - shop: late (the reason) | "));
        let text = detailed(&format!(" ({})", "x".repeat(60)));
        assert!(
            text.starts_with("EDGECERT WARNING - shop: late | ") && text.contains("WARNING: shop: late (xxx")
        );
    }

    #[test]
    fn each_problem_has_a_line() {
        let problems = vec![
            problem(Level::Critical, "a", &"x".repeat(100)),
            problem(Level::Warning, "b", "a|b\nEDGECERT OK - c\u{1b}[0m"),
            problem(Level::Unknown, "c", "no"),
        ];
        let text = verdict(problems).to_text();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let first = format!("CRITICAL: a: {}", "x".repeat(100));
        assert_eq!(lines, [&*first, "WARNING: b: a b EDGECERT OK - c [0m", "UNKNOWN: c: no"]);
        assert_eq!(text.matches('|').count(), 1);

        let text = verdict(vec![problem(Level::Warning, "a", "b"); 33]).to_text();
        assert_eq!((text.lines().count(), text.lines().last()), (22, Some("and 13 more")));
    }
}
