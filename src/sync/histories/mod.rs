//! Histories: a host, the service and its edges over two months, in process and in virtual time. One seed drives them:
//! renewals, hooks that run, are lost or are killed, the timer of `sync`, runs by hand with every option, other clients,
//! faults of the service and of the edges.
//!
//! The code under test decides what to send: `sync`, the deployment and the planner. `deploy::model` stands in for the
//! service and its edges. `invariants` says what must hold after each step, and at the end: once nothing goes wrong any
//! more, a few rounds of `sync` must reach a state in which nothing is sent, and it must be the right one.

mod host;
mod invariants;
mod scenario;

use std::fmt;
use std::ops::Range;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use fastrand::Rng;
use time::{Duration, OffsetDateTime};

pub(crate) use self::host::Host;
use self::invariants::{Fixpoint, check_expired, check_size};
use self::scenario::START;
use crate::deploy::model::{Faults, World};

/// A problem that `status --check` reports.
#[derive(Debug)]
pub(crate) struct Reported {
    /// `None`: it is about the host.
    pub(crate) lineage: Option<String>,
    #[expect(dead_code, reason = "printed by a failing test")]
    pub(crate) text: String,
}

/// Finds the problems of a host.
pub(crate) type Judge = fn(&Host, &World, OffsetDateTime) -> Vec<Reported>;

const DURATION: Duration = Duration::days(60);

/// Maximum number of rounds after the last disturbance until `sync` sends nothing. In each of them, every lineage's turn
/// to check its edges comes.
const MAX_ROUNDS: usize = 5;

/// Runs the histories with these seeds on all cores. One in which an invariant is violated is replayed with output.
/// Returns how many of them ended with a `sync` without state.
pub(crate) fn run_all(seeds: Range<u64>, judge: Judge) -> u64 {
    let (next, without_state) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    match catch_unwind(|| History::new(seed, judge, None).run()) {
                        Ok(is_without_state) => {
                            without_state.fetch_add(is_without_state.into(), Ordering::Relaxed);
                        }
                        Err(_) if next.swap(seeds.end, Ordering::Relaxed) < seeds.end => {
                            replay(seed, judge);
                            panic!("seed {seed} does not fail again");
                        }
                        Err(_) => return,
                    }
                }
            });
        }
    });
    without_state.into_inner()
}

/// Runs a history and prints it.
#[expect(clippy::print_stderr, reason = "output of a failing test")]
pub(crate) fn replay(seed: u64, judge: Judge) {
    eprintln!("seed {seed}");
    let mut print = |line: String| eprintln!("{line}");
    History::new(seed, judge, Some(&mut print)).run();
}

/// Returns the lines of a history. Panics if an invariant is violated.
pub(crate) fn lines(seed: u64, judge: Judge) -> Vec<String> {
    let mut lines = Vec::new();
    History::new(seed, judge, Some(&mut |line| lines.push(line))).run();
    lines
}

/// A history in progress.
struct History<'p> {
    world: World,
    host: Host,
    rng: Rng,
    judge: Judge,
    print: Option<&'p mut dyn FnMut(String)>,
    next_event: OffsetDateTime,
    /// The timer's next run and its period.
    next_sync: OffsetDateTime,
    period: Duration,
    /// When the faults of the service end.
    faults_end: Option<OffsetDateTime>,
    /// Whether anyone starts runs by hand.
    has_administrator: bool,
}

/// What happens next.
enum Step {
    Event,
    Sync,
    FaultsEnd,
    /// The client renews this lineage and runs the hook.
    Renewal(usize),
}

impl<'p> History<'p> {
    fn new(seed: u64, judge: Judge, print: Option<&'p mut dyn FnMut(String)>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let (world, mut host) = scenario::generate(&mut rng);
        host.runs = print.is_some().then(Vec::new);
        let period = Duration::hours(rng.i64(2..=12));
        let has_administrator = rng.u8(..4) > 0;
        Self {
            world,
            host,
            judge,
            print,
            next_event: START + Duration::HOUR,
            next_sync: START + Duration::minutes(rng.i64(0..60)),
            period,
            faults_end: None,
            has_administrator,
            rng,
        }
    }

    /// Returns whether it ended with a `sync` without state.
    fn run(mut self) -> bool {
        self.show("start");
        loop {
            let (at, step) = self.next();
            if at >= START + DURATION {
                break;
            }
            self.advance(at);
            self.take(&step);
            let judged = || (self.judge)(&self.host, &self.world, self.world.now);
            check_expired(&self.world, &self.host, judged);
        }
        check_size(&self.host);
        self.settle();
        let is_verifiable = self.host.is_verifiable(&self.world);
        if is_verifiable {
            let sent = self.world.changes.len();
            (0..self.host.lineages.len()).for_each(|at| self.host.forget(at));
            self.round("a sync without state");
            let changes = &self.world.changes[sent..];
            assert!(changes.is_empty(), "sent without state: {changes:?}");
        }
        is_verifiable
    }

