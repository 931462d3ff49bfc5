//! The printed table: row of the goals, figure, ours, peer, ratio with its spread, goal, met or not.

use std::fmt;

use crate::usage::Spread;

/// What a figure is measured in.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// A ratio to the peer.
    Ratio,
    /// Instructions.
    Instructions,
    Bytes,
    Seconds,
    /// Whatever the figure's name says.
    Count,
}

/// What a figure should be.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
    /// Only to be seen beside the others.
    None,
}

/// The name of a figure, the number of its row in the table of goals, and its goal.
#[derive(Clone, Copy)]
pub(crate) struct Figure {
    pub(crate) row: u8,
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    pub(crate) goal: Goal,
}

/// A measured figure.
pub(crate) struct Measured {
    value: f64,
    ours: Option<(f64, Unit)>,
    peer: Option<(f64, Unit)>,
    spread: Option<Spread>,
}

/// The figures measured so far.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<(Figure, Measured)>,
}

impl Measured {
    /// A value that is compared with the goal only.
    pub(crate) fn value(value: f64) -> Self {
        Self { value, ours: None, peer: None, spread: None }
    }

    /// A value, and two that it was computed from.
    pub(crate) fn of_two(value: f64, ours: f64, peer: f64, unit: Unit) -> Self {
        Self { value, ours: Some((ours, unit)), peer: Some((peer, unit)), spread: None }
    }

    /// The median of our times. The spread is that of the ratios.
    pub(crate) fn time(spread: Spread) -> Self {
        Self { value: spread.ours, ..Self::spread(spread, Unit::Seconds) }
    }

    /// The median of a ratio of pairs.
    pub(crate) fn spread(spread: Spread, unit: Unit) -> Self {
        let (ours, peer) = (Some((spread.ours, unit)), Some((spread.peer, unit)));
        Self { value: spread.median(), ours, peer, spread: Some(spread) }
    }
}

impl Table {
    /// Adds a figure, and says so: all of them take some minutes.
    pub(crate) fn add(&mut self, figure: Figure, measured: Measured) {
        eprintln!("figures: {}: {}", figure.name, figure.unit.text(measured.value));
        self.rows.push((figure, measured));
    }

    /// Adds figures that were measured together.
    pub(crate) fn add_all<const N: usize>(&mut self, figures: [Figure; N], measured: [Measured; N]) {
        figures.into_iter().zip(measured).for_each(|(figure, value)| self.add(figure, value));
    }

    /// Whether every figure meets its goal.
    pub(crate) fn is_met(&self) -> bool {
        self.rows.iter().all(|(figure, measured)| figure.goal.is_met(measured.value) != Some(false))
    }
}

impl Goal {
    fn is_met(self, value: f64) -> Option<bool> {
        match self {
            Self::AtMost(goal) => Some(value <= goal),
            Self::AtLeast(goal) => Some(value >= goal),
            Self::None => None,
        }
    }

    fn text(self, unit: Unit) -> String {
        match self {
            Self::AtMost(goal) => format!("≤ {}", unit.text(goal)),
            Self::AtLeast(goal) => format!("≥ {}", unit.text(goal)),
            Self::None => String::new(),
        }
    }
}

impl Unit {
    fn text(self, value: f64) -> String {
        match self {
            Self::Ratio if value < 0.9995 => format!("{value:.3}"),
            Self::Ratio | Self::Count => plain(value),
            Self::Instructions if value < 1e6 => format!("{:.1} k", value / 1e3),
            Self::Instructions => format!("{} M", plain(value / 1e6)),
            Self::Bytes if value < 1e5 => format!("{:.2} KB", value / 1e3),
            Self::Bytes => format!("{} MB", plain(value / 1e6)),
            Self::Seconds if value < 1.0 => format!("{:.1} ms", value * 1e3),
            Self::Seconds => format!("{value:.2} s"),
        }
    }
}

/// Two decimals where they mean something.
fn plain(value: f64) -> String {
    if value >= 1e3 || value.fract().abs() < 1e-9 { format!("{value:.0}") } else { format!("{value:.2}") }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = ["row", "figure", "ours", "peer", "result (quartiles, pairs)", "goal", "met"];
        let mut lines = vec![header.map(str::to_owned)];
        lines.extend(self.rows.iter().map(|(figure, measured)| cells(*figure, measured)));
        let widths: [usize; 7] = std::array::from_fn(|column| {
            lines
                .iter()
                .filter_map(|line| line.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        });
        for (number, line) in lines.iter().enumerate() {
            let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
            writeln!(f, "{}", cells.collect::<Vec<_>>().join(" | ").trim_end())?;
            if number == 0 {
                writeln!(f, "{}", widths.map(|width| "-".repeat(width)).join("-|-"))?;
            }
        }
        Ok(())
    }
}

fn cells(figure: Figure, measured: &Measured) -> [String; 7] {
    let value = |value: Option<(f64, Unit)>| value.map_or_else(String::new, |(value, unit)| unit.text(value));
    let met = match figure.goal.is_met(measured.value) {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "",
    };
    let mut result = figure.unit.text(measured.value);
    if let Some(spread) = &measured.spread {
        let [low, high] = [1, 3].map(|quarter| Unit::Ratio.text(spread.quarter(quarter)));
        let ratio = if matches!(figure.unit, Unit::Ratio) { "" } else { "ratio " };
        result = format!("{result} ({ratio}{low} to {high}, {})", spread.pairs());
    }
    let (row, goal) = (figure.row.to_string(), figure.goal.text(figure.unit));
    [row, figure.name.to_owned(), value(measured.ours), value(measured.peer), result, goal, met.to_owned()]
}
