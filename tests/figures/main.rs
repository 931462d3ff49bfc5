//! Prints what one call of the hook costs, beside the figures it is meant to reach: `cargo run --example figures`.
//!
//! The hook meets a real server (nginx, TLS 1.3, a P-256 certificate) on loopback. Nothing here judges the
//! figures: the program fails only where one could not be measured, and then names the Debian package that is
//! missing.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this program is for")]

mod checks;
mod fleet;
mod measure;
mod proxy;
mod race;
mod scene;
mod server;
mod system;
mod table;

use std::process::ExitCode;

use crate::fleet::Fleet;
use crate::race::Contest;
use crate::scene::Scene;
use crate::table::Table;

fn main() -> ExitCode {
    let scene = match Scene::set() {
        Ok(scene) => scene,
        Err(error) => {
            eprintln!("figures: nothing was measured: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    println!("{}\n", scene.peers());
    let fleet_only = std::env::args().any(|argument| argument == "fleet");
    let table = if fleet_only { fleet_alone(&scene) } else { measured(&scene) };
    print!("{table}");
    if table.is_complete() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Every figure in turn; one that fails does not keep the others from being taken.
fn measured(scene: &Scene) -> Table {
    let mut table = Table::default();
    let upload = || measure::instructions(scene, scene.upload(scene.server()?.port()));
    table.add("instructions in user space, bare upload", upload().map(millions), "14 M");
    let start = measure::instructions(scene, scene.version());
    let shown = start.as_ref().map(|count| millions(*count)).map_err(again);
    table.add("instructions in user space, --version", shown, "");
    for kind in checks::KINDS {
        let cost = start.as_ref().map_err(again).and_then(|start| checks::alone(scene, &kind, *start));
        let figure = format!("instructions of all local checks, {}", kind.name);
        table.add(&figure, cost.map(millions), "");
    }
    let rounds = scene::rounds();
    for kind in checks::KINDS {
        let cost = rounds.as_ref().map_err(again).and_then(|rounds| checks::round(scene, rounds, &kind));
        let figure = format!("instructions of the same once more, {}", kind.name);
        table.add(
            &figure,
            cost.map(thousands),
            &kind.reachable.map_or_else(String::new, |most| format!("{most} k")),
        );
    }
    table.add("round trips before the answer", proxy::round_trips(scene).map(|count| count.to_string()), "3");
    table.add("peak memory, largest of five", measure::peak_memory(scene).map(megabytes), "5 MB");
    table.add("size of the binary", measure::size(scene).map(megabytes), "3.3 MB");
    let crates = measure::crates();
    let number = crates.as_ref().map(|names| names.len().to_string());
    table.add("crates in the tree, normal edges", number.map_err(again), "");
    for name in measure::UNWANTED {
        let found = crates.as_ref().map(|names| if names.contains(name) { "present" } else { "absent" });
        table.add(&format!("{name} in the tree"), found.map(str::to_owned).map_err(again), "absent");
    }
    let hook = race::run(scene, Contest::HookAgainstCurl).map(|ratios| ratios.to_string());
    table.add("wall time, hook / curl with the POST only", hook, "0.16");
    let noise = race::run(scene, Contest::CurlAgainstItself).map(|ratios| ratios.to_string());
    table.add("wall time, curl / curl (the noise)", noise, "");
    add_fleet(scene, &mut table);
    table
}

/// What `sync` costs; `cargo run --example figures fleet` takes these figures alone.
fn fleet_alone(scene: &Scene) -> Table {
    let mut table = Table::default();
    add_fleet(scene, &mut table);
    table
}

fn add_fleet(scene: &Scene, table: &mut Table) {
    let fleet = Fleet::set(scene).and_then(|fleet| fleet.measure());
    let fleet = fleet.as_ref().map_err(again);
    let figure = |name: &str| format!("{} unchanged lineages, {name}", fleet::LINEAGES);
    table.add(&figure("requests"), fleet.as_ref().map(|cost| cost.requests.to_string()).map_err(again), "2");
    table.add(&figure("peak memory"), fleet.as_ref().map(|cost| megabytes(cost.memory)).map_err(again), "");
    let wall = fleet.as_ref().map(|cost| cost.wall.to_string()).map_err(again);
    table.add(&figure("wall time / cat of their certificates"), wall, "");
}

/// The same failure for another row.
fn again(error: &anyhow::Error) -> anyhow::Error {
    anyhow::anyhow!("{error:#}")
}

fn millions(count: u64) -> String {
    format!("{} M", in_millions(count))
}

fn thousands(count: u64) -> String {
    format!("{} k", (count + 500) / 1_000)
}

/// Of a million bytes each.
fn megabytes(bytes: u64) -> String {
    format!("{} MB", in_millions(bytes))
}

/// With two decimals.
fn in_millions(count: u64) -> String {
    let hundredths = (count + 5_000) / 10_000;
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}
