//! `edgecert-sandbox rehearse`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::CommandFactory;
use clap::error::ErrorKind;
use edgecert_sandbox::{Error, Event, Hook, Interrupt, SCENARIOS, Scenario, rehearse};

use super::output::{Signs, Style, error, is_utf8_locale, line};
use super::signals::Signals;
use super::{ALL, Cli, RehearseArgs};

/// What to do after a rehearsal, as in the README.
const NEXT: [(&str, &[&str]); 7] = [
    ("install", &["cargo install --locked --root /usr/local --path ."]),
    (
        "store the API key",
        &["install -D -m 600 /dev/stdin /etc/edgecert/api-key  # paste the key, then press Enter and Ctrl-D"],
    ),
    ("write base_url and api_key_file to /etc/edgecert/config.toml", &[]),
    ("deploy once by hand", &["RENEWED_LINEAGE=/etc/letsencrypt/live/example.com edgecert"]),
    ("attach it to certbot", &["ln -s \"$(command -v edgecert)\" /etc/letsencrypt/renewal-hooks/deploy/"]),
    (
        "retry failures every hour",
        &[
            "install -m 644 hooks/systemd/edgecert-sync.* /etc/systemd/system/ && systemctl enable --now edgecert-sync.timer",
        ],
    ),
    ("run it once, and check the setup", &["systemctl start edgecert-sync.service", "edgecert doctor"]),
];

/// What a reader of the scenarios has to know.
const LEGEND: [&str; 4] = [
    "An ACME client, here certbot, renews a certificate and runs edgecert, its deploy hook, once. The hook",
    "uploads the certificate to a service, whose edge serves the sites. A timer runs `edgecert sync` every",
    "hour. A leaf is a certificate without its chain, named here by the first 8 digits of its SHA-256. Exit",
    "codes: 0 done, 65 refused by edgecert, 69 refused by the service, 75 will be retried, 77 invalid key.",
];

