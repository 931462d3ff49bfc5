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
pub use self::status::{discard_metrics, failed_check};
use crate::cli::{Command, CommandLine, DeployArgs, Task};
use crate::context::Context;
use crate::progress::Progress;
use crate::report::Report;
use crate::state::Origin;

/// The prompt and the progress display of a running command.
#[derive(Clone, Copy)]
pub struct Interaction<'a> {
    /// Asks the user a question; `None` without a terminal.
    pub confirm: Confirm<'a>,
    pub progress: &'a dyn Progress,
}

/// Runs a command.
pub fn run(command_line: &CommandLine, context: &Context, interaction: Interaction<'_>) -> Report {
    let Interaction { confirm, progress } = interaction;
    let mut report = Report::new(command_line.name());
    let to = &mut report;
    let result = match &command_line.task {
        Task::DehydratedDeploy(source) => {
            deploy::deploy(&DeployArgs::default(), (source, Origin::Hook), context, progress, to)
        }
        Task::DehydratedSync(source) => sync::run_one(source, context, progress, to),
        Task::Command(Command::Deploy(args)) => deploy::run(args, context, progress, to),
        Task::Command(Command::Plan(args)) => {
            let args = DeployArgs { dry_run: true, ..args.deploy.clone() };
            deploy::run(&args, context, progress, to)
        }
        Task::Command(Command::Check(args)) => check::run(args, context, to),
        Task::Command(Command::Sync(args)) => {
            sync::run(args, context, progress, to);
            Ok(())
        }
        Task::Command(Command::Status(args)) => status::run(args, context, to),
        Task::Command(Command::Doctor(args)) => {
            doctor::run(args, context, to);
            Ok(())
        }
        Task::Command(Command::Certs(args)) => certs::run(args, context, to),
        Task::Command(Command::Sites(args)) => sites::run(args, context, confirm, to),
        Task::Command(Command::Completions(args)) => completions::run(*args, to),
    };
    report.record(result);
    report
}
