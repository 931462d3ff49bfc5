//! `edgecert check`: the local checks alone; no network, no configuration.

use std::path::Path;

use crate::check::{self, CheckContext, Refused, Status};
use crate::cli::CheckArgs;
use crate::context::Context;
use crate::env::Env;
use crate::report::{CertificateReport, Report, SourceReport};
use crate::settings::Roots;
use crate::{bundle, clock, source, trust};

/// Runs the checks and records what they found.
pub(crate) fn run(args: &CheckArgs, context: &Context, report: &mut Report) -> anyhow::Result<()> {
    let env = &context.env;
    let source = source::find(&args.certificate.named(), env)?;
    report.source = Some(SourceReport::new(&source));
    let anchors = args.trust_anchors.as_deref().map(|named| trust::load(&anchors(named, env))).transpose()?;
    let bundle = bundle::load(&source.files)?;
    report.certificate = bundle.chain.as_ref().ok().map(CertificateReport::new);
    let rules = CheckContext {
        domains: &args.domains,
        at: args.at.unwrap_or_else(clock::now),
        untrusted: Status::Warn,
        anchors: anchors.as_ref(),
        directory: source.acme_directory.as_deref(),
    };
    report.checks = check::run(&bundle, &rules);
    if report.checks.iter().any(|finding| finding.status == Status::Fail) {
        Err(Refused.into())
    } else {
        Ok(())
    }
}

/// The word `system` means the system's store; a file of that name is `./system`.
fn anchors(named: &Path, env: &Env) -> Roots {
    if named == Path::new("system") { Roots::of_system(env) } else { Roots::File(named.to_owned()) }
}
