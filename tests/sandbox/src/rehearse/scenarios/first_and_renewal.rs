//! The certificates of one lineage, from the first one on, with a service that fails now and then.

use super::{EXIT_TEMPORARY, UPLOAD};
use crate::Error;
use crate::faults::Fault;
use crate::rehearse::Rehearsal;

pub(super) fn play(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    rehearsal.step("first certificate", "certbot saves it and runs its deploy hook")?;
    rehearsal.check_not_served("the edge serves no certificate yet");
    rehearsal.deploy_first()?;
    rehearsal.step("renewal", "the service takes a moment to push it to the edge")?;
    renewal(rehearsal)?;
    rehearsal
        .step("unreliable service", "it responds 503, then stores the upload, but its response is lost")?;
    unreliable_service(rehearsal)?;
    rehearsal.step("service outage", "it responds 503 to everything; the hook has 2 seconds")?;
    service_outage(rehearsal)
}

/// A renewal replaces the record; the edge serves the old leaf until the push, and the new one after it.
fn renewal(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    let old_leaf = rehearsal.lineage.fingerprint.clone();
    if rehearsal.lineage.is_external {
        rehearsal.note(
            "only its CA can renew your certificate, so a test certificate for the same names replaces it",
        );
        rehearsal.lineage = rehearsal.lineage.recreate(rehearsal.files.path(), &rehearsal.authority)?;
    } else {
        rehearsal.renew()?;
    }
    rehearsal.sandbox.hold_pushes(true);
    let uploads_before = rehearsal.completed_uploads();
    let running = rehearsal.start_deploy(&[])?;
    let running = rehearsal.wait_until(running, || rehearsal.completed_uploads() > uploads_before);
    rehearsal.check_still_served(&old_leaf);
    rehearsal.note("now the service pushes it");
    rehearsal.sandbox.hold_pushes(false);
    rehearsal.finish(running, 0)?;
    rehearsal.check_renewed();
    Ok(())
}

/// The service fails once and then loses a response: the hook retries, and no duplicate record appears.
fn unreliable_service(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    rehearsal.renew()?;
    rehearsal.sandbox.add_fault(Fault::status(UPLOAD, 503).header("Retry-After", "0").body("busy"));
    rehearsal.sandbox.add_fault(Fault::close_after(UPLOAD));
    let uploads_before = rehearsal.completed_uploads();
    rehearsal.deploy(0)?;
    let attempts = rehearsal.completed_uploads() - uploads_before;
    rehearsal.check(attempts == 3, "the hook sent the upload 3 times", attempts.to_string());
    rehearsal.check_renewed();
    Ok(())
}

/// The service is down until the hook times out: the hook records the failure, and `sync` retries it.
fn service_outage(rehearsal: &mut Rehearsal<'_>) -> Result<(), Error> {
    let old_leaf = rehearsal.lineage.fingerprint.clone();
    rehearsal.renew()?;
    rehearsal.sandbox.add_fault(Fault::status("*", 503).body("maintenance").times(u32::MAX));
    let running = rehearsal.start_deploy(&[("EDGECERT_TIMEOUT", "2".to_owned())])?;
    rehearsal.finish(running, EXIT_TEMPORARY)?;
    rehearsal.check_still_served(&old_leaf);
    rehearsal.note("the service recovers; certbot does not run the hook again, but the timer runs sync");
    rehearsal.sandbox.clear_faults();
    rehearsal.sync(0)?;
    rehearsal.check_renewed();
    rehearsal.note("the timer again");
    let requests_before = rehearsal.sandbox.requests().len();
    rehearsal.sync(0)?;
    rehearsal.check_only_listed(requests_before);
    Ok(())
}
