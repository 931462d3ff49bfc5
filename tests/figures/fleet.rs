//! Ten thousand lineages, and accounts with as many sites.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use edgecert_workload::{Call, IssuedCert, Lineage, StateTemplate, domain, find_program, instructions, run};

use crate::fixture::{Fixture, configuration};
use crate::observe;
use crate::server::{Server, Service};
use crate::table::{Figure, Goal, Measured, Table, Unit};
use crate::usage;

/// Lineages with consecutive numbers.
pub(crate) struct Fleet {
    /// certbot's configuration directory.
    certbot: PathBuf,
    lineages: Vec<(Lineage, IssuedCert)>,
}

const SIZE: usize = 10_000;
const SMALL: usize = 1_000;

/// The sites of an account in which every lineage has one.
const LARGE_ACCOUNT: Range<usize> = 1..SIZE + 1;

/// The sites of an account for the first lineages.
const SMALL_ACCOUNT: Range<usize> = 1..11;

/// The sites of an account for no lineage of the fleet.
const OTHER_ACCOUNT: Range<usize> = SIZE + 1..SIZE + 11;

const PAIRS: usize = 9;

const fn ratio(row: u8, name: &'static str, goal: Goal) -> Figure {
    Figure { row, name, unit: Unit::Ratio, goal }
}

const BESIDE: [Figure; 2] = [
    ratio(6, "renewal beside 10,000 lineages / alone, instructions", Goal::AtMost(1.1)),
    ratio(6, "the same with [[lineage]] entries", Goal::AtMost(1.1)),
];
const IN_LARGE_ACCOUNT: [Figure; 2] = [
    Figure {
        row: 7,
        name: "first deploy in an account of 10,000 sites, instructions",
        unit: Unit::Instructions,
        goal: Goal::AtMost(400e6),
    },
    Figure { row: 7, name: "the same, peak memory", unit: Unit::Bytes, goal: Goal::AtMost(16e6) },
];
const SMALL_UNCHANGED: [Figure; 2] = [
    ratio(8, "sync, 10,000 unchanged, account of 10 / cat, wall", Goal::None),
    ratio(8, "the same, CPU", Goal::AtMost(3.5)),
];
const LARGE_UNCHANGED: [Figure; 2] = [
    ratio(8, "sync, 10,000 unchanged, account of 10,000 / cat, wall", Goal::None),
    ratio(8, "the same, CPU", Goal::AtMost(3.5)),
];
const CONFIGURED_UNCHANGED: [Figure; 2] = [
    ratio(8, "the same with [[lineage]] entries, wall", Goal::None),
    ratio(8, "the same, CPU", Goal::AtMost(3.5)),
];
const MEMORY: [Figure; 2] = [
    Figure {
        row: 9,
        name: "its peak memory in the large account",
        unit: Unit::Bytes,
        goal: Goal::AtMost(25e6),
    },
    Figure {
        row: 9,
        name: "its growth for a site and lineage, from 1,000",
        unit: Unit::Bytes,
        goal: Goal::None,
    },
];

/// Adds the rows of this group.
pub(crate) fn add(fixture: &Fixture, table: &mut Table) -> Result<()> {
    let fleet = Fleet::new(fixture, "fleet", LARGE_ACCOUNT)?;
    let large = Server::start(fixture, &Service::with_sites(LARGE_ACCOUNT))?;
    table.add_all(BESIDE, beside(fixture, &fleet, &large)?);
    table.add_all(IN_LARGE_ACCOUNT, first_deploy(fixture, &fleet, &large)?);
    table.add_all(SMALL_UNCHANGED, unchanged_in_small_account(fixture, &fleet)?);
    let [unchanged, configured] = unchanged_in_large_account(fixture, &fleet, &large)?;
    table.add_all(LARGE_UNCHANGED, unchanged);
    table.add_all(CONFIGURED_UNCHANGED, configured);
    table.add_all(MEMORY, memory(fixture, &fleet, &large)?);
    Ok(())
}

impl Fleet {
    /// Writes the lineages to a directory of this name.
    pub(crate) fn new(fixture: &Fixture, name: &str, numbers: Range<usize>) -> Result<Self> {
        let certbot = fixture.disk(name)?;
        let lineage = |number: usize| -> Result<(Lineage, IssuedCert)> {
            let name = domain(number);
            let issued = fixture.authority.issue(std::slice::from_ref(&name))?;
            Ok((Lineage::write(&certbot, &name, &issued)?, issued))
        };
        let lineages = numbers.map(lineage).collect::<Result<_>>()?;
        Ok(Self { certbot, lineages })
    }

