//! The program `edgecert-sandbox`: parses the command line, dispatches and sets the exit code.

mod cli;

use std::process::ExitCode;

use clap::Parser;
use edgecert_sandbox::Error;

use cli::output::{error, hint};
use cli::{Cli, Command};

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(args) => cli::serve::run(args).map(|()| ExitCode::SUCCESS),
        Command::Rehearse(args) => cli::rehearse::run(&args),
    };
    result.unwrap_or_else(|failure| {
        error(&failure.to_string());
        if let Some(advice) = hint_for(&failure) {
            hint(advice);
        }
        ExitCode::from(exit_code(&failure))
    })
}

fn hint_for(error: &Error) -> Option<&'static str> {
    match error {
        Error::NotLoopback(_) => Some("use 127.0.0.1 or [::1]"),
        Error::Listen { .. } => Some("use port 0 for a free port; --ready-file records which one was picked"),
        Error::HookNotFound(_) => {
            Some("run `cargo build --workspace`, or set EDGECERT_BIN to the path of the hook")
        }
        Error::DataInUse(_) => Some("stop the other sandbox, or use another --data directory"),
        Error::SchemaTooNew { .. } => Some("use a newer edgecert-sandbox, or another --data directory"),
        _ => None,
    }
}

/// Returns the exit code; those of `sysexits.h`, like the hook's.
fn exit_code(error: &Error) -> u8 {
    match error {
        Error::StepFailed(_) => 1,
        Error::NotLoopback(_) => 2,
        Error::InvalidWorld(_) => 65,
        Error::File { .. } | Error::HookNotFound(_) => 66,
        Error::Listen { .. } => 69,
        Error::Authority(_) | Error::Database(_) | Error::Runtime(_) => 70,
        Error::DataInUse(_) | Error::Interrupted => 75,
        Error::SchemaTooNew { .. } => 78,
    }
}
