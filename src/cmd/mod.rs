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
use crate::error::CommandError;
use crate::progress::Progress;
use crate::report::{AnyReport, Body, DeployReport, Report};
use crate::state::Origin;

/// The prompt and the progress display of a running command.
#[derive(Clone, Copy)]
pub struct Interaction<'a> {
    /// Asks the user a question; `None` without a terminal.
    pub confirm: Confirm<'a>,
    pub progress: &'a dyn Progress,
}

/// Runs a command.
pub fn run(
    command_line: &CommandLine,
    context: &Context,
    interaction: Interaction<'_>,
) -> Box<dyn AnyReport> {
    let name = command_line.name();
    match &command_line.task {
        Task::DehydratedDeploy(source) => fill(name, |report: &mut DeployReport| {
            deploy::deploy(
                &DeployArgs::default(),
                (source, Origin::Hook),
                context,
                interaction.progress,
                report,
            )
        }),
        Task::DehydratedSync(source) => fill(name, |report: &mut DeployReport| {
            sync::run_one(source, context, interaction.progress, report)
        }),
        Task::Command(command) => run_command(name, command, context, interaction),
    }
}

fn run_command(
    name: &'static str,
    command: &Command,
    context: &Context,
    interaction: Interaction<'_>,
) -> Box<dyn AnyReport> {
    let Interaction { confirm, progress } = interaction;
    match command {
        Command::Deploy(args) => fill(name, |report| deploy::run(args, context, progress, report)),
        Command::Plan(args) => fill(name, |report| {
            let args = DeployArgs { dry_run: true, ..args.deploy.clone() };
            deploy::run(&args, context, progress, report)
        }),
        Command::Check(args) => fill(name, |report| check::run(args, context, report)),
        Command::Sync(args) => fill(name, |report| {
            sync::run(args, context, progress, report);
            Ok(())
        }),
        Command::Status(args) => fill(name, |report| status::run(args, context, report)),
        Command::Doctor(args) => fill(name, |report| {
            doctor::run(args, context, report);
            Ok(())
        }),
        Command::Certs(args) => fill(name, |report| certs::run(args, context, report)),
        Command::Sites(args) => fill(name, |report| sites::run(args, context, confirm, report)),
        Command::Completions(args) => fill(name, |report| completions::run(*args, report)),
    }
}

/// Runs one command with a new report, and adds its error to the report.
fn fill<B: Body + 'static>(
    name: &'static str,
    run: impl FnOnce(&mut Report<B>) -> Result<(), CommandError>,
) -> Box<dyn AnyReport> {
    let mut report = Report::new(name);
    let result = run(&mut report);
    report.record(result);
    Box::new(report)
}