    /// The first lineages with their certificates and numbers.
    pub(crate) fn first(&self, count: usize) -> impl Iterator<Item = (usize, &Lineage, &IssuedCert)> {
        let lineages = self.lineages.iter().take(count).enumerate();
        lineages.map(|(index, (lineage, issued))| (index + 1, lineage, issued))
    }

    /// The lineage of a number.
    pub(crate) fn lineage(&self, number: usize) -> Result<&Lineage> {
        let lineage = self.lineages.get(number - 1).context("the fleet is smaller")?;
        Ok(&lineage.0)
    }

    /// Writes the state of the first lineages as deployed to a service.
    pub(crate) fn write_deployed(
        &self,
        fixture: &Fixture,
        server: &Server,
        state: &Path,
        count: usize,
    ) -> Result<()> {
        let template = self.template(fixture, server, 1)?;
        self.first(count)
            .try_for_each(|(number, lineage, issued)| template.write(state, lineage, issued, number))
    }

    /// Writes the configuration for a state directory: an entry with a pattern that matches all lineages, and one for a
    /// single lineage.
    fn configure(&self, state: &Path, single: &Lineage) -> Result<()> {
        let (all, single) = (self.certbot.join("live/*"), single.live());
        let entries = [all, single].map(|path| format!("[[lineage]]\npath = '{}'\n", path.display()));
        Ok(fs::write(configuration(state), entries.concat())?)
    }

    /// Deploys a lineage in a directory of its own and returns its state.
    pub(crate) fn template(
        &self,
        fixture: &Fixture,
        server: &Server,
        number: usize,
    ) -> Result<StateTemplate> {
        let (lineage, scratch) = (self.lineage(number)?, tempfile::TempDir::new()?);
        run(deploy(fixture, server, scratch.path(), lineage).command())?;
        StateTemplate::read(scratch.path(), lineage)
    }

    /// `cat` of the certificates of all lineages.
    fn cat(&self) -> Result<Command> {
        let mut cat = Command::new(find_program("sh", "dash")?);
        cat.args(["-c", "exec cat */fullchain.pem"]).current_dir(self.certbot.join("live"));
        Ok(cat)
    }
}

/// The hook with the settings of a fleet: the CA is private, and there is no edge.
pub(crate) fn hook(fixture: &Fixture, port: u16, state: &Path) -> Call {
    let hook = fixture.hook_on_port(port, state);
    hook.env("EDGECERT_TRUST_ANCHORS", "off").env("EDGECERT_VERIFY", "off").env("EDGECERT_TIMEOUT", "3600")
}

/// A call of the hook by certbot.
pub(crate) fn deploy(fixture: &Fixture, server: &Server, state: &Path, lineage: &Lineage) -> Call {
    let hook = hook(fixture, server.port(), state).env("EDGECERT_SKIP_UNMATCHED", "true");
    hook.env("RENEWED_LINEAGE", lineage.live()).env("RENEWED_DOMAINS", lineage.name())
}

/// `sync` with the options that each lineage was deployed with.
fn sync(fixture: &Fixture, state: &Path) -> Call {
    hook(fixture, 0, state).args(["sync"]).without_env("EDGECERT_BASE_URL")
}

/// Runs `sync` as a timer does until it knows all files: what is younger than two seconds may still change unnoticed.
fn settle(fixture: &Fixture, state: &Path, lineages: usize) -> Result<()> {
    const AGE: Duration = Duration::from_millis(2_100);
    sleep(AGE);
    for _ in 0..2 {
        let stdout = String::from_utf8(run(sync(fixture, state).command())?.stdout)?;
        let is_unchanged = stdout.contains(&format!(": {lineages} unchanged"));
        ensure!(is_unchanged, "sync found something to do: {stdout}");
    }
    Ok(())
}

fn beside(fixture: &Fixture, fleet: &Fleet, large: &Server) -> Result<[Measured; 2]> {
    let other = Server::start(fixture, &Service::with_sites(OTHER_ACCOUNT))?;
    let alone = renewal_instructions(fixture, &other, &fixture.memory("alone")?, 1, None)?;
    let beside = |name: &str, configured: Option<&Fleet>| -> Result<Measured> {
        let state = fixture.memory(name)?;
        fleet.write_deployed(fixture, large, &state, SIZE)?;
        let beside = renewal_instructions(fixture, &other, &state, SIZE + 1, configured)?;
        Ok(Measured::of_two(beside / alone, beside, alone, Unit::Instructions))
    };
    Ok([beside("beside", None)?, beside("beside-configured", Some(fleet))?])
}

