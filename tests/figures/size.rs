//! Very large accounts, the size of the binary, and how much memory a bare upload needs.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use edgecert_workload::{find_program, run};

use crate::fixture::Fixture;
use crate::fleet::{Fleet, hook};
use crate::server::{Server, Service};
use crate::single::OneLineage;
use crate::table::{Figure, Goal, Measured, Table, Unit};
use crate::{observe, usage};

const BINARY: Figure =
    Figure { row: 14, name: "size of the binary", unit: Unit::Bytes, goal: Goal::AtMost(4.8e6) };
const PRIVATE_MEMORY: Figure = Figure {
    row: 14,
    name: "bare upload, peak private memory",
    unit: Unit::Bytes,
    goal: Goal::AtMost(0.8e6),
};
const GROWTH: Figure = Figure {
    row: 13,
    name: "peak memory of sync of 10 lineages, for each site from 100,000 to 1,000,000",
    unit: Unit::Bytes,
    goal: Goal::AtMost(250.0),
};
const TIME: Figure = Figure {
    row: 13,
    name: "sync of 10 lineages among 1,000,000 sites / curl with its listings, wall",
    unit: Unit::Ratio,
    goal: Goal::None,
};

/// The numbers of sites of the accounts to list. That the larger one can be listed is a goal of its own.
const ACCOUNTS: [usize; 2] = [SMALLER, LARGEST];
const SMALLER: usize = 100_000;
const LARGEST: usize = 1_000_000;

const LINEAGES: usize = 10;
const PAIRS: usize = 3;

/// Adds the rows of this group.
pub(crate) fn add(fixture: &Fixture, table: &mut Table) -> Result<()> {
    add_accounts(fixture, table)?;
    table.add(BINARY, Measured::value(fs::metadata(&fixture.binary)?.len() as f64));
    table.add(PRIVATE_MEMORY, private_memory(fixture)?);
    Ok(())
}

/// Lists larger and larger accounts.
fn add_accounts(fixture: &Fixture, table: &mut Table) -> Result<()> {
    let fleet = Fleet::new(fixture, "size-fleet", 1..LINEAGES + 1)?;
    let mut peaks = [0.0; 2];
    for sites in ACCOUNTS {
        let server = Server::start(fixture, &Service::with_sites(1..sites + 1))?;
        let state = fixture.memory(&format!("size-{sites}"))?;
        peaks = [peaks[1], list(fixture, &fleet, &server, &state)?];
        if sites == LARGEST {
            let ours = || usage::run(hook(fixture, server.port(), &state).args(["sync"]).command());
            let pairs = usage::pairs(PAIRS, ours, || usage::run(curl(fixture, &server)?))?;
            table.add(TIME, Measured::spread(pairs.wall(), Unit::Seconds));
        }
    }
    let [small, large] = peaks;
    let growth = (large - small) / (LARGEST - SMALLER) as f64;
    table.add(GROWTH, Measured::of_two(growth, large, small, Unit::Bytes));
    Ok(())
}

/// Peak memory of a `sync` that finds nothing to do.
fn list(fixture: &Fixture, fleet: &Fleet, server: &Server, state: &Path) -> Result<f64> {
    // Without sites, so that the first listing is that of the measured run.
    let small = Server::start(fixture, &Service::with_sites(1..LINEAGES + 1))?;
    let template = fleet.template(fixture, &small, 1)?;
    let template = template.with_service(&format!("https://127.0.0.1:{}", server.port()));
    for (number, lineage, issued) in fleet.first(LINEAGES) {
        template.write(state, lineage, issued, number)?;
    }
    let call = hook(fixture, server.port(), state).args(["sync"]);
    let peak = observe::peak_memory(&fixture.memory(&format!("scratch-{}", server.port()))?, &call)?;
    let stdout = String::from_utf8(run(call.command())?.stdout)?;
    ensure!(stdout.contains(&format!(": {LINEAGES} unchanged")), "sync found something to do: {stdout}");
    Ok(peak as f64)
}

/// curl with the requests of such a `sync`.
fn curl(fixture: &Fixture, server: &Server) -> Result<Command> {
    let mut curl = Command::new(find_program("curl", "curl")?);
    curl.env_clear().args(["--disable", "--silent", "--fail", "--output", "/dev/null"]);
    curl.args(["--output", "/dev/null", "--cacert"]).arg(&fixture.ca_file);
    let url = |path: &str| format!("https://127.0.0.1:{}{path}", server.port());
    curl.args([url("/api/me/sites"), url("/api/certs")]);
    Ok(curl)
}

fn private_memory(fixture: &Fixture) -> Result<Measured> {
    let one = OneLineage::new(fixture, "size")?;
    let server = one.server()?;
    let call = one.upload(&server, &fixture.memory("size-state")?);
    Ok(Measured::value(observe::peak_private_memory(&call)? as f64))
}
