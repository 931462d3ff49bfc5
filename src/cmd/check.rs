//! `edgecert check`: runs only the local checks, without network or configuration.

use crate::check::{self, CheckContext, PathRule, Status};
use crate::cli::CheckArgs;
use crate::context::Context;
use crate::error::Result;
use crate::hint::{Command, Place};
use crate::names::hosts;
use crate::report::{CertificateReport, Report, SourceReport};
use crate::settings::TrustPolicy;
use crate::trust::TrustStores;
use crate::{bundle, clock, file, source};

/// Runs the checks and reports their findings.
pub(crate) fn run(args: &CheckArgs, context: &Context, report: &mut Report) -> Result<()> {
    let env = &context.env;
    let source = source::find(&args.certificate, env)?;
    report.deployed.source = Some(SourceReport::new(&source));
    let deadline = file::default_deadline();
    let store = match TrustPolicy::new(args.trust_anchors.clone(), env) {
        TrustPolicy::Required(roots) => Some(TrustStores::default().load(&roots, deadline)?),
        TrustPolicy::Advisory(_) | TrustPolicy::Off => None,
    };
    let bundle = bundle::load(&source.files, deadline)?;
    report.deployed.certificate = bundle.chain.as_ref().ok().map(CertificateReport::new);
    let directory = source.acme_directory();
    let rules = CheckContext {
        domains: &args.domains,
        at: args.at.unwrap_or_else(clock::now),
        untrusted: if args.allow_untrusted == Some(true) { Status::Warn } else { Status::Fail },
        path: store.as_deref().map(|anchors| PathRule { anchors, no_path: Status::Fail }),
        directory: directory.as_deref(),
    };
    let (command, domains) = (Command::Preview, hosts(&args.domains));
    report.set_place(Place { command, domains, ..Place::default() });
    report.deployed.checks = check::run(&bundle, &rules);
    report.fail_checks();
    Ok(())
}
