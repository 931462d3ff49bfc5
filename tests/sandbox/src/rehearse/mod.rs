//! Runs the real hook against a sandbox the way certbot does, step by step, and reports what happens. Results
//! are checked in the service's records and in handshakes with the edge, never in the hook's own output.

mod checks;
mod hook;
mod interrupt;
mod lineage;
mod steps;

use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::{Authority, Error, Options, Sandbox};
pub use hook::Hook;
use hook::{HookEnd, RunningHook, Variable};
pub use interrupt::Interrupt;
use lineage::Lineage;

/// Pause between two looks at the hook, the service or the clock.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// certbot's variable with the names of the certificate.
const RENEWED_DOMAINS: &str = "RENEWED_DOMAINS";

/// What happens in a rehearsal, for printing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A step begins.
    Step {
        /// The subject of the rehearsal.
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

/// A title, a summary, and the function that runs the step.
type Step = (&'static str, &'static str, fn(&mut Rehearsal<'_>) -> Result<(), Error>);

const STEPS: [Step; 4] = [
    ("first certificate", "certbot saves it and runs its deploy hook", steps::first_certificate),
    ("renewal", "the service takes a moment to push it to the edge", steps::renewal),
    (
        "unreliable service",
        "it responds 503, then stores the upload, but its response is lost",
        steps::unreliable_service,
    ),
    ("service outage", "it responds 503 to everything; the hook has 2 seconds", steps::service_outage),
];

/// Runs the steps until one fails and returns whether all passed. The first step deploys the certificate in
/// `lineage`, or else a test certificate. After [`Interrupt::set`] it kills the hook, removes its files and returns
/// [`Error::Interrupted`].
pub fn rehearse(
    hook: &Hook,
    lineage: Option<&Path>,
    interrupt: &Interrupt,
    on_event: &mut dyn FnMut(Event),
) -> Result<bool, Error> {
    let mut rehearsal = Rehearsal::new(hook, lineage, interrupt, on_event)?;
    steps::set_up(&mut rehearsal);
    for (title, summary, run) in STEPS {
        rehearsal.report(Event::Step { title: title.to_owned(), summary: summary.to_owned() });
        run(&mut rehearsal)?;
        if rehearsal.has_failed {
            break;
        }
    }
    Ok(!rehearsal.has_failed)
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
    /// ID of the record that the first step created.
    record: Option<i64>,
    on_event: &'a mut dyn FnMut(Event),
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
            sandbox,
            hook,
            interrupt,
            lineage,
            authority,
            files,
            record: None,
            on_event,
            has_failed: false,
        })
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

    /// Runs the hook as certbot does and expects success.
    fn deploy(&mut self) -> Result<(), Error> {
        let running = self.start_deploy(&[])?;
        self.finish(running, 0)
    }

    /// Runs `edgecert sync` as a timer does and expects success.
    fn sync(&mut self) -> Result<(), Error> {
        let running = self.start(&["sync"], &[])?;
        self.finish(running, 0)
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

    /// Returns the settings that a user would have configured, with an empty configuration file. The system trusts the CA
    /// of the test certificates.
    fn settings(&self) -> Result<Vec<Variable>, Error> {
        let config = self.files.path().join("config.toml");
        std::fs::write(&config, "").map_err(|source| Error::File { path: config.clone(), source })?;
        let endpoints = self.sandbox.endpoints().clone();
        let ca_file = endpoints.ca_file.map(|path| path.display().to_string()).unwrap_or_default();
        let mut settings = vec![
            ("EDGECERT_CONFIG", config.display().to_string()),
            ("EDGECERT_STATE_DIR", self.files.path().join("state").display().to_string()),
            ("EDGECERT_BASE_URL", endpoints.api),
            ("EDGECERT_API_KEY", endpoints.api_key),
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
        for line in lines {
            self.report(Event::Output(line));
        }
        let passed = end == HookEnd::Exit(expected);
        self.check(passed, format!("the hook exits {expected}"), self.describe(end));
        Ok(())
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
