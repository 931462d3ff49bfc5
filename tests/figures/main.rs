//! Measures what the hook costs, beside its peers and the goals:
//! `cargo run --release --example figures [single|checks|fleet|bulk|delay|size]…`.
//!
//! The service is nginx on loopback. `EDGECERT_BIN` names another binary to measure. The program fails if a goal is
//! missed or a figure cannot be measured, and names the Debian package that is missing.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this program prints its results")]
#![allow(clippy::cast_precision_loss, reason = "figures are far below 2^52")]

mod bulk;
mod checks;
mod fixture;
mod fleet;
mod observe;
mod proxy;
mod server;
mod single;
mod size;
mod system;
mod table;
mod usage;

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::fixture::Fixture;
use crate::table::Table;

/// A part of the figures, which adds its rows.
type Group = fn(&Fixture, &mut Table) -> Result<()>;

const GROUPS: [(&str, Group); 6] = [
    ("single", single::add),
    ("checks", checks::add),
    ("fleet", fleet::add),
    ("bulk", bulk::add),
    ("delay", bulk::add_delayed),
    ("size", size::add),
];

fn main() -> ExitCode {
    match select(std::env::args().skip(1)).and_then(|groups| measure(&groups)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("figures: error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The groups that the arguments name, all of them if there is none.
fn select(args: impl Iterator<Item = String>) -> Result<Vec<Group>> {
    let mut groups = Vec::new();
    for arg in args {
        match GROUPS.iter().find(|(name, _)| *name == arg) {
            Some((_, group)) => groups.push(*group),
            None => bail!("usage: figures [{}]…", GROUPS.map(|(name, _)| name).join("|")),
        }
    }
    Ok(if groups.is_empty() { GROUPS.map(|(_, group)| group).into() } else { groups })
}

/// Measures the groups and prints the table, as far as it got; returns whether all goals are met.
fn measure(groups: &[Group]) -> Result<bool> {
    let fixture = Fixture::new()?;
    let mut table = Table::default();
    let result = groups.iter().try_for_each(|add| add(&fixture, &mut table));
    print!("{}\n\n{table}", fixture.environment()?);
    result.map(|()| table.is_met())
}
