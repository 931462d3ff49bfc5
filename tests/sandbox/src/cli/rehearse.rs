//! `edgecert-sandbox rehearse`.

use std::path::PathBuf;
use std::process::ExitCode;

use edgecert_sandbox::{Error, Event, Hook, rehearse};

use super::RehearseArgs;
use super::output::{Style, error, line};

/// Rehearses, and returns success only if every check passed.
#[expect(clippy::disallowed_methods, reason = "the only variable that this program reads")]
pub(crate) fn run(args: &RehearseArgs) -> Result<ExitCode, Error> {
    let explicit = std::env::var_os("EDGECERT_BIN").filter(|path| !path.is_empty()).map(PathBuf::from);
    let hook = Hook::find(explicit.as_deref(), std::env::current_exe().ok().as_deref())?;
    line(&format!("rehearsing {} against a temporary sandbox on this machine", hook.path().display()));
    let mut steps = 0;
    let passed = rehearse(&hook, args.lineage.as_deref(), &mut |event| {
        if matches!(event, Event::Step(_)) {
            steps += 1;
        }
        print(&event, steps);
    })?;
    if passed {
        line("\nall steps passed");
        return Ok(ExitCode::SUCCESS);
    }
    error(&format!("step {steps} failed; later steps were skipped"));
    Ok(ExitCode::FAILURE)
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