fn first_deploy(fixture: &Fixture, fleet: &Fleet, large: &Server) -> Result<[Measured; 2]> {
    let (scratch, lineage) = (fixture.memory("first")?, fleet.lineage(1)?);
    let call = |name: &str| deploy(fixture, large, &scratch.join(name), lineage);
    let instructions = instructions(&scratch, &call("instructions"))?;
    let memory = observe::peak_memory(&scratch, &call("memory"))?;
    Ok([Measured::value(instructions as f64), Measured::value(memory as f64)])
}

/// Instructions of deploying a renewal. The state directory may hold other lineages, `total` with the one renewed. The
/// configuration has entries for a fleet and for the one renewed, or none.
fn renewal_instructions(
    fixture: &Fixture,
    server: &Server,
    state: &Path,
    total: usize,
    configured: Option<&Fleet>,
) -> Result<f64> {
    let (certbot, number) = (tempfile::TempDir::new()?, OTHER_ACCOUNT.start);
    let mut lineage = fixture.lineage(certbot.path(), number)?;
    configured.map(|fleet| fleet.configure(state, &lineage)).transpose()?;
    let call = deploy(fixture, server, state, &lineage);
    run(call.command())?;
    settle(fixture, state, total)?;
    lineage.renew(&fixture.authority.renew(&[domain(number)])?)?;
    Ok(instructions(certbot.path(), &call)? as f64)
}

fn unchanged_in_small_account(fixture: &Fixture, fleet: &Fleet) -> Result<[Measured; 2]> {
    let server = Server::start(fixture, &Service::with_sites(SMALL_ACCOUNT))?;
    let state = fixture.memory("small-account")?;
    let [deployed, unmatched] =
        [SMALL_ACCOUNT.start, SMALL_ACCOUNT.end].map(|number| fleet.template(fixture, &server, number));
    let (deployed, unmatched) = (deployed?, unmatched?);
    for (number, lineage, issued) in fleet.first(SIZE) {
        let template = if SMALL_ACCOUNT.contains(&number) { &deployed } else { &unmatched };
        template.write(&state, lineage, issued, number)?;
    }
    unchanged(fixture, fleet, &state)
}

/// Without and with `[[lineage]]` entries.
fn unchanged_in_large_account(
    fixture: &Fixture,
    fleet: &Fleet,
    large: &Server,
) -> Result<[[Measured; 2]; 2]> {
    let state = fixture.memory("large-account")?;
    fleet.write_deployed(fixture, large, &state, SIZE)?;
    let without = unchanged(fixture, fleet, &state)?;
    fleet.configure(&state, fleet.lineage(1)?)?;
    Ok([without, unchanged(fixture, fleet, &state)?])
}

/// Wall and CPU time of `sync` for the whole fleet, to `cat`.
fn unchanged(fixture: &Fixture, fleet: &Fleet, state: &Path) -> Result<[Measured; 2]> {
    settle(fixture, state, SIZE)?;
    let ours = || usage::run(sync(fixture, state).command());
    let pairs = usage::pairs(PAIRS, ours, || usage::run(fleet.cat()?))?;
    Ok([pairs.wall(), pairs.cpu()].map(|spread| Measured::spread(spread, Unit::Seconds)))
}

fn memory(fixture: &Fixture, fleet: &Fleet, large: &Server) -> Result<[Measured; 2]> {
    let small = Server::start(fixture, &Service::with_sites(1..SMALL + 1))?;
    let peak = |server: &Server, name: &str, count: usize| -> Result<f64> {
        let state = fixture.memory(name)?;
        fleet.write_deployed(fixture, server, &state, count)?;
        settle(fixture, &state, count)?;
        let scratch = fixture.memory(&format!("{name}-scratch"))?;
        let peak = observe::peak_memory(&scratch, &sync(fixture, &state))? as f64;
        fs::remove_dir_all(state)?;
        Ok(peak)
    };
    let (large, small) = (peak(large, "memory-large", SIZE)?, peak(&small, "memory-small", SMALL)?);
    let growth = (large - small) / (SIZE - SMALL) as f64;
    Ok([Measured::value(large), Measured::of_two(growth, large, small, Unit::Bytes)])
}