    fn next(&self) -> (OffsetDateTime, Step) {
        let renewals = self.host.lineages.iter().enumerate();
        let renewals = renewals.map(|(at, lineage)| (lineage.renews_at, Step::Renewal(at)));
        let others = [(self.next_event, Step::Event), (self.next_sync, Step::Sync)];
        let faults_end = self.faults_end.map(|end| (end, Step::FaultsEnd));
        renewals.chain(others).chain(faults_end).min_by_key(|(at, _)| *at).unwrap()
    }

    /// Lets time pass.
    fn advance(&mut self, to: OffsetDateTime) {
        let passed = (to - self.world.now).max(Duration::ZERO);
        if self.faults_end.is_none() {
            self.world.healthy += passed;
        }
        self.world.now += passed;
        self.world.push();
    }

    fn take(&mut self, step: &Step) {
        let Self { world, host, rng, .. } = self;
        if !matches!(step, Step::Sync) {
            world.disturbances += 1;
            host.disturbed_at = world.moment();
        }
        match step {
            Step::Sync => {
                self.next_sync = world.now + self.period;
                host.sync(world);
                self.show("sync");
            }
            Step::Renewal(at) => {
                let what = scenario::renew(world, host, *at, rng);
                self.show(what);
            }
            Step::FaultsEnd => {
                world.faults = Faults::default();
                self.faults_end = None;
                self.show("the faults of the service end");
            }
            Step::Event => {
                self.next_event = world.now + Duration::hours(rng.i64(1..72));
                self.disturb();
            }
        }
    }

    fn disturb(&mut self) {
        let Self { world, host, rng, .. } = self;
        let what = match rng.u8(..32) {
            0..4 if self.faults_end.is_none() => {
                world.faults = scenario::faults(world, rng);
                self.faults_end = Some(world.now + Duration::hours(rng.i64(1..72)));
                "the service has faults"
            }
            4 => {
                self.next_sync = world.now + Duration::hours(rng.i64(12..240));
                "the timer stops"
            }
            5..9 if self.has_administrator => scenario::run_by_hand(world, host, rng),
            9..16 if self.has_administrator => scenario::override_guards(world, host),
            _ => scenario::random_event(world, host, rng),
        };
        self.show(what);
    }

    /// Ends all that goes wrong, and runs `sync` until nothing more is sent, and no outcome changes.
    fn settle(&mut self) {
        self.world.faults = Faults::default();
        scenario::mend_edges(&mut self.world, &mut self.rng);
        let mut silent_rounds = 0;
        for round in 0.. {
            let (sent, outcomes) = (self.world.changes.len(), self.host.outcomes());
            self.round("a quiet sync");
            let changes = &self.world.changes[sent..];
            let is_silent = changes.is_empty() && outcomes == self.host.outcomes();
            silent_rounds = if is_silent { silent_rounds + 1 } else { 0 };
            if silent_rounds == 2 {
                break;
            }
            assert!(is_silent || round < MAX_ROUNDS, "no fixpoint: round {round} still sends {changes:?}");
        }
        let mut problems = (self.judge)(&self.host, &self.world, self.world.now + invariants::MAX_LAG);
        // No `sync` runs until then.
        problems.retain(|problem| problem.lineage.is_some());
        Fixpoint { world: &self.world, host: &self.host, problems: &problems }.check();
    }

    fn round(&mut self, what: &str) {
        self.advance(self.world.now + Duration::HOUR);
        self.host.sync(&mut self.world);
        self.show(what);
    }

    /// Prints what happened, the runs that it led to, and the world if anything was not only looked at.
    fn show(&mut self, what: &str) {
        let runs = self.host.runs.as_mut().map(std::mem::take).unwrap_or_default();
        let Some(print) = &mut self.print else { return };
        let elapsed = self.world.now - START;
        let time = format!(
            "day {} {:02}:{:02}",
            elapsed.whole_days(),
            elapsed.whole_hours() % 24,
            elapsed.whole_minutes() % 60
        );
        print(format!("{time} {what}"));
        for run in &runs {
            print(format!("    {run}"));
        }
        if what != "sync" || !runs.is_empty() {
            print(format!("    {}", Scene { world: &self.world, host: &self.host }));
        }
    }
}

/// Prints the runs of a step in which an invariant is violated.
impl Drop for History<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.show("the last step");
        }
    }
}

/// Shows sites and lineages on one line.
struct Scene<'a> {
    world: &'a World,
    host: &'a Host,
}

impl fmt::Display for Scene<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let day = |at: OffsetDateTime| (at - START).whole_days();
        for lineage in &self.host.lineages {
            let leaf = &self.world.leaves[lineage.leaf];
            write!(f, "{}: leaf {} until day {}; ", lineage.name, lineage.leaf, day(leaf.not_after))?;
        }
        for site in self.world.sites.iter().filter(|site| !site.is_deleted) {
            write!(f, "{site}; ")?;
        }
        for (id, record) in &self.world.records {
            write!(
                f,
                "record {id}: leaf {} until day {}; ",
                record.leaf,
                day(self.world.leaves[record.leaf].not_after)
            )?;
        }
        Ok(())
    }
}
