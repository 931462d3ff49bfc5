//! Measures what a run of the hook costs and prints it beside the targets: `cargo run --example figures`.
//!
//! The server is nginx on loopback (TLS 1.3, a P-256 certificate). The program fails only if a figure could not be
//! measured, and then names the missing Debian package; it does not compare figures with targets.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this program prints its results")]

mod checks;
mod fixture;
mod measure;
mod proxy;
mod server;
mod sync;
mod system;
mod table;
mod wall_time;

use std::process::ExitCode;

use crate::fixture::Fixture;
use crate::sync::UnchangedLineages;
use crate::table::Table;
use crate::wall_time::Comparison;

fn main() -> ExitCode {
    let fixture = match Fixture::new() {
        Ok(fixture) => fixture,
        Err(error) => {
            eprintln!("figures: error: {error:#}; nothing was measured");
            return ExitCode::FAILURE;
        }
    };
    println!("{}\n", fixture.environment());
    let mut table = Table::default();
    if !std::env::args().any(|arg| arg == "sync") {
        add_instructions(&fixture, &mut table);
        add_upload(&fixture, &mut table);
        add_dependencies(&mut table);
        add_wall_time(&fixture, &mut table);
    }
    add_sync(&fixture, &mut table);
    print!("{table}");
    if table.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn add_instructions(fixture: &Fixture, table: &mut Table) {
    let upload = || measure::instructions(fixture, fixture.upload_call(fixture.server()?.port()));
    table.add("instructions in user space, bare upload", upload().map(millions), "14 M");
    let startup = measure::instructions(fixture, fixture.version_call());
    let cost = startup.as_ref().map(|count| millions(*count)).map_err(copy_error);
    table.add("instructions in user space, --version", cost, "");
    for key_type in checks::KEY_TYPES {
        let cost = startup.as_ref().map_err(copy_error);
        let cost = cost.and_then(|startup| checks::single_check(fixture, &key_type, *startup));
        let figure = format!("instructions of all local checks, {}", key_type.name);
        table.add(&figure, cost.map(millions), "");
    }
    let rounds = fixture::build_rounds();
    for key_type in checks::KEY_TYPES {
        let cost = rounds.as_ref().map_err(copy_error);
        let cost = cost.and_then(|rounds| checks::one_round(fixture, rounds, &key_type));
        let figure = format!("instructions of all local checks, repeated, {}", key_type.name);
        let target = key_type.target.map_or_else(String::new, |target| format!("{target} k"));
        table.add(&figure, cost.map(thousands), &target);
    }
}

fn add_upload(fixture: &Fixture, table: &mut Table) {
    let round_trips = proxy::round_trips(fixture).map(|count| count.to_string());
    table.add("round trips before the response", round_trips, "3");
    table.add("peak memory, maximum of five runs", measure::peak_memory(fixture).map(megabytes), "5 MB");
    table.add("size of the binary", measure::binary_size(fixture).map(megabytes), "3.3 MB");
}

fn add_dependencies(table: &mut Table) {
    let dependencies = measure::dependencies();
    let number = dependencies.as_ref().map(|crates| crates.len().to_string());
    table.add("crates in the tree, normal edges", number.map_err(copy_error), "");
    for name in measure::FORBIDDEN_CRATES {
        let found =
            dependencies.as_ref().map(|crates| if crates.contains(name) { "present" } else { "absent" });
        table.add(&format!("{name} in the tree"), found.map(str::to_owned).map_err(copy_error), "absent");
    }
}

fn add_wall_time(fixture: &Fixture, table: &mut Table) {
    let hook = wall_time::compare(fixture, Comparison::HookToCurl).map(|ratios| ratios.to_string());
    table.add("wall time, hook / curl with the POST only", hook, "0.16");
    let noise = wall_time::compare(fixture, Comparison::CurlToCurl).map(|ratios| ratios.to_string());
    table.add("wall time, curl / curl (the noise)", noise, "");
}

/// Adds the figures of `sync`; `cargo run --example figures sync` measures only these.
fn add_sync(fixture: &Fixture, table: &mut Table) {
    let cost = UnchangedLineages::new(fixture).and_then(|lineages| lineages.measure());
    let cost = cost.as_ref().map_err(copy_error);
    let figure = |name: &str| format!("{} unchanged lineages, {name}", sync::LINEAGES);
    let requests = cost.as_ref().map(|cost| cost.requests.to_string()).map_err(copy_error);
    table.add(&figure("requests"), requests, "2");
    let peak_memory = cost.as_ref().map(|cost| megabytes(cost.peak_memory)).map_err(copy_error);
    table.add(&figure("peak memory"), peak_memory, "");
    let wall_time = cost.as_ref().map(|cost| cost.wall_time.to_string()).map_err(copy_error);
    table.add(&figure("wall time / cat of their certificates"), wall_time, "");
}

/// Copies an error that affects several rows.
fn copy_error(error: &anyhow::Error) -> anyhow::Error {
    anyhow::anyhow!("{error:#}")
}

fn millions(count: u64) -> String {
    format!("{} M", in_millions(count))
}

fn thousands(count: u64) -> String {
    format!("{} k", (count + 500) / 1_000)
}

/// In units of a million bytes.
fn megabytes(bytes: u64) -> String {
    format!("{} MB", in_millions(bytes))
}

/// With two decimals.
fn in_millions(count: u64) -> String {
    let hundredths = (count + 5_000) / 10_000;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}