/// Rehearses, and returns success only if every check passed.
pub(crate) fn run(args: &RehearseArgs) -> Result<ExitCode, Error> {
    if args.list {
        for scenario in &SCENARIOS {
            line(&format!("{:<18} {}", scenario.name, scenario.summary));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let scenarios = args.scenarios();
    let is_utf8 = is_utf8_locale();
    let hook = find_hook(args)?.utf8(is_utf8);
    // Before the rehearsal creates anything that would have to be removed.
    let (interrupt, exit_code) = interrupt_on_signal()?;
    line(&format!("rehearsing {} against a temporary sandbox on this machine", hook.path().display()));
    let player = Player { hook, lineage: args.lineage.clone(), interrupt, signs: Signs::new(is_utf8) };
    let result = match (&args.scenario, scenarios.as_slice()) {
        (None, [first, ..]) => player.play_with_next_steps(first),
        (_, scenarios) => player.play_all(scenarios),
    };
    match (result, exit_code.get()) {
        (Err(interrupted @ Error::Interrupted), Some(code)) => {
            error(&interrupted.to_string());
            Ok(ExitCode::from(*code))
        }
        (result, _) => result,
    }
}

impl RehearseArgs {
    /// Returns the scenarios to play. It is a usage error if none of them can use the lineage.
    fn scenarios(&self) -> Vec<&'static Scenario> {
        let Some(name) = self.scenario.as_deref() else { return SCENARIOS.iter().take(1).collect() };
        let scenarios: Vec<_> =
            SCENARIOS.iter().filter(|scenario| name == ALL || name == scenario.name).collect();
        if self.lineage.is_some() && !scenarios.iter().any(|scenario| scenario.takes_lineage) {
            let message = "'--lineage <DIR>' cannot be used with this scenario, which chooses the dates of its certificates";
            Cli::command().error(ErrorKind::ArgumentConflict, message).exit();
        }
        scenarios
    }
}

#[expect(clippy::disallowed_methods, reason = "the one setting of this program that is a variable")]
fn find_hook(args: &RehearseArgs) -> Result<Hook, Error> {
    let explicit = std::env::var_os("EDGECERT_BIN").filter(|path| !path.is_empty()).map(PathBuf::from);
    let time_limit = Duration::from_secs(args.hook_timeout);
    Hook::find(explicit.as_deref(), std::env::current_exe().ok().as_deref(), time_limit)
}

/// Plays scenarios, and prints them.
struct Player {
    hook: Hook,
    lineage: Option<PathBuf>,
    interrupt: Interrupt,
    signs: Signs,
}

impl Player {
    fn play(&self, scenario: &Scenario) -> Result<(), Error> {
        let lineage = self.lineage.as_deref().filter(|_| scenario.takes_lineage);
        rehearse(scenario, &self.hook, lineage, &self.interrupt, &mut |event| print(&event, &self.signs))
    }

    /// Plays a scenario, and shows what to do next.
    fn play_with_next_steps(&self, scenario: &Scenario) -> Result<ExitCode, Error> {
        self.play(scenario)?;
        line(&format!("\n{}", Style::Green.paint("all steps passed")));
        print_next();
        Ok(ExitCode::SUCCESS)
    }

    /// Plays scenarios, each as a page of its own, also after one that failed.
    fn play_all(&self, scenarios: &[&Scenario]) -> Result<ExitCode, Error> {
        for text in LEGEND {
            line(&Style::Dim.paint(text));
        }
        let mut failed = Vec::new();
        for scenario in scenarios {
            line(&format!("\n{}", Style::Bold.paint(&format!("{}: {}", scenario.name, scenario.summary))));
            line(&Style::Dim.paint(&format!("   why          {}", scenario.why)));
            match self.play(scenario) {
                Ok(()) => line(&format!("\n   {} {}", Style::Green.paint("shown:"), scenario.shown)),
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(failure) => {
                    error(&format!("{}: {failure}", scenario.name));
                    failed.push(scenario.name);
                }
            }
        }
        if failed.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        if scenarios.len() > 1 {
            error(&format!(
                "{} of {} scenarios failed: {}",
                failed.len(),
                scenarios.len(),
                failed.join(", ")
            ));
        }
        Ok(ExitCode::FAILURE)
    }
}

/// Returns an interrupt that the first signal sets, and the exit code that belongs to that signal.
fn interrupt_on_signal() -> Result<(Interrupt, Arc<OnceLock<u8>>), Error> {
    let (interrupt, exit_code) = (Interrupt::default(), Arc::new(OnceLock::new()));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    let mut signals = runtime.block_on(async { Signals::new() }).map_err(Error::Runtime)?;
    let (set, code) = (interrupt.clone(), exit_code.clone());
    std::thread::spawn(move || {
        let received = runtime.block_on(signals.recv());
        let _ = code.set(received);
        set.set();
    });
    Ok((interrupt, exit_code))
}

/// The hook's commands and output stand out; everything else is dim.
fn print(event: &Event, signs: &Signs) {
    line(&match event {
        Event::Step { number, title, summary } => {
            format!("\n{}", Style::Dim.paint(&format!("{number}. {title}: {summary}")))
        }
        Event::Note(text) => Style::Dim.paint(&format!("   {text}")),
        Event::Command(text) => format!("   {}", Style::Bold.paint(&format!("$ {text}"))),
        Event::Output(text) => format!("   {} {text}", Style::Cyan.paint(signs.bar)),
        Event::Passed(expected) => {
            format!("   {}", Style::Dim.paint(&format!("{} {expected}", signs.passed)))
        }
        Event::Failed { expected, found } => {
            format!("   {} {expected}; found {found}", Style::Red.paint(signs.failed))
        }
    });
}

fn print_next() {
    line("\nwhat to do next, as root, in the directory of this source:");
    for (purpose, commands) in NEXT {
        line(&Style::Dim.paint(&format!("  # {purpose}")));
        for command in commands {
            line(&format!("  {command}"));
        }
    }
    line(&Style::Dim.paint("README.md explains each step and shows how to attach other ACME clients"));
}
