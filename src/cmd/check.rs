//! `edgecert check`: runs only the local checks, without network or configuration.

use std::path::Path;

use crate::check::{self, CheckContext, Status};
use crate::cli::CheckArgs;
use crate::context::Context;
use crate::env::Env;
use crate::error::CommandError;
use crate::report::{CertificateReport, DeployReport, SourceReport};
use crate::settings::Roots;
use crate::{bundle, clock, source, trust};

/// Runs the checks and reports their findings.
pub(crate) fn run(
    args: &CheckArgs,
    context: &Context,
    report: &mut DeployReport,
) -> Result<(), CommandError> {
    let env = &context.env;
    let source = source::find(&args.certificate.named(), env)?;
    report.body.source = Some(SourceReport::new(&source));
    let roots = args.trust_anchors.as_deref().map(|named| trust::load(&roots(named, env))).transpose()?;
    let bundle = bundle::load(&source.files)?;
    report.body.certificate = bundle.chain.as_ref().ok().map(CertificateReport::new);
    let rules = CheckContext {
        domains: &args.domains,
        at: args.at.unwrap_or_else(clock::now),
        untrusted: Status::Warn,
        anchors: roots.as_ref(),
        directory: source.acme_directory.as_deref(),
    };
    report.body.checks = check::run(&bundle, &rules);
    report.fail_checks();
    Ok(())
}

/// The roots that `--trust-anchors` names. `system` is the system's trust store; a file of that name is `./system`.
fn roots(named: &Path, env: &Env) -> Roots {
    if named == Path::new("system") { Roots::of_system(env) } else { Roots::File(named.to_owned()) }
}
