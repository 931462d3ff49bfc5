//! Plays scenarios: runs the real hook against a sandbox the way certbot and timers do, step by step, and reports what
//! happens. Results are checked in the service's records and in handshakes with the edge, not in what the hook reports.

mod checks;
mod hook;
mod interrupt;
mod lineage;
mod scenarios;
mod state;

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::{Authority, Error, Options, Sandbox};
pub use hook::Hook;
use hook::{HookEnd, RunningHook, Variable};
pub use interrupt::Interrupt;
use lineage::Lineage;
pub use scenarios::SCENARIOS;
pub use state::set_times_back;

/// Pause between two looks at the hook, the service or the clock.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// certbot's variable with the names of the certificate.
const RENEWED_DOMAINS: &str = "RENEWED_DOMAINS";

/// What happens in a rehearsal, for printing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A step begins.
    Step {
        /// Counted from 1.
        number: u32,
        /// The subject of the step.
        title: String,
        /// What happens in the step.
        summary: String,
    },
    /// What happens besides.
    Note(String),
    /// The hook is started with these variables and arguments.
    Command(String),
    /// A line of the hook's output.
    Output(String),
    /// A check passed.
    Passed(String),
    /// A check failed.
    Failed {
        /// What was expected.
        expected: String,
        /// What was found instead.
        found: String,
    },
}

/// A story that is played against a sandbox of its own.
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What happens, in a few words.
    pub summary: &'static str,
    /// Why that matters.
    pub why: &'static str,
    /// What it has shown if every check passed.
    pub shown: &'static str,
    /// Whether it can deploy the user's own certificate.
    pub takes_lineage: bool,
    play: fn(&mut Rehearsal<'_>) -> Result<(), Error>,
}

/// Plays a scenario until a step fails. The first step deploys the certificate in `lineage`, or else a test certificate.
/// After [`Interrupt::set`] it kills the hook, removes its files and returns [`Error::Interrupted`].
pub fn rehearse(
    scenario: &Scenario,
    hook: &Hook,
    lineage: Option<&Path>,
    interrupt: &Interrupt,
    on_event: &mut dyn FnMut(Event),
) -> Result<(), Error> {
    let mut rehearsal = Rehearsal::new(hook, lineage, interrupt, on_event)?;
    rehearsal.add_sites();
    (scenario.play)(&mut rehearsal)?;
    rehearsal.end_step()
}

/// A rehearsal in progress.
struct Rehearsal<'a> {
    sandbox: Sandbox,
    hook: &'a Hook,
    interrupt: &'a Interrupt,
    lineage: Lineage,
    authority: Authority,
    /// Holds the lineage, the configuration and the hook's state.
    files: TempDir,
    /// The text of the configuration file.
    config: String,
    api_key: String,
    /// What the last hook printed.
    output: Vec<String>,
    /// ID of the record that the first step created.
    record: Option<i64>,
    on_event: &'a mut dyn FnMut(Event),
    /// Number of the step in progress.
    step: u32,
    has_failed: bool,
}

impl<'a> Rehearsal<'a> {
    fn new(
        hook: &'a Hook,
        lineage: Option<&Path>,
        interrupt: &'a Interrupt,
        on_event: &'a mut dyn FnMut(Event),
    ) -> Result<Self, Error> {
        let files = tempfile::Builder::new().prefix("edgecert-rehearsal-").tempdir();
        let files = files.map_err(|source| Error::File { path: std::env::temp_dir(), source })?;
        let authority = Authority::new("edgecert rehearsal")?;
        let lineage = match lineage {
            Some(directory) => Lineage::open_external(directory)?,
            None => Lineage::create(files.path(), &authority, &["shop.example", "*.shop.example"])?,
        };
        let sandbox = Sandbox::start(Options { tls: true, ..Options::default() })?;
        Ok(Self {
            config: String::new(),
            api_key: sandbox.endpoints().api_key.clone(),
            output: Vec::new(),
            sandbox,
            hook,
            interrupt,
            lineage,
            authority,
            files,
            record: None,
            on_event,
            step: 0,
            has_failed: false,
        })
    }

    /// Adds a site for each name of the certificate, and one that the hook must not change, and reports them.
    fn add_sites(&mut self) {
        const BYSTANDER: &str = "bystander.example";
        let covered = self.covered_sites();
        for domain in covered.iter().map(String::as_str).chain([BYSTANDER]) {
            self.sandbox.add_site(domain);
        }
        let names = self.lineage.names.join(", ");
        self.note(format!("certificate  {names}"));
        self.note(format!("sites        {}, {BYSTANDER}", covered.join(", ")));
    }

    /// Begins a step, unless a check of the last one failed.
    fn step(&mut self, title: &str, summary: &str) -> Result<(), Error> {
        self.end_step()?;
        self.step += 1;
        let (title, summary) = (title.to_owned(), summary.to_owned());
        self.report(Event::Step { number: self.step, title, summary });
        Ok(())
    }

    /// Fails if a check of the step failed.
    fn end_step(&self) -> Result<(), Error> {
        if self.has_failed { Err(Error::StepFailed(self.step)) } else { Ok(()) }
    }

    fn report(&mut self, event: Event) {
        (self.on_event)(event);
    }

    fn note(&mut self, text: impl Into<String>) {
        self.report(Event::Note(text.into()));
    }

    /// Reports whether a check passed; `found` is shown only if it did not.
    fn check(&mut self, passed: bool, expected: impl Into<String>, found: impl Into<String>) {
        let expected = expected.into();
        if passed {
            self.report(Event::Passed(expected));
        } else {
            self.has_failed = true;
            self.report(Event::Failed { expected, found: found.into() });
        }
    }

