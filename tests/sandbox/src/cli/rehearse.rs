//! `edgecert-sandbox rehearse`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use edgecert_sandbox::{Error, Event, Hook, Interrupt, rehearse};

use super::RehearseArgs;
use super::output::{Style, error, line};
use super::signals::Signals;

/// Rehearses, and returns success only if every check passed.
#[expect(clippy::disallowed_methods, reason = "the only variable that this program reads")]
pub(crate) fn run(args: &RehearseArgs) -> Result<ExitCode, Error> {
    let explicit = std::env::var_os("EDGECERT_BIN").filter(|path| !path.is_empty()).map(PathBuf::from);
    let time_limit = Duration::from_secs(args.hook_timeout);
    let hook = Hook::find(explicit.as_deref(), std::env::current_exe().ok().as_deref(), time_limit)?;
    // Before the rehearsal creates anything that would have to be removed.
    let (interrupt, exit_code) = interrupt_on_signal()?;
    line(&format!("rehearsing {} against a temporary sandbox on this machine", hook.path().display()));
    let mut steps = 0;
    let result = rehearse(&hook, args.lineage.as_deref(), &interrupt, &mut |event| {
        if matches!(event, Event::Step(_)) {
            steps += 1;
        }
        print(&event, steps);
    });
    match (result, exit_code.get()) {
        (Ok(true), _) => {
            line("\nall steps passed");
            Ok(ExitCode::SUCCESS)
        }
        (Ok(false), _) => {
            error(&format!("step {steps} failed; later steps were skipped"));
            Ok(ExitCode::FAILURE)
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

fn print(event: &Event, step: u32) {
    line(&match event {
        Event::Step(title) => format!("\n{}", Style::Bold.paint(&format!("{step}. {title}"))),
        Event::Note(text) => text.clone(),
        Event::Output(text) => format!("    {}", Style::Dim.paint(text)),
        Event::Passed(expected) => format!("  {} {expected}", Style::Green.paint("ok")),
        Event::Failed { expected, found } => {
            format!("  {} {expected}; found {found}", Style::Red.paint("FAILED"))
        }
    });
}
