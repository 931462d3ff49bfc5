//! `edgecert-sandbox rehearse`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use edgecert_sandbox::{Error, Event, Hook, Interrupt, SCENARIOS, rehearse};

use super::RehearseArgs;
use super::output::{Signs, Style, error, is_utf8_locale, line};
use super::signals::Signals;

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

/// Rehearses, and returns success only if every check passed.
#[expect(clippy::disallowed_methods, reason = "the one setting of this program that is a variable")]
pub(crate) fn run(args: &RehearseArgs) -> Result<ExitCode, Error> {
    let explicit = std::env::var_os("EDGECERT_BIN").filter(|path| !path.is_empty()).map(PathBuf::from);
    let time_limit = Duration::from_secs(args.hook_timeout);
    let is_utf8 = is_utf8_locale();
    let hook =
        Hook::find(explicit.as_deref(), std::env::current_exe().ok().as_deref(), time_limit)?.utf8(is_utf8);
    // Before the rehearsal creates anything that would have to be removed.
    let (interrupt, exit_code) = interrupt_on_signal()?;
    line(&format!("rehearsing {} against a temporary sandbox on this machine", hook.path().display()));
    let signs = Signs::new(is_utf8);
    let lineage = args.lineage.as_deref();
    let result = rehearse(&SCENARIOS[0], &hook, lineage, &interrupt, &mut |event| print(&event, &signs));
    match (result, exit_code.get()) {
        (Ok(()), _) => {
            line(&format!("\n{}", Style::Green.paint("all steps passed")));
            print_next();
            Ok(ExitCode::SUCCESS)
        }
        (Err(interrupted @ Error::Interrupted), Some(code)) => {
            error(&interrupted.to_string());
            Ok(ExitCode::from(*code))
        }
        (Err(error), _) => Err(error),
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