    /// Renews the lineage.
    fn renew(&mut self) -> Result<(), Error> {
        self.lineage.renew(&self.authority)
    }

    /// Runs the hook as certbot does, and checks its exit code.
    fn deploy(&mut self, expected: i32) -> Result<(), Error> {
        let running = self.start_deploy(&[])?;
        self.finish(running, expected)
    }

    /// Runs `edgecert sync` as a timer does, and checks its exit code.
    fn sync(&mut self, expected: i32) -> Result<(), Error> {
        self.run(&["sync"], expected)
    }

    /// Runs the hook with these arguments, and checks its exit code.
    fn run(&mut self, arguments: &[&str], expected: i32) -> Result<(), Error> {
        let running = self.start(arguments, &[])?;
        self.finish(running, expected)
    }

    /// Deploys the first certificate, which must be bound to the sites that it covers, and to no other.
    fn deploy_first(&mut self) -> Result<(), Error> {
        self.deploy(0)?;
        let records = self.record_ids();
        self.record = records.first().copied();
        self.check(records.len() == 1, "the service has one record", records.len().to_string());
        self.check_bindings();
        self.check_served();
        Ok(())
    }

    /// Starts the hook as certbot does, with more settings in its environment.
    fn start_deploy(&mut self, settings: &[Variable]) -> Result<RunningHook, Error> {
        let certbot = [
            ("RENEWED_LINEAGE", self.lineage.directory.display().to_string()),
            (RENEWED_DOMAINS, self.lineage.names.join(" ")),
        ];
        self.start(&[], &[&certbot, settings].concat())
    }

    /// Starts the hook and reports its command line with its variables, except for the fixed settings, and for one that
    /// the hook has no use for.
    fn start(&mut self, arguments: &[&str], variables: &[Variable]) -> Result<RunningHook, Error> {
        let shown = variables.iter().filter(|(name, _)| *name != RENEWED_DOMAINS);
        let mut words: Vec<String> = shown.map(|(name, value)| format!("{name}={value}")).collect();
        words.push("edgecert".to_owned());
        words.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self.report(Event::Command(words.join(" ")));
        let settings = self.settings()?;
        self.hook.start(self.files.path(), arguments, &[&settings, variables].concat())
    }

    /// Returns the settings that a user would have configured. The system trusts the CA of the test certificates.
    fn settings(&self) -> Result<Vec<Variable>, Error> {
        let config = self.files.path().join("config.toml");
        std::fs::write(&config, &self.config)
            .map_err(|source| Error::File { path: config.clone(), source })?;
        let endpoints = self.sandbox.endpoints().clone();
        let ca_file = endpoints.ca_file.map(|path| path.display().to_string()).unwrap_or_default();
        let mut settings = vec![
            ("EDGECERT_CONFIG", config.display().to_string()),
            ("EDGECERT_STATE_DIR", self.state_dir().display().to_string()),
            ("EDGECERT_BASE_URL", endpoints.api),
            ("EDGECERT_API_KEY", self.api_key.clone()),
            ("EDGECERT_CA_FILE", ca_file),
            ("EDGECERT_EDGE_ADDRESS", endpoints.edge),
        ];
        if !self.lineage.is_external {
            let roots = self.files.path().join("roots.pem");
            std::fs::write(&roots, self.authority.root())
                .map_err(|source| Error::File { path: roots.clone(), source })?;
            settings.push(("SSL_CERT_FILE", roots.display().to_string()));
        }
        Ok(settings)
    }

    /// Waits for the hook to end, reports its output and checks its exit code.
    fn finish(&mut self, running: RunningHook, expected: i32) -> Result<(), Error> {
        let (end, lines) = running.wait(self.interrupt)?;
        let passed = end == HookEnd::Exit(expected);
        // All of it if the hook did something else.
        for line in if passed { shorten(&lines) } else { lines.clone() } {
            self.report(Event::Output(line));
        }
        self.output = lines;
        self.check(passed, format!("the hook exits {expected}"), self.describe(end));
        Ok(())
    }

    /// Waits for an event or for the end of the hook; [`Rehearsal::finish`] finds out why it ended.
    fn wait_until(&self, mut running: RunningHook, has_happened: impl Fn() -> bool) -> RunningHook {
        while !has_happened() && !running.has_exited() && !running.is_overdue() && !self.interrupt.is_set() {
            std::thread::sleep(POLL_INTERVAL);
        }
        running
    }

    /// Counts the uploads that were responded to or cut off by a fault.
    fn completed_uploads(&self) -> usize {
        let requests = self.sandbox.requests();
        let uploads = requests.iter().filter(|request| request.path == "/api/certs/upload");
        uploads.filter(|request| request.status.is_some() || request.fault.is_some()).count()
    }

    fn describe(&self, end: HookEnd) -> String {
        match end {
            HookEnd::Exit(code) => format!("exit code {code}"),
            HookEnd::Signal => "a signal".to_owned(),
            HookEnd::TimedOut => {
                let seconds = self.hook.time_limit().as_secs();
                let unit = if seconds == 1 { "second" } else { "seconds" };
                format!("it still running after {seconds} {unit}, and killed it")
            }
        }
    }
}

/// Replaces the middle of a long output.
fn shorten(lines: &[String]) -> Vec<String> {
    const MAX_MIDDLE: usize = 15;
    match lines {
        [first, second, middle @ .., summary] if middle.len() > MAX_MIDDLE => {
            let omitted = format!("({} more lines)", middle.len());
            vec![first.clone(), second.clone(), omitted, summary.clone()]
        }
        _ => lines.to_vec(),
    }
}
