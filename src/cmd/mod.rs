//! The commands: one file or folder each. A command fills a report and prints nothing.

mod certs;
mod check;
mod completions;
pub(crate) mod deploy;
mod doctor;
mod session;
mod sites;
mod status;
mod sync;

pub use self::sites::Confirm;
pub use self::status::failed_check;
use crate::cli::{Command, CommandLine, DeployArgs};
use crate::context::Context;
use crate::inventory;
use crate::progress::Progress;
use crate::report::Report;
use crate::state::Origin;

/// Runs a command. `confirm` asks the user a question; it is `None` without a terminal.
pub fn run(parsed: &CommandLine, context: &Context, confirm: Confirm<'_>, progress: &Progress) -> Report {
    let mut report = Report::new(parsed.name);
    let to = &mut report;
    let result = match &parsed.command {
        Command::DehydratedDeploy(source) => {
            let targets = inventory::targets(context.configuration(), source);
            deploy::deploy(&DeployArgs::default(), (targets, Origin::Hook), context, progress, to)
        }
        Command::DehydratedSync(source) => sync::run_one(source, context, progress, to),
        Command::Deploy(args) => deploy::run(args, context, progress, to),
        Command::Plan(args) => {
            let args = DeployArgs { dry_run: true, ..args.clone() };
            deploy::run(&args, context, progress, to)
        }
        Command::Check(args) => check::run(args, context, to),
        Command::Sync(args) => {
            sync::run(args, context, progress, to);
            Ok(())
        }
        Command::Status(args) => status::run(args, context, to),
        Command::Doctor(args) => doctor::run(args, context, to),
        Command::Certs(args) => certs::run(args, context, to),
        Command::Sites(args) => sites::run(args, context, confirm, to),
        Command::Completions { shell } => completions::run(*shell, to),
    };
    report.record(result);
    report
}
